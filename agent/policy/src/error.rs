//! Errors of the agent library.

use webshop_lm::LmError;

use crate::prompt_format::Dialect;

/// What can fail between an observation and an action. Messages name the culprit in backticks.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The language model, its tokenizer or its files.
    #[error(transparent)]
    Lm(#[from] LmError),
    /// The prompt format has no single-step form.
    #[error(
        "single-step sampling supports the prompt formats `shop-r1`, `shop-r1-latest` and `shop-r1-minimal`, not `{0}`"
    )]
    SingleSteps(Dialect),
    /// An episode cannot be continued from this prefix.
    #[error("cannot continue the episode for goal `{goal}` after turn {turn}: {reason}")]
    Beginning {
        /// The turn, from 1.
        turn: usize,
        /// The goal's number.
        goal: u32,
        /// The cause.
        reason: String,
    },
    /// The token limit of a turn is below the longest admissible completion.
    #[error(
        "a limit of {max_turn_tokens} tokens a turn is too short for constrained decoding in the prompt format `{dialect}`, \
         which needs at least {needed}"
    )]
    TurnTooShort {
        /// The prompt format.
        dialect: Dialect,
        /// The limit.
        max_turn_tokens: usize,
        /// The least limit that holds every admissible completion.
        needed: usize,
    },
    /// A line of an episode file is invalid.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The cause.
        reason: String,
    },
}

impl From<candle_core::Error> for AgentError {
    fn from(error: candle_core::Error) -> Self {
        Self::Lm(error.into())
    }
}
