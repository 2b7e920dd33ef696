//! The error type of the crate.

use std::path::PathBuf;

/// Errors of models, model folders, tokenizers and generation.
#[derive(Debug, thiserror::Error)]
pub enum LmError {
    /// A tensor operation failed inside candle.
    #[error("tensor operation failed: {0}")]
    Tensor(#[from] candle_core::Error),
    /// The device cannot be used.
    #[error("cannot compute on `{device}`: {reason}")]
    Device {
        /// The requested device.
        device: String,
        /// The driver's message, or the missing feature of the build.
        reason: String,
    },
    /// A file or folder cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is not valid JSON, or lacks a required field.
    #[error("cannot read `{}`: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// The contents of a file or folder are incomplete, inconsistent or not supported.
    #[error("cannot read `{}`: {reason}", path.display())]
    Invalid {
        /// The file or folder.
        path: PathBuf,
        /// The field or tensor at fault and the expected value.
        reason: String,
    },
    /// A file or folder cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system, or of the conversion of a tensor.
        source: std::io::Error,
    },
    /// The model configuration is not supported or inconsistent.
    #[error("unsupported model configuration: {0}")]
    Config(String),
    /// The weights do not match the configuration.
    #[error("the weights do not fit the model: {0}")]
    Weights(String),
    /// Token ids, positions or lanes are outside the model's range.
    #[error("invalid model input: {0}")]
    Input(String),
    /// A tokenizer cannot be trained or loaded, or lacks a token.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The chat template is missing or invalid, or rejects its input.
    #[error("chat template: {0}")]
    ChatTemplate(String),
    /// The LoRA adapter is not supported, or belongs to another model.
    #[error("adapter: {0}")]
    Adapter(String),
    /// A token distribution is not valid, or its self-certainty is infinite.
    #[error("self-certainty: {0}")]
    Certainty(String),
    /// A token distribution, a constraint or a generation request is not valid.
    #[error("sampling: {0}")]
    Sampling(String),
}
