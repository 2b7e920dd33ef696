//! Errors of evaluation.

use webshop_agent::AgentError;
use webshop_env::EnvError;
use webshop_products::DataError;

/// The result of everything in this crate that can fail.
pub type Result<T, E = EvaluationError> = std::result::Result<T, E>;

/// Why a reward configuration or a check of an environment was refused.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// No configuration section has this key.
    #[error("unknown configuration key `{key}`{hint}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The known keys.
        hint: String,
    },
    /// The value has the wrong type or is out of range.
    #[error("configuration key `{key}` {problem}")]
    InvalidValue {
        /// The key.
        key: String,
        /// The accepted range and the given value.
        problem: String,
    },
    /// The catalog or its goals.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The shop.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A policy or an episode.
    #[error(transparent)]
    Agent(#[from] AgentError),
}
