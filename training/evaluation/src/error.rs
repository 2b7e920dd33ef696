//! Errors of evaluation.

use webshop_agent::AgentError;
use webshop_env::EnvError;
use webshop_products::DataError;

/// Result of this crate's fallible functions.
pub type Result<T, E = EvaluationError> = std::result::Result<T, E>;

/// A rejected reward configuration, or an environment check that could not run.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// No configuration section has this key.
    #[error("unknown configuration key `{key}`{hint}")]
    UnknownKey {
        /// The key as given.
        key: String,
        /// Text that lists the known keys.
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
    /// The shop to check has no goals.
    #[error(
        "the shop has no goals, so that there is nothing to check; take more products or another kind of goals"
    )]
    NoGoals,
    /// An error of the catalog or its goals.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An error of the shop.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// An error of a policy or a rollout.
    #[error(transparent)]
    Agent(#[from] AgentError),
}
