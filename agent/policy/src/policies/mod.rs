//! Who acts: what a policy is, and those that need no model.
//!
//! A [`Policy`] is shown the lanes that wait for a move and answers one [`Move`] for each, in order. It
//! may use what a customer sees (the page) and, if it says so in its name, more: the oracle knows the
//! hidden goal. A [`PagePolicy`] makes do with what any shop's page shows, so it can shop at a site too.
//! All randomness comes from the seed and the lane's own coordinates.

pub mod exploits;
pub mod lm;
pub mod oracle;
pub mod random;
pub mod rule;
#[cfg(test)]
mod tests;


use webshop_env::{Action, AvailableActions, Compat, ForeignPage, NodeKind, NoopReason, Page, Session, Shop};

pub use crate::policies::oracle::OraclePolicy;
pub use crate::policies::random::RandomPolicy;
pub use crate::policies::rule::RulePolicy;
use crate::prompt_format::Utterance;
use crate::episode::{EpisodeCoordinates, EpisodeTurn, PromptStamp, TurnTokens};
use crate::error::AgentError;
use webshop_lm::StopReason;

/// One lane that waits for a move.
#[derive(Clone, Copy, Debug)]
pub struct LaneView<'a> {
    /// Position of the lane in the rollout's batch, stable over the episode.
    pub lane: usize,
    /// Where the lane's randomness is addressed.
    pub coordinates: EpisodeCoordinates,
    /// The shop it is in.
    pub shop: &'a Shop,
    /// The customer's state.
    pub session: &'a Session,
    /// The page to act on.
    pub page: &'a Page,
    /// Why the last action changed nothing, if it did.
    pub noop: Option<&'a NoopReason>,
    /// Turns taken so far.
    pub turn: usize,
    /// Turns after which the episode is cut.
    pub max_steps: u32,
}

impl<'a> LaneView<'a> {
    /// What the customer was told; every page but the last shows it.
    pub fn instruction(&self) -> &'a str {
        &self.shop.goals().get(self.session.goal()).instruction
    }

    /// What the page shows of itself.
    pub fn seen(&self) -> SeenPage {
        let products = match self.page {
            Page::Results(page) => page.items.iter().map(|item| item.id.as_str().to_lowercase()).collect(),
            _ => Vec::new(),
        };
        SeenPage {
            instruction: self.instruction().to_owned(),
            available: self.page.available_actions(),
            products,
            rules: self.shop.config().compat,
        }
    }

    /// The search for these words, as the shop reads it when it is said.
    pub(crate) fn search(&self, words: &str) -> Action {
        said_search(words, self.shop.config().compat)
    }
}

/// What a page shows of itself, be it our shop's or a site's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPage {
    /// What the customer was told.
    pub instruction: String,
    /// What can be done.
    pub available: AvailableActions,
    /// The labels of the listed products, first to last; none but on a page of results.
    pub products: Vec<String>,
    /// By which what is said is read.
    pub rules: Compat,
}

impl SeenPage {
    /// The page of a site, to a customer who was told `instruction`.
    pub fn of_site(page: &ForeignPage, instruction: &str) -> Self {
        let links = page.nodes.iter().filter(|node| node.kind == NodeKind::Link);
        Self {
            instruction: instruction.to_owned(),
            available: page.available_actions.clone(),
            products: links.map(|link| link.text.to_lowercase()).collect(),
            // A site gets the words themselves, so it reads whatever can be said.
            rules: Compat::Repaired,
        }
    }

    fn search(&self, words: &str) -> Action {
        said_search(words, self.rules)
    }
}

/// The search for these words, as it is read when it is said: on one line, in lower case. A policy that
/// did what cannot be said could not be made to do it again from its record.
fn said_search(words: &str, rules: Compat) -> Action {
    let line = words.replace('\n', " ");
    Action::parse(&format!("search[{line}]"), rules)
}

/// What a policy decides for one lane.
#[derive(Clone, Debug)]
pub struct Move {
    /// What to do; `None` if the policy cannot go on (no room left in its context).
    pub action: Option<Action>,
    /// The written thought before it, for language models.
    pub thought: Option<String>,
    /// The whole answer as it was written, for language models.
    pub answer: Option<String>,
    /// Whether the answer has the form that its dialect asks for.
    pub is_well_formed: bool,
    /// Whether the customer leaves the shop; the action is then none.
    pub leaves: bool,
    /// Why the answer ended, as far as that is known.
    pub stop: Option<StopReason>,
    /// The tokens behind it, for language models.
    pub tokens: Option<TurnTokens>,
}

impl Move {
    /// A move without words or tokens.
    pub fn of(action: Action) -> Self {
        Self {
            action: Some(action),
            thought: None,
            answer: None,
            is_well_formed: true,
            leaves: false,
            stop: None,
            tokens: None,
        }
    }

    /// Nothing more can be done.
    pub fn none() -> Self {
        Self { action: None, ..Self::of(Action::Noop(NoopReason::Malformed)) }
    }

    /// A written answer and what it was understood as.
    pub fn said(answer: String, utterance: Utterance, tokens: Option<TurnTokens>) -> Self {
        Self {
            action: Some(utterance.action),
            thought: utterance.thought,
            answer: Some(answer),
            is_well_formed: utterance.is_well_formed,
            leaves: utterance.leaves,
            stop: tokens.as_ref().map(|tokens| tokens.completion.stop),
            tokens,
        }
    }
}

/// Somebody who shops.
pub trait Policy {
    /// The name used on the command line and in results.
    fn name(&self) -> &'static str;

    /// Called once before anything is played on `n_lanes` lanes.
    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    /// Called before the first move of every episode, with the lane it is played on. Whoever remembers something
    /// of a lane forgets it here.
    fn enter(&mut self, _lane: usize) {}

    /// Called after [`Policy::enter`] for every turn of the [`crate::episode::prefix::Beginning`] that the episode goes on from, in order, with
    /// what there was to decide on before it. Whoever remembers something of a lane remembers the turn as if it had been its
    /// own, or says why that cannot be.
    fn recall(&mut self, _view: &LaneView<'_>, _turn: &EpisodeTurn) -> Result<(), AgentError> {
        Ok(())
    }

    /// One move for each lane, in the order of `lanes`.
    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError>;

    /// How the policy is spoken to; `None` for those who do not read.
    fn prompt(&self) -> Option<PromptStamp> {
        None
    }
}

/// Somebody who can shop wherever pages are shown, as nothing else is needed.
pub trait PagePolicy: Policy {
    /// What to do on a page after `turn` turns of the trip at `coordinates`.
    fn choose(&self, seen: &SeenPage, coordinates: EpisodeCoordinates, turn: usize) -> Action;
}
