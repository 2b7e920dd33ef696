//! Errors of remote rollouts.

use std::path::PathBuf;

use webshop_agent::AgentError;
use webshop_lm::LmError;

/// What can fail between this process and a server. Messages name the culprit in backticks.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The agent library: prompts, completions, recorded episodes.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The server returned no completion for a single-step example.
    #[error("no completion for example `{example}`: {reason}")]
    NoCompletion {
        /// The example's id.
        example: String,
        /// The cause of the last failed attempt.
        reason: String,
    },
    /// The server does not respond.
    #[error("cannot reach `{url}`: {reason}")]
    Unreachable {
        /// The requested address.
        url: String,
        /// The cause and the remedy.
        reason: String,
    },
    /// The model server refuses every request.
    #[error("cannot request completions from `{url}`: {reason}")]
    Endpoint {
        /// The base address.
        url: String,
        /// The cause.
        reason: String,
    },
    /// A rollout file was made by another policy, or of other tasks.
    #[error("cannot resume `{}`: {reason}", path.display())]
    Resume {
        /// The file.
        path: PathBuf,
        /// The line and the difference.
        reason: String,
    },
    /// The site serves something other than WebShop pages.
    #[error("`{url}` is not a WebShop site: {reason}")]
    Site {
        /// The requested address.
        url: String,
        /// The cause.
        reason: String,
    },
}

impl From<LmError> for RemoteError {
    fn from(error: LmError) -> Self {
        Self::Agent(error.into())
    }
}
