//! `agentgym-react`: a ReAct chat as in AgentGym, with thoughts and actions under headings.
//!
//! ```text
//! user       the rules and the form of completions
//! assistant  Ok.
//! user       WebShop [SEP] Instruction: [SEP] …
//! assistant  Thought:\n…\n\nAction:\nclick[buy now]
//! ```
//!
//! The action is the text after the last `Action:`. A completion without that heading is parsed as an action
//! as a whole, and is malformed.

use webshop_env::{Action, Compat, Page};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::{Conversation, Observed};
use crate::prompt_format::format::Format;

const RULES: &str = "You are shopping online. Each message shows you a page of the shop; its parts are separated by [SEP]. \
     Follow the instruction on it: find what is wanted, choose its options, and buy it.\n\
     There are two kinds of actions: `search[words]`, where there is a search bar, and `click[text]` for what is \
     written on a button, product or option of the page. What cannot be done is ignored.\n\n\
     Answer in this form:\n\nThought:\nwhat you think\n\nAction:\nclick[something]";

/// The model's reply to the rules. It is part of the prompt and not sampled, so it is no training data.
pub(crate) const ACKNOWLEDGEMENT: &str = "Ok.";

pub(super) struct AgentgymReact;

impl Format for AgentgymReact {
    fn name(&self) -> &'static str {
        "agentgym-react"
    }

    fn version(&self) -> &'static str {
        "agentgym-react-v1"
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: Some(("Thought:\n", "\n\nAction:\n")),
            search: ("search[", "]"),
            forbidden: &['[', ']', ':'],
        }
    }

    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let mut messages =
            vec![Message::text(Role::User, RULES), Message::text(Role::Assistant, ACKNOWLEDGEMENT)];
        for turn in conversation.past() {
            messages.extend([user(&turn.observed), turn.completion.clone()]);
        }
        messages.push(user(conversation.current()));
        messages
    }

    fn parse(&self, completion: &Message, _page: &Page, rules: Compat) -> ParsedCompletion {
        parse(completion.content.trim(), rules)
    }

    fn render_action(&self, action: &Action) -> String {
        action.to_string()
    }
}

fn user(observed: &Observed) -> Message {
    Message::text(Role::User, format!("{}{}", observed.noop_line(), observed.observation))
}

/// Parses a trimmed completion by the rules of the shop.
pub(crate) fn parse(text: &str, rules: Compat) -> ParsedCompletion {
    let Some((before, action)) = text.rsplit_once("Action:") else {
        return ParsedCompletion::new(None, Action::parse(text, rules), false);
    };
    let thought = before.trim().strip_prefix("Thought:").map(|thought| thought.trim().to_owned());
    let is_well_formed = thought.is_some();
    ParsedCompletion::new(thought, Action::parse(action.trim(), rules), is_well_formed)
}
