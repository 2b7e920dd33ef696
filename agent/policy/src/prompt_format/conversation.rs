//! A trip as it is told to a chat model.
//!
//! A [`Dialogue`] keeps what was seen and said, turn by turn, as its [`Dialect`] shows it. [`Dialogue::see`] takes
//! the page, [`Dialogue::messages`] is what the model is asked with, [`Dialogue::say`] takes its answer. Nothing of
//! a trip is told that the customer did not see.

use std::sync::Arc;

use webshop_env::{Action, AvailableActions, NoopReason, Page};

use webshop_lm::Message;
use crate::prompt_format::{Dialect, Utterance};

/// What a customer sees before a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The page as the dialect shows it.
    pub observation: String,
    /// What can be done on it.
    pub available: AvailableActions,
    /// Why the turn before changed nothing, if it did not.
    pub noop: Option<NoopReason>,
}

/// A turn that lies behind.
#[derive(Clone, Debug, PartialEq)]
pub struct PastTurn {
    /// What was seen before it.
    pub seen: Seen,
    /// What was answered.
    pub answer: Message,
    /// What was done.
    pub action: Action,
}

/// A trip in the making.
#[derive(Clone, Debug)]
pub struct Dialogue {
    dialect: Dialect,
    instruction: Arc<str>,
    max_steps: u32,
    past: Vec<PastTurn>,
    now: Option<Seen>,
}

impl Dialogue {
    /// A trip with this instruction that is cut after `max_steps` actions, before its first page.
    pub fn new(dialect: Dialect, instruction: Arc<str>, max_steps: u32) -> Self {
        Self { dialect, instruction, max_steps, past: Vec::new(), now: None }
    }

    /// The format it is told in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What is to be bought.
    pub fn instruction(&self) -> &str {
        &self.instruction
    }

    /// Actions after which the trip is cut.
    pub fn max_steps(&self) -> u32 {
        self.max_steps
    }

    /// The turns so far, in order.
    pub fn past(&self) -> &[PastTurn] {
        &self.past
    }

    /// What there is to see.
    ///
    /// # Panics
    /// If no page has been seen since the last answer.
    pub fn now(&self) -> &Seen {
        self.now.as_ref().expect("a page is seen before a turn")
    }

    /// Takes the page to act on; `noop` says why the last action changed nothing, if it did not.
    pub fn see(&mut self, page: &Page, noop: Option<NoopReason>) {
        let observation = self.dialect.observe(page);
        self.now = Some(Seen { observation, available: page.available_actions(), noop });
    }

    /// What the model is asked with for its next turn.
    ///
    /// # Panics
    /// If no page has been seen since the last answer; so does [`Dialogue::say`].
    pub fn messages(&self) -> Vec<Message> {
        self.dialect.messages(self)
    }

    /// Takes the answer and tells what it means on `page`, which is the one that was seen last.
    pub fn say(&mut self, answer: Message, page: &Page) -> Utterance {
        let utterance = self.dialect.parse(&answer, page);
        let seen = self.now.take().expect("a page is seen before a turn");
        self.past.push(PastTurn { seen, answer, action: utterance.action.clone() });
        utterance
    }
}
