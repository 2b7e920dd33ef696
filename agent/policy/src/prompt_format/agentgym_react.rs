//! `agentgym-react`: a chat that begins with the rules and the word "Ok.", with thoughts and actions under headings.
//!
//! ```text
//! user       the rules and the form of answers
//! assistant  Ok.
//! user       WebShop [SEP] Instruction: [SEP] …
//! assistant  Thought:\n…\n\nAction:\nclick[buy now]
//! ```
//!
//! The action is the first line behind the last `Action:`. An answer without that heading is taken for an action
//! as a whole, and counts as malformed.

use webshop_env::{Action, Compat};

use crate::prompt_format::{AnswerForm, Utterance};
use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::{Dialogue, Seen};

pub const VERSION: &str = "agentgym-react-v1";

pub const FORM: AnswerForm = AnswerForm {
    thought: Some(("Thought:\n", "\n\nAction:\n")),
    search: ("search[", "]"),
    forbidden: &['[', ']', ':'],
};

const RULES: &str = "You are shopping online. Each message shows you a page of the shop; its parts are separated by [SEP]. \
     Follow the instruction on it: find what is wanted, choose its options, and buy it.\n\
     There are two kinds of actions: `search[words]`, where there is a search bar, and `click[text]` for what is \
     written on a button, product or option of the page. What cannot be done is ignored.\n\n\
     Answer in this form:\n\nThought:\nwhat you think\n\nAction:\nclick[something]";

/// What the model is taken to have said to the rules. It did not, so no trainer imitates it.
pub const AGREED: &str = "Ok.";

pub fn messages(trip: &Dialogue) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::User, RULES), Message::text(Role::Assistant, AGREED)];
    for turn in trip.past() {
        messages.extend([shown(&turn.seen), turn.answer.clone()]);
    }
    messages.push(shown(trip.now()));
    messages
}

fn shown(seen: &Seen) -> Message {
    let noop = seen.noop.map(|reason| format!("Nothing happened: {reason}.\n")).unwrap_or_default();
    Message::text(Role::User, format!("{noop}{}", seen.observation))
}

pub fn parse(text: &str) -> Utterance {
    let Some((before, action)) = text.rsplit_once("Action:") else {
        return Utterance::of(None, Action::parse(text, Compat::Repaired), false);
    };
    let thought = before.trim().strip_prefix("Thought:").map(|thought| thought.trim().to_owned());
    let is_well_formed = thought.is_some();
    Utterance::of(thought, Action::parse(action.trim(), Compat::Repaired), is_well_formed)
}
