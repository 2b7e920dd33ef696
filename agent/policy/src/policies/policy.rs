//! The traits of policies, what they see, and what they decide.
//!
//! A [`Policy`] gets a [`LaneView`] of each running lane and returns a [`Decision`] for each, in order. A
//! [`PagePolicy`] needs no more than a [`VisiblePage`], so it also runs at web sites. All random draws come
//! from the seed and the lane's coordinates.

use webshop_env::{Action, AvailableActions, Compat, ForeignPage, NodeKind, NoopReason, Page, Session, Shop};

use crate::episode::{EpisodeCoordinates, ModelTurn, PromptProvenance, Turn, TurnTokens};
use crate::error::AgentError;
use crate::prompt_format::ParsedCompletion;

/// A running lane before its next action.
#[derive(Clone, Copy, Debug)]
pub struct LaneView<'a> {
    /// The lane's position, the same during an episode.
    pub lane: usize,
    /// The address of the lane's random draws.
    pub coordinates: EpisodeCoordinates,
    /// The shop.
    pub shop: &'a Shop,
    /// The state of the episode.
    pub session: &'a Session,
    /// The current page.
    pub page: &'a Page,
    /// Why the previous action did nothing; `None` if it did something or there is none.
    pub noop: Option<NoopReason>,
    /// The number of turns taken.
    pub turn: usize,
    /// The number of actions after which the episode is truncated.
    pub max_steps: u32,
}

impl<'a> LaneView<'a> {
    /// The goal's instruction. Every page but the last shows it.
    pub fn instruction(&self) -> &'a str {
        &self.shop.goals().get(self.session.goal()).instruction
    }

    /// The part of the view that any shop's page shows.
    pub fn visible_page(&self) -> VisiblePage {
        let products = match self.page {
            Page::Results(page) => page.items.iter().map(|item| item.id.as_str().to_lowercase()).collect(),
            _ => Vec::new(),
        };
        VisiblePage {
            instruction: self.instruction().to_owned(),
            available: self.page.available_actions(),
            products,
            rules: self.shop.config().compat,
        }
    }

    /// The search for `words` as the shop parses it.
    pub(crate) fn search(&self, words: &str) -> Action {
        parse_search(words, self.shop.config().compat)
    }
}

/// What a page shows, in our shop or at a web site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisiblePage {
    /// The goal's instruction.
    pub instruction: String,
    /// The available actions.
    pub available: AvailableActions,
    /// The labels of the listed products in order; empty except on a results page.
    pub products: Vec<String>,
    /// The rules by which actions are parsed.
    pub rules: Compat,
}

impl VisiblePage {
    /// The page of a web site in an episode with this instruction.
    pub fn of_site(page: &ForeignPage, instruction: &str) -> Self {
        let links = page.nodes.iter().filter(|node| node.kind == NodeKind::Link);
        Self {
            instruction: instruction.to_owned(),
            available: page.available_actions.clone(),
            products: links.map(|link| link.text.to_lowercase()).collect(),
            // A site gets the words themselves, so every action can be parsed.
            rules: Compat::Repaired,
        }
    }

    pub(crate) fn search(&self, words: &str) -> Action {
        parse_search(words, self.rules)
    }
}

/// The search for `words` as its text is parsed: one line, lower case. Only such actions can be replayed from
/// a recording.
fn parse_search(words: &str, rules: Compat) -> Action {
    let line = words.replace('\n', " ");
    Action::parse(&format!("search[{line}]"), rules)
}

/// What a policy decides for one lane.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Take an action.
    Act {
        /// The action.
        action: Action,
        /// The policy's part of the recording.
        turn: ModelTurn,
    },
    /// End the episode without a purchase. It is recorded as a turn with a no-op.
    Terminate {
        /// The policy's part of the recording.
        turn: ModelTurn,
    },
    /// End the episode without a turn, because the policy cannot continue (its context is full).
    Stop,
}

impl Decision {
    /// The action of a policy without completions.
    pub fn act(action: Action) -> Self {
        Self::Act { action, turn: ModelTurn::default() }
    }

    /// The decision of a parsed completion, given its text and tokens.
    pub fn completed(text: String, parsed: ParsedCompletion, tokens: Option<TurnTokens>) -> Self {
        let turn = ModelTurn {
            thought: parsed.thought,
            completion: Some(text),
            is_well_formed: parsed.is_well_formed,
            terminates: parsed.terminates,
            stop: tokens.as_ref().map(|tokens| tokens.completion.stop),
            tokens,
        };
        match parsed.terminates {
            true => Self::Terminate { turn },
            false => Self::Act { action: parsed.action, turn },
        }
    }

    /// The action; `None` if the episode ends.
    pub fn action(&self) -> Option<&Action> {
        match self {
            Self::Act { action, .. } => Some(action),
            Self::Terminate { .. } | Self::Stop => None,
        }
    }
}

/// A policy: decides the next action on each lane.
pub trait Policy {
    /// The name, as on the command line and in results.
    fn name(&self) -> &'static str;

    /// Called once before a rollout on `n_lanes` lanes.
    ///
    /// # Errors
    /// If the policy cannot run on so many lanes.
    fn begin_rollout(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    /// Called before the first action of each episode. A policy with a memory clears that of the lane.
    fn begin_episode(&mut self, _lane: usize) {}

    /// Called after [`Policy::begin_episode`] for each turn of the [`EpisodePrefix`](crate::EpisodePrefix) that the
    /// episode continues, in order, with the view before the turn. A policy with a memory adds the turn to it
    /// as if it had taken it.
    ///
    /// # Errors
    /// If the policy would have seen another prompt.
    fn replay_turn(&mut self, _view: &LaneView<'_>, _turn: &Turn) -> Result<(), AgentError> {
        Ok(())
    }

    /// One decision for each lane, in the order of `lanes`.
    ///
    /// # Errors
    /// If a decision cannot be computed.
    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError>;

    /// How prompts are rendered and completions sampled; `None` for policies without prompts.
    fn prompt(&self) -> Option<PromptProvenance> {
        None
    }
}

/// A policy that needs only the page, so that it also runs at web sites.
pub trait PagePolicy: Policy {
    /// The action on a page after `turn` turns of the episode at `coordinates`.
    fn choose(&self, page: &VisiblePage, coordinates: EpisodeCoordinates, turn: usize) -> Action;
}
