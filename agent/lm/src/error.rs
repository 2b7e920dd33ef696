//! Errors of the language-model library.

use std::path::PathBuf;

/// What can fail between a model folder and a completion. Messages name the culprit in backticks.
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A tensor operation failed inside candle.
    #[error("tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
    /// The device cannot run the model.
    #[error("cannot compute on `{device}`: {reason}")]
    Device {
        /// The requested device.
        device: String,
        /// The cause and the remedy.
        reason: String,
    },
    /// A file of a model folder is missing or unreadable.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause and the remedy.
        reason: String,
    },
    /// A file could not be written.
    #[error("cannot write `{path}`: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The model configuration is not supported or inconsistent.
    #[error("unsupported model configuration: {0}")]
    Config(String),
    /// The weights do not match the configuration.
    #[error("the weights do not fit the model: {0}")]
    Weights(String),
    /// Token ids, positions or lanes outside the model's range.
    #[error("invalid model input: {0}")]
    Input(String),
    /// The tokenizer lacks something that the caller needs.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The chat template is missing, invalid, or rejects the conversation.
    #[error("chat template: {0}")]
    ChatTemplate(String),
    /// The LoRA adapter is not supported or belongs to another model.
    #[error("adapter: {0}")]
    Adapter(String),
    /// The token distribution has no finite self-certainty.
    #[error("self-certainty: {0}")]
    Certainty(String),
    /// The token distribution cannot be sampled.
    #[error("sampling: {0}")]
    Sampling(String),
}
