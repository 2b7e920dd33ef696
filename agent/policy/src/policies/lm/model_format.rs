//! The prompt format of a model, with what is needed to prompt it.

use webshop_lm::{BpeTokenizer, Engine};
use webshop_products::Seed;

use crate::error::AgentError;
use crate::policies::lm::LmPolicy;
use crate::policies::lm::chat::ChatFormat;
use crate::policies::lm::config::LmConfig;
use crate::prompt_format::Layout;

/// How a model is prompted.
#[derive(Clone, Debug)]
pub enum ModelFormat {
    /// Token by token.
    Layout(Layout),
    /// By its chat template.
    Chat(Box<ChatFormat>),
}

impl ModelFormat {
    /// The policy of a model with this format.
    ///
    /// # Errors
    /// As [`LmPolicy::with_layout`] and [`LmPolicy::chat`].
    pub fn policy<'a>(
        &'a self,
        engine: impl Into<Engine>,
        tokenizer: &'a BpeTokenizer,
        config: LmConfig,
        seed: Seed,
    ) -> Result<LmPolicy<'a>, AgentError> {
        match self {
            Self::Layout(layout) => LmPolicy::with_layout(engine, tokenizer, *layout, config, seed),
            Self::Chat(format) => LmPolicy::chat(engine, tokenizer, format, config, seed),
        }
    }

    /// The version of the prompts, in chats with template and examples.
    ///
    /// # Errors
    /// As [`ChatFormat::version`].
    pub fn version(&self) -> Result<String, AgentError> {
        match self {
            Self::Layout(layout) => Ok(layout.prompt_format().version().into()),
            Self::Chat(format) => format.version(),
        }
    }

    /// The chat format; `None` of a layout.
    pub fn chat(&self) -> Option<&ChatFormat> {
        match self {
            Self::Layout(_) => None,
            Self::Chat(format) => Some(format),
        }
    }

    /// As [`ModelFormat::chat`], mutable.
    pub fn chat_mut(&mut self) -> Option<&mut ChatFormat> {
        match self {
            Self::Layout(_) => None,
            Self::Chat(format) => Some(format),
        }
    }

    /// As [`ModelFormat::chat`], owned.
    pub fn into_chat(self) -> Option<ChatFormat> {
        match self {
            Self::Layout(_) => None,
            Self::Chat(format) => Some(*format),
        }
    }
}
