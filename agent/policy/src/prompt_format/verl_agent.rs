//! `verl-agent`: one prompt per turn, with the last two turns and the list of available actions.
//!
//! ```text
//! user       task · number of steps taken · [Observation k: '…', Action k: '…'] at most twice ·
//!            'part' [SEP] 'part' … · available actions, one a line, quoted
//! assistant  <think>…</think><action>click[buy now]</action>
//! ```
//!
//! Completions are lower-cased. A completion with both pairs of tags is well formed. Without the tags of the
//! action its last 20 characters are parsed as the action, which usually makes it a no-op.

use webshop_env::{Action, Compat, Page};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::Conversation;
use crate::prompt_format::format::{Format, History};
use crate::prompt_format::tags;

/// Past turns in a prompt.
const SHOWN_TURNS: usize = 2;
/// Characters at the end of a completion without tags that are parsed as its action.
const LAST_CHARS: usize = 20;

pub(super) struct VerlAgent;

impl Format for VerlAgent {
    fn name(&self) -> &'static str {
        "verl-agent"
    }

    fn version(&self) -> &'static str {
        "verl-agent-v1"
    }

    fn history(&self) -> History {
        History::Rebuild
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: Some(("<think>", "</think>")),
            search: ("<action>search[", "]</action>"),
            forbidden: &['<', '>', '[', ']'],
        }
    }

    /// The parts of the page after the instruction, each in quotes.
    fn observation(&self, page: &Page) -> String {
        let nodes = page.nodes();
        let is_head = |text: &str| matches!(text.trim(), "WebShop" | "Instruction:");
        let instruction = nodes.iter().position(|node| !is_head(&node.text));
        // The page after the purchase has no instruction.
        let n_skipped = if matches!(page, Page::Done(_)) { 0 } else { instruction.map_or(0, |at| at + 1) };
        let parts: Vec<String> =
            nodes[n_skipped..].iter().map(|node| format!("'{}'", node.text.trim())).collect();
        parts.join(" [SEP] ")
    }

    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let mut text = format!(
            "You shop in the online shop WebShop, one action at a time.\nYour task: {}\n",
            conversation.instruction()
        );
        let past = conversation.past();
        if !past.is_empty() {
            let first = past.len().saturating_sub(SHOWN_TURNS);
            text += &format!("You have taken {} step(s). The last of them:\n", past.len());
            for (at, turn) in past.iter().enumerate().skip(first) {
                let step = at + 1;
                text += &format!(
                    "[Observation {step}: '{}', Action {step}: '{}']\n",
                    turn.observed.observation, turn.action
                );
            }
        }
        let current = conversation.current();
        text += &format!("This is step {}. You see: {}\n", past.len() + 1, current.observation);
        text += "Admissible actions:\n[\n";
        for action in tags::action_list(&current.available) {
            text += &format!("'{action}',\n");
        }
        text += "]\n\nThink first, step by step, between <think> and </think>. Then choose one admissible action and \
                 write it between <action> and </action>.";
        vec![Message::text(Role::User, text)]
    }

    fn parse(&self, completion: &Message, _page: &Page, rules: Compat) -> ParsedCompletion {
        let text = completion.content.trim().to_lowercase();
        let thought = tags::between(&text, "<think>", "</think>").map(|thought| thought.trim().to_owned());
        let tagged = tags::between(&text, "<action>", "</action>");
        let is_well_formed = thought.is_some() && tagged.is_some();
        let action = tagged.unwrap_or_else(|| {
            let start = text.char_indices().rev().nth(LAST_CHARS - 1).map_or(0, |(at, _)| at);
            &text[start..]
        });
        ParsedCompletion::new(thought, Action::parse(action.trim(), rules), is_well_formed)
    }

    fn render_action(&self, action: &Action) -> String {
        format!("<action>{action}</action>")
    }
}
