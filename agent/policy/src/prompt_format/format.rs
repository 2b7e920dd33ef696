//! The trait of all prompt formats.

use serde_json::Value;
use webshop_env::{Action, Compat, Page};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::Conversation;

/// How a prompt relates to earlier turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// One growing chat: a turn's prompt is appended, and an episode is one token sequence.
    Append,
    /// Each turn renders a new prompt with a summary of the past: every turn is a token sequence of its own.
    Rebuild,
}

/// What a Shop-R1 prompt contains beside the current page and the past actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ShopR1Variant {
    /// Instructions on the completion's form, and all past pages: `shop-r1`.
    #[default]
    AllPages,
    /// Instructions on the completion's form: `shop-r1-latest`.
    LatestPage,
    /// Nothing: `shop-r1-minimal`.
    Minimal,
}

/// One prompt format. The defaults fit formats whose completions are text.
pub(super) trait Format: Sync {
    fn name(&self) -> &'static str;

    fn version(&self) -> &'static str;

    fn history(&self) -> History {
        History::Append
    }

    fn form(&self) -> CompletionForm;

    fn observation(&self, page: &Page) -> String {
        page.text()
    }

    /// The prompt of the current turn without the pages of the first `n_dropped` turns; formats that always
    /// show the same pages ignore `n_dropped`.
    fn messages(&self, conversation: &Conversation, n_dropped: usize) -> Vec<Message>;

    /// `rules` are those of the shop, by which it reads actions.
    fn parse(&self, completion: &Message, page: &Page, rules: Compat) -> ParsedCompletion;

    fn render_action(&self, action: &Action) -> String;

    /// `thought` with the escapes of its place in a completion.
    fn escape_thought(&self, thought: &str) -> String {
        thought.to_owned()
    }

    fn tools(&self) -> Option<Vec<Value>> {
        None
    }

    fn completion_text(&self, completion: &Message) -> String {
        completion.content.clone()
    }

    fn completion_message(&self, text: &str, _call_id: &str) -> Message {
        Message::text(Role::Assistant, text)
    }
}
