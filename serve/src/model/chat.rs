//! The prompt of a chat.
//!
//! A model with a chat template gets what the template writes; [`TurnMarkers`] in messages that are not the model's own are
//! broken by a space, as in local rollouts, so that no page can speak as the model. A model of a
//! layout, the prompt formats `compact` and `text`, has no roles: its prompt is what it was trained on, pages and its own completions between
//! special tokens,
//!
//! ```text
//! page <|im_start|> completion <|im_end|> page <|im_start|> completion <|im_end|> page <|im_start|>
//! ```
//!
//! in which pages hold special tokens too: the marks of products.

use serde_json::Value;
use webshop_agent::ChatFormat;
use webshop_agent::compact::{END, TURN};
use webshop_lm::chat::{ChatTemplate, Message, Role, TemplateInput, TurnMarkers};
use webshop_lm::{BpeTokenizer, LmError};

/// How messages become a prompt.
#[derive(Debug)]
pub(super) enum ChatLayout {
    /// By the template of the checkpoint.
    Template { template: Box<ChatTemplate>, markers: TurnMarkers },
    /// Texts and turns end to end, between these special tokens.
    Compact { turn: u32, end: u32 },
}

impl ChatLayout {
    /// The layout of a model with this format, and the tokens that end its completions.
    pub(super) fn new(
        tokenizer: &BpeTokenizer,
        format: Option<ChatFormat>,
    ) -> Result<(ChatLayout, Vec<u32>), LmError> {
        Ok(match format {
            Some(ChatFormat { template, stop_ids, .. }) => {
                let markers = TurnMarkers::new(&template, tokenizer, &stop_ids)?;
                (ChatLayout::Template { template: Box::new(template), markers }, stop_ids)
            }
            None => {
                let (turn, end) = (tokenizer.special_id(TURN)?, tokenizer.special_id(END)?);
                (ChatLayout::Compact { turn, end }, vec![end])
            }
        })
    }

    /// Whether prompts show tools.
    pub(super) fn has_tools(&self) -> bool {
        match self {
            ChatLayout::Template { template, .. } => {
                template.source(true).is_ok_and(|source| source.contains("tools"))
            }
            ChatLayout::Compact { .. } => false,
        }
    }

    /// The tokens of a chat up to the model's turn.
    ///
    /// # Errors
    /// If the template fails, for instance because it does not take these roles in this order.
    pub(super) fn encode(
        &self,
        tokenizer: &BpeTokenizer,
        messages: &[Message],
        tools: Option<Vec<Value>>,
    ) -> Result<Vec<u32>, LmError> {
        match self {
            ChatLayout::Template { template, markers } => {
                let messages = messages.iter().map(|message| untrusted(markers, message).to_template());
                let input = TemplateInput {
                    messages: messages.collect(),
                    tools,
                    add_generation_prompt: true,
                    ..TemplateInput::default()
                };
                tokenizer.encode(&template.render(&input)?)
            }
            ChatLayout::Compact { turn, end } => {
                let mut ids = Vec::new();
                for Message { role, content, .. } in messages {
                    let content = compact_ids(tokenizer, content.trim())?;
                    match role {
                        Role::Assistant => ids.extend([&[*turn], &content[..], &[*end]].concat()),
                        Role::System | Role::User | Role::Tool => ids.extend(content),
                    }
                }
                ids.push(*turn);
                Ok(ids)
            }
        }
    }
}

/// The tokens of a text as training prompts have them: words begin with a space, special tokens do not.
fn compact_ids(tokenizer: &BpeTokenizer, text: &str) -> Result<Vec<u32>, LmError> {
    let ids = tokenizer.encode(text)?;
    match ids.first() {
        Some(first) if !tokenizer.is_special(*first) => tokenizer.encode(&format!(" {text}")),
        _ => Ok(ids),
    }
}

/// The message without markers, unless the model wrote it.
fn untrusted(markers: &TurnMarkers, message: &Message) -> Message {
    match message.role {
        Role::Assistant => message.clone(),
        Role::System | Role::User | Role::Tool => {
            Message { content: markers.break_in(&message.content), ..message.clone() }
        }
    }
}
