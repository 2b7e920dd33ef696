//! `ragen`: a chat of numbered turns with the number of remaining actions, as in RAGEN.
//!
//! ```text
//! system     the model's role
//! user       task and rules · Turn 1: · State: … · available actions · actions left and the form of completions
//! assistant  <think>…</think><answer>click[buy now]</answer>
//! user       Reward: 0.0 · Turn 2: · State: …
//! ```
//!
//! Deviation: RAGEN separates several actions of one completion by `||`; here a turn is one action, and text
//! after the first `||` is ignored. The reward of a turn that is followed by another is always 0, so the
//! reward line has no information.

use webshop_env::{Action, Compat, NoopReason, Page};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::{Conversation, Observed};
use crate::prompt_format::format::Format;
use crate::prompt_format::tags;

const SYSTEM: &str = "You help people to shop online.";

const TASK: &str = "You are in an online shop. Find and buy what is wanted: search with `search[words]`, open a product \
     or press what is written on the page with `click[text]`, choose its options, and finish with \
     `click[buy now]`.\n";

pub(super) struct Ragen;

impl Format for Ragen {
    fn name(&self) -> &'static str {
        "ragen"
    }

    fn version(&self) -> &'static str {
        "ragen-v1"
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: Some(("<think>", "</think>")),
            search: ("<answer>search[", "]</answer>"),
            forbidden: &['<', '>', '[', ']', '|'],
        }
    }

    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::System, SYSTEM)];
        let mut user = format!("{TASK}Wanted: {}\n", conversation.instruction());
        for (at, turn) in conversation.past().iter().enumerate() {
            user += &state(conversation, at, &turn.observed);
            messages.push(Message::text(Role::User, std::mem::take(&mut user)));
            messages.push(turn.completion.clone());
            user += "Reward:\n0.0\n";
        }
        user += &state(conversation, conversation.past().len(), conversation.current());
        messages.push(Message::text(Role::User, user));
        messages
    }

    fn parse(&self, completion: &Message, _page: &Page, rules: Compat) -> ParsedCompletion {
        let text = completion.content.trim();
        let parts = text.split_once("<think>").and_then(|(_, rest)| rest.split_once("</think>"));
        let parts = parts.and_then(|(thought, rest)| {
            let rest = rest.trim_start().strip_prefix("<answer>")?;
            Some((thought, rest.split_once("</answer>")?.0))
        });
        let Some((thought, actions)) = parts else {
            return ParsedCompletion::new(None, Action::Noop(NoopReason::Malformed), false);
        };
        let first = actions.split("||").map(str::trim).find(|action| !action.is_empty()).unwrap_or_default();
        let action = Action::parse(first, rules);
        ParsedCompletion::new(Some(thought.trim().to_owned()), action, true)
    }

    fn render_action(&self, action: &Action) -> String {
        format!("<answer>{action}</answer>")
    }
}

fn state(conversation: &Conversation, at: usize, observed: &Observed) -> String {
    let n_taken = u32::try_from(at).unwrap_or(u32::MAX);
    format!(
        "\nTurn {}:\n{}State:\n{}\nAvailable actions: {}\nYou have {} actions left. Always answer \
         <think> your thoughts </think> <answer> your action </answer> and nothing else.\n",
        at + 1,
        observed.noop_line(),
        observed.observation,
        tags::action_list(&observed.available).join(", "),
        conversation.max_steps().saturating_sub(n_taken),
    )
}
