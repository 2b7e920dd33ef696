//! What the model says: an optional written thought, then one action of the shop's language.
//!
//! ```text
//! utterance = [ <think> words </think> ] search[words] | click[label]
//! ```
//!
//! The `plain` dialect is the shop's raw action language with the Qwen family's thought tags. Parsing
//! never fails: an utterance without an action is a [`Action::Noop`] that passes the turn.

use webshop_env::{Action, Compat};

use crate::prompt::{END, END_THINK, THINK};

/// One parsed agent turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// The text between the thought tags, trimmed; `None` if the turn has no complete thought.
    pub thought: Option<String>,
    /// What is done.
    pub action: Action,
}

/// Parses decoded model text of one turn, with or without the final end mark.
///
/// ```
/// use webshop_agent::dialect::parse;
/// let said = parse("<think> cheap enough </think> click[buy now]<|im_end|>");
/// assert_eq!(said.thought.as_deref(), Some("cheap enough"));
/// assert_eq!(said.action.to_string(), "click[buy now]");
/// ```
pub fn parse(text: &str) -> Utterance {
    let text = text.trim();
    let text = text.strip_suffix(END).unwrap_or(text).trim();
    let (thought, action) = match text.strip_prefix(THINK).and_then(|rest| rest.split_once(END_THINK)) {
        Some((thought, action)) => (Some(thought.trim().to_string()), action.trim()),
        None => (None, text),
    };
    Utterance { thought, action: Action::parse(action, Compat::Repaired) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_thought_passes_the_turn() {
        let said = parse("<think> waterproof yes");
        assert!(said.thought.is_none());
        assert!(matches!(said.action, Action::Noop(_)));
    }

    #[test]
    fn a_turn_without_a_thought_is_all_action() {
        let said = parse(" search[red shoes]");
        assert_eq!(said, Utterance { thought: None, action: Action::Search("red shoes".into()) });
    }
}
