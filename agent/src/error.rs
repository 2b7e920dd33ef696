//! What can go wrong between a page and an utterance.

use std::path::PathBuf;

use crate::dialect::Dialect;

/// Errors of the agent room. Messages name the thing at fault in backticks.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A tensor operation failed inside candle.
    #[error("tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
    /// A device that cannot be computed on.
    #[error("cannot compute on `{device}`: {reason}")]
    Device {
        /// As it was asked for.
        device: String,
        /// Why.
        reason: String,
    },
    /// A model folder lacks a file or holds one that cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A file could not be written.
    #[error("cannot write `{path}`: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A model configuration that is not supported or makes no sense.
    #[error("unsupported model configuration: {0}")]
    Config(String),
    /// Weights that are not those of the model.
    #[error("the weights do not fit the model: {0}")]
    Weights(String),
    /// Tokens, positions or lanes that a model cannot take.
    #[error("the model cannot read this: {0}")]
    Input(String),
    /// A tokenizer that cannot do what the prompt layout asks of it.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// A chat template that is missing, cannot be read, or refuses a conversation.
    #[error("chat template: {0}")]
    ChatTemplate(String),
    /// A low-rank adapter that does what is not known, or is for another model.
    #[error("adapter: {0}")]
    Adapter(String),
    /// Single steps were asked about in a dialect whose answers cannot be judged one by one.
    #[error("single steps are asked about in `shop-r1`, `shop-r1-latest` or `shop-r1-minimal`, not in `{0}`")]
    SingleSteps(Dialect),
    /// A server that gave no answer at a step.
    #[error("no answer at step `{step}`: {reason}")]
    NoAnswer {
        /// The step's id.
        step: String,
        /// Why, the last time it was asked.
        reason: String,
    },
    /// A token's distribution that does not tell how sure the model was.
    #[error("cannot tell how sure a token is: {0}")]
    Certainty(String),
    /// Sampling met a distribution it cannot draw from.
    #[error("sampling: {0}")]
    Sampling(String),
    /// The beginning of another trip that nobody can go on from here.
    #[error("cannot go on from turn {turn} of the trip for goal `{goal}`: {reason}")]
    Beginning {
        /// The turn, from 1.
        turn: usize,
        /// What the trip was for.
        goal: u32,
        /// Why.
        reason: String,
    },
    /// Answers that may not be as long as an admissible one can be.
    #[error(
        "`--max-turn-tokens {max_turn_tokens}` leaves no room for every answer that `--constrained` allows in the dialect \
         `{dialect}`; that takes at least {needed}"
    )]
    TurnTooShort {
        /// Of the answers.
        dialect: Dialect,
        /// As many tokens as there are.
        max_turn_tokens: usize,
        /// As many as there have to be.
        needed: usize,
    },
    /// A site that does not answer, or no longer.
    #[error("cannot reach `{url}`: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A line of a file of trips that says what cannot be.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A model server that cannot be asked, or refuses whatever it is asked.
    #[error("cannot ask the model at `{url}`: {reason}")]
    Endpoint {
        /// Where.
        url: String,
        /// Why.
        reason: String,
    },
    /// A site that answers with what is no page of a shop.
    #[error("cannot shop at `{url}`: {reason}")]
    Site {
        /// Where.
        url: String,
        /// Why.
        reason: String,
    },
}
