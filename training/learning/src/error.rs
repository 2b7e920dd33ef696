//! Errors of configurations, run folders, checkpoints and training.
//!
//! One enum for the crate; every variant carries the value at fault (a path, a key, a name), so that its
//! message says what to change. Exit codes and hints about command-line flags are the binary's.

use std::io;
use std::path::{Path, PathBuf};

use webshop_evaluation::EvaluationError;

/// The result of everything in this crate that can fail.
pub type Result<T, E = TrainingError> = std::result::Result<T, E>;

/// Why a configuration, a run folder, a checkpoint or a step was refused.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// A key that no section has; `hint` is empty or names the nearest key there is.
    #[error("unknown configuration key `{key}`{hint}")]
    UnknownKey {
        /// The full dotted key as it was given.
        key: String,
        /// ` (did you mean …?)`, or nothing when no key is near.
        hint: String,
    },
    /// A shorthand key that several sections have.
    #[error("configuration key `{key}` could mean {candidates}; write it in full")]
    AmbiguousKey {
        /// The key as it was given.
        key: String,
        /// The full keys it could mean, each in backticks.
        candidates: String,
    },
    /// Rollout workers that failed, or that returned other episodes than those asked for.
    #[error("rollout workers: {problem}")]
    RolloutWorkers {
        /// What happened.
        problem: String,
    },
    /// A value of the wrong type or outside its range.
    #[error("configuration key `{key}` {problem}")]
    InvalidValue {
        /// The full dotted key.
        key: String,
        /// What holds for this key and what was given instead.
        problem: String,
    },
    /// A file that is not TOML, or an override without `=`.
    #[error("cannot read the configuration {origin}: {problem}")]
    ConfigSyntax {
        /// The file or the override, in backticks.
        origin: String,
        /// What the parser found.
        problem: String,
    },
    /// A folder that already holds something, given as a new run's folder.
    #[error("`{0}` already holds files")]
    RunFolderNotEmpty(PathBuf),
    /// The folder of a run that another process works on.
    #[error("cannot train in `{0}`: another process trains in it; wait for its end, or stop it")]
    RunInUse(PathBuf),
    /// A folder to resume from in which no run was started.
    #[error("`{0}` holds no run to resume (it has no `config.toml`)")]
    NoRun(PathBuf),
    /// A path at which no complete checkpoint was found.
    #[error("`{path}` holds no checkpoint: {problem}")]
    NoCheckpoint {
        /// Where it was looked for.
        path: PathBuf,
        /// What is missing there.
        problem: String,
    },
    /// A file whose contents contradict its purpose.
    #[error("`{path}` cannot be used: {problem}")]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with its contents.
        problem: String,
    },
    /// The disk is full. Complete checkpoints are never touched by a failed write.
    #[error("no space left on the disk while writing `{0}`; free some and resume the run")]
    DiskFull(PathBuf),
    /// Any other failure of the file system.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Optimizer state, parameters and gradients that do not describe the same model.
    #[error("parameter `{name}`: {problem}")]
    ParameterMismatch {
        /// The parameter at fault.
        name: String,
        /// How the two descriptions differ.
        problem: String,
    },
    /// A batch no loss is defined for.
    #[error("loss `{loss}`: {problem}")]
    InvalidBatch {
        /// The loss's name.
        loss: &'static str,
        /// What is wrong with the batch.
        problem: String,
    },
    /// No training goal could be demonstrated, so there is nothing to clone.
    #[error(
        "no demonstration found for step {step}: none of the drawn goals can be bought on a shown page within \
         `run.max_steps`, `prompt.max_context` and `prompt.max_turn_tokens`, or, in the filtered share of the steps, with reward 1"
    )]
    NothingToClone {
        /// The warm-start step.
        step: u64,
    },
    /// No episode of a batch has a completion.
    #[error(
        "none of {n} episodes has a completion: the first prompt of each leaves no room in a context of {max_context} \
         tokens; raise `prompt.max_context`"
    )]
    NothingSampled {
        /// Episodes of the batch.
        n: usize,
        /// `prompt.max_context`.
        max_context: usize,
    },
    /// None of the drawn single-step examples can be used.
    #[error(
        "none of {drawn} examples of step {step} can be used: {undemonstrated} goals have no demonstration, {too_long} \
         prompts leave no room for a completion; draw more goals (`warm_start.batch_episodes`, `rl.batch_episodes`, \
         `value.goals`), or raise `prompt.max_context`"
    )]
    NoSteps {
        /// The optimizer step.
        step: u64,
        /// How many were drawn.
        drawn: usize,
        /// Those whose goal has no demonstration.
        undemonstrated: usize,
        /// Those whose prompt is too long.
        too_long: usize,
    },
    /// The run was stopped on request, after writing a checkpoint.
    #[error("interrupted after step {step} of the run in `{}`", run.display())]
    Interrupted {
        /// Optimizer steps taken.
        step: u64,
        /// The run's folder.
        run: PathBuf,
    },
    /// Threads could not be started.
    #[error("cannot start `{n_threads}` threads: {problem}")]
    Threads {
        /// The requested number of threads.
        n_threads: usize,
        /// The message of the system.
        problem: String,
    },
    /// The catalog or its goals.
    #[error(transparent)]
    Data(#[from] webshop_products::DataError),
    /// The shop.
    #[error(transparent)]
    Env(#[from] webshop_env::EnvError),
    /// The model, its tokenizer or its folder.
    #[error(transparent)]
    Agent(#[from] webshop_agent::AgentError),
    /// A reward configuration or a statistic.
    #[error(transparent)]
    Evaluation(#[from] webshop_evaluation::EvaluationError),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] candle_core::Error),
}

impl TrainingError {
    /// The same error with the key prefixed by this section.
    pub(crate) fn in_section(self, section: &str) -> Self {
        match self {
            Self::InvalidValue { key, problem } => {
                Self::InvalidValue { key: format!("{section}.{key}"), problem }
            }
            Self::Evaluation(EvaluationError::InvalidValue { key, problem }) => {
                Self::InvalidValue { key: format!("{section}.{key}"), problem }
            }
            other => other,
        }
    }

    /// Wraps an I/O error with what was tried on which path; a full disk becomes [`TrainingError::DiskFull`].
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull(path),
            _ => Self::Io { action, path, source },
        }
    }

    /// A file whose contents are wrong.
    pub fn bad_file(path: &Path, problem: impl ToString) -> Self {
        Self::BadFile { path: path.to_path_buf(), problem: problem.to_string() }
    }
}

impl From<webshop_lm::LmError> for TrainingError {
    fn from(error: webshop_lm::LmError) -> Self {
        Self::Agent(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_its_own_error() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(
            TrainingError::io("write", Path::new("run/x"), full).to_string(),
            "no space left on the disk while writing `run/x`; free some and resume the run"
        );
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(
            TrainingError::io("write", Path::new("run/x"), denied).to_string(),
            "cannot write `run/x`: permission denied"
        );
    }
}
