//! The special tokens that separate the turns of a chat.

use std::collections::BTreeSet;

use crate::chat::{ChatTemplate, Message, Role, TemplateInput};
use crate::error::LmError;
use crate::tokenizer::BpeTokenizer;

/// The special tokens that separate the turns of a chat: those that a template writes around messages, and those that
/// end a completion. Tokens of a single character are left out.
///
/// Text of others must not spell them out, or it could end its turn and speak as the model. Other special tokens, such
/// as `<think>`, are part of the wording of prompt formats.
#[derive(Clone, Debug)]
pub struct TurnMarkers(BTreeSet<String>);

impl TurnMarkers {
    /// The markers of `template`. `stop_ids` are the tokens that end a completion.
    ///
    /// # Errors
    /// If the template cannot render a chat of a user and an assistant.
    pub fn new(template: &ChatTemplate, tokenizer: &BpeTokenizer, stop_ids: &[u32]) -> Result<Self, LmError> {
        // Some templates write more after the last question, for instance an empty thought.
        let probe = [Role::User, Role::Assistant, Role::User].map(|role| Message::text(role, "words"));
        let text = template.render(&TemplateInput {
            messages: probe.iter().map(Message::to_template).collect(),
            ..TemplateInput::default()
        })?;
        let special = tokenizer.special_ids().iter().filter_map(|id| tokenizer.token(*id));
        let written = special.filter(|token| text.contains(token.as_str()));
        let stops = stop_ids.iter().filter_map(|id| tokenizer.token(*id));
        Ok(Self(written.chain(stops).filter(|token| token.chars().count() > 1).collect()))
    }

    /// `text` with a space after the first character of each marker that it spells out.
    pub fn break_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for marker in &self.0 {
            if text.contains(marker.as_str()) {
                let (first, rest) = marker.split_at(marker.chars().next().map_or(0, char::len_utf8));
                text = text.replace(marker.as_str(), &format!("{first} {rest}"));
            }
        }
        text
    }
}
