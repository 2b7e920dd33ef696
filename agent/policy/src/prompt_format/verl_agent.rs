//! `verl-agent`: step prompts that stand alone, with the last two turns and the list of what can be done.
//!
//! ```text
//! user       the task · how many steps lie behind · [Observation k: '…', Action k: '…'] twice at most ·
//!            'part' [SEP] 'part' … · admissible actions, one a line, quoted
//! assistant  <think>…</think><action>click[buy now]</action>
//! ```
//!
//! An answer is lower-cased. It counts as well formed with both pairs of tags; without an action's, its last
//! 20 characters are taken for the action, which is hardly ever one.

use webshop_env::{Action, Compat, Page};

use crate::prompt_format::{AnswerForm, Utterance, tags};
use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::Dialogue;

pub const VERSION: &str = "verl-agent-v1";

pub const FORM: AnswerForm = AnswerForm {
    thought: Some(("<think>", "</think>")),
    search: ("<action>search[", "]</action>"),
    forbidden: &['<', '>', '[', ']'],
};

/// Turns of the past that are told.
const TOLD_TURNS: usize = 2;
/// Characters of an answer without tags that are taken for its action.
const LAST_CHARS: usize = 20;

/// The parts of the page behind the instruction, each in quotes.
pub fn observe(page: &Page) -> String {
    let nodes = page.nodes();
    let is_head = |text: &str| matches!(text.trim(), "WebShop" | "Instruction:");
    let instruction = nodes.iter().position(|node| !is_head(&node.text));
    // The page after the purchase has no instruction.
    let skipped = if matches!(page, Page::Done(_)) { 0 } else { instruction.map_or(0, |at| at + 1) };
    let parts: Vec<String> = nodes[skipped..].iter().map(|node| format!("'{}'", node.text.trim())).collect();
    parts.join(" [SEP] ")
}

pub fn messages(trip: &Dialogue) -> Vec<Message> {
    let mut text = format!(
        "You shop in the online shop WebShop, one action at a time.\nYour task: {}\n",
        trip.instruction()
    );
    let past = trip.past();
    if !past.is_empty() {
        let first = past.len().saturating_sub(TOLD_TURNS);
        text += &format!("You have taken {} step(s). The last of them:\n", past.len());
        for (at, turn) in past.iter().enumerate().skip(first) {
            let step = at + 1;
            text += &format!(
                "[Observation {step}: '{}', Action {step}: '{}']\n",
                turn.seen.observation, turn.action
            );
        }
    }
    let now = trip.now();
    text += &format!("This is step {}. You see: {}\n", past.len() + 1, now.observation);
    text += "Admissible actions:\n[\n";
    for action in tags::moves(&now.available) {
        text += &format!("'{action}',\n");
    }
    text += "]\n\nThink first, step by step, between <think> and </think>. Then choose one admissible action and \
             write it between <action> and </action>.";
    vec![Message::text(Role::User, text)]
}

pub fn parse(text: &str) -> Utterance {
    let text = text.to_lowercase();
    let thought = tags::between(&text, "<think>", "</think>").map(|thought| thought.trim().to_owned());
    let said = tags::between(&text, "<action>", "</action>");
    let is_well_formed = thought.is_some() && said.is_some();
    let action = said.unwrap_or_else(|| {
        let start = text.char_indices().rev().nth(LAST_CHARS - 1).map_or(0, |(at, _)| at);
        &text[start..]
    });
    Utterance::of(thought, Action::parse(action.trim(), Compat::Repaired), is_well_formed)
}
