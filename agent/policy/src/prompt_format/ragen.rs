//! `ragen`: a chat of numbered turns, with the steps that are left.
//!
//! ```text
//! system     who the model is
//! user       the task and its rules · Turn 1: · State: … · what can be done · steps left and the form of answers
//! assistant  <think>…</think><answer>click[buy now]</answer>
//! user       Reward: 0.0 · Turn 2: · State: …
//! ```
//!
//! Deviation: there, `||` parts several actions of one answer; here a turn is one action, and what follows the
//! first `||` is dropped. The reward of a turn that has a next one is always 0, so it is a part of the form and
//! tells nothing.

use webshop_env::{Action, Compat, NoopReason};

use crate::prompt_format::{AnswerForm, Utterance, tags};
use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::{Dialogue, Seen};

pub const VERSION: &str = "ragen-v1";

pub const FORM: AnswerForm = AnswerForm {
    thought: Some(("<think>", "</think>")),
    search: ("<answer>search[", "]</answer>"),
    forbidden: &['<', '>', '[', ']', '|'],
};

const SYSTEM: &str = "You help people to shop online.";

const TASK: &str = "You are in an online shop. Find and buy what is wanted: search with `search[words]`, open a product \
     or press what is written on the page with `click[text]`, choose its options, and finish with \
     `click[buy now]`.\n";

pub fn messages(trip: &Dialogue) -> Vec<Message> {
    let mut messages = vec![Message::text(Role::System, SYSTEM)];
    let mut shown = format!("{TASK}Wanted: {}\n", trip.instruction());
    for (at, turn) in trip.past().iter().enumerate() {
        shown += &state(trip, at, &turn.seen);
        messages.push(Message::text(Role::User, std::mem::take(&mut shown)));
        messages.push(turn.answer.clone());
        shown += "Reward:\n0.0\n";
    }
    shown += &state(trip, trip.past().len(), trip.now());
    messages.push(Message::text(Role::User, shown));
    messages
}

fn state(trip: &Dialogue, at: usize, seen: &Seen) -> String {
    let noop = seen.noop.map(|reason| format!("Nothing happened: {reason}.\n")).unwrap_or_default();
    format!(
        "\nTurn {}:\n{noop}State:\n{}\nAvailable actions: {}\nYou have {} actions left. Always answer \
         <think> your thoughts </think> <answer> your action </answer> and nothing else.\n",
        at + 1,
        seen.observation,
        tags::moves(&seen.available).join(", "),
        trip.max_steps().saturating_sub(at as u32),
    )
}

pub fn parse(text: &str) -> Utterance {
    let parts = text.split_once("<think>").and_then(|(_, rest)| rest.split_once("</think>"));
    let answer = parts.and_then(|(thought, rest)| {
        let rest = rest.trim_start().strip_prefix("<answer>")?;
        Some((thought, rest.split_once("</answer>")?.0))
    });
    match answer {
        Some((thought, answer)) => {
            let first =
                answer.split("||").map(str::trim).find(|action| !action.is_empty()).unwrap_or_default();
            Utterance::of(Some(thought.trim().to_owned()), Action::parse(first, Compat::Repaired), true)
        }
        None => Utterance::of(None, Action::Noop(NoopReason::Malformed), false),
    }
}
