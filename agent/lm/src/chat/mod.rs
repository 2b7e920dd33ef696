//! Chats: messages, and the chat template of a checkpoint that turns them into the text of a prompt.
//!
//! A [`Message`] has a [`Role`], a text and perhaps [`ToolCall`]s. A [`ChatTemplate`] renders a
//! [`TemplateInput`] (messages, tools and options) exactly as Hugging Face's `apply_chat_template` does.

mod message;
mod template;
mod turn_markers;

pub use self::message::{Message, Role, ToolCall};
pub use self::template::{ChatTemplate, TemplateInput};
pub use self::turn_markers::TurnMarkers;
