//! Errors of the agent library.

use std::io;
use std::path::{Path, PathBuf};

use webshop_lm::LmError;

/// What can fail between an observation and an action.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The language model, its tokenizer or its files.
    #[error(transparent)]
    Lm(#[from] LmError),
    /// The prompt format does not render examples of single steps.
    #[error(
        "examples of single steps need the prompt format `shop-r1`, `shop-r1-latest` or `shop-r1-minimal`, not `{prompt_format}`"
    )]
    SingleSteps {
        /// The prompt format's name.
        prompt_format: &'static str,
    },
    /// An episode cannot be continued from a prefix.
    #[error("cannot continue the episode for goal `{goal}` after turn {turn}: {reason}")]
    Prefix {
        /// The turn, from 1.
        turn: usize,
        /// The goal's number.
        goal: u32,
        /// The cause.
        reason: String,
    },
    /// The token limit of a completion is too small for constrained decoding.
    #[error(
        "a limit of {max_turn_tokens} tokens per completion is too small for constrained decoding in the prompt \
         format `{prompt_format}`, which needs at least {needed}"
    )]
    TurnTooShort {
        /// The prompt format's name.
        prompt_format: &'static str,
        /// The limit.
        max_turn_tokens: usize,
        /// The smallest sufficient limit.
        needed: usize,
    },
    /// A line of a file is invalid.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The cause.
        reason: String,
    },
    /// A file to be created exists.
    #[error("cannot write `{}`: the file exists; choose another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file is locked.
    #[error("cannot write `{}`: another program has the file open", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl AgentError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

impl From<candle_core::Error> for AgentError {
    fn from(error: candle_core::Error) -> Self {
        Self::Lm(error.into())
    }
}
