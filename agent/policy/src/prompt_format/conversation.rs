//! The observations and completions of one episode, from which prompts are rendered.

use std::sync::Arc;

use webshop_env::{Action, AvailableActions, NoopReason};
use webshop_lm::chat::Message;

/// An observation: what the model is shown before a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The page, rendered by the prompt format.
    pub observation: String,
    /// The available actions.
    pub available: AvailableActions,
    /// Why the previous action did nothing; `None` if it did something or there is none.
    pub noop: Option<NoopReason>,
}

impl Observed {
    /// `Nothing happened: <reason>.` and a line break after a no-op, else empty.
    pub(super) fn noop_line(&self) -> String {
        self.noop.map(|reason| format!("Nothing happened: {reason}.\n")).unwrap_or_default()
    }
}

/// A completed turn.
#[derive(Clone, Debug, PartialEq)]
pub struct PastTurn {
    /// The observation before the turn.
    pub observed: Observed,
    /// The completion.
    pub completion: Message,
    /// The parsed action.
    pub action: Action,
}

/// The conversation of one episode. [`PromptFormat`](super::PromptFormat) adds observations and completions.
#[derive(Clone, Debug)]
pub struct Conversation {
    instruction: Arc<str>,
    max_steps: u32,
    past: Vec<PastTurn>,
    current: Option<Observed>,
}

impl Conversation {
    /// A conversation without turns, for an episode that is truncated after `max_steps` actions.
    pub fn new(instruction: Arc<str>, max_steps: u32) -> Self {
        Self { instruction, max_steps, past: Vec::new(), current: None }
    }

    /// The goal's instruction.
    pub fn instruction(&self) -> &str {
        &self.instruction
    }

    /// Actions after which the episode is truncated.
    pub fn max_steps(&self) -> u32 {
        self.max_steps
    }

    /// The completed turns, in order.
    pub fn past(&self) -> &[PastTurn] {
        &self.past
    }

    /// The observation of the current turn.
    ///
    /// # Panics
    /// If no page was added since the last completion.
    pub fn current(&self) -> &Observed {
        self.current.as_ref().expect("a page is added before a turn")
    }

    pub(super) fn add_observation(&mut self, observed: Observed) {
        self.current = Some(observed);
    }

    pub(super) fn add_completion(&mut self, completion: Message, action: Action) {
        let observed = self.current.take().expect("a page is added before a turn");
        self.past.push(PastTurn { observed, completion, action });
    }
}
