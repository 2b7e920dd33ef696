//! The shop as a Gymnasium environment for one customer.
//!
//! [`ShopEnv::reset`] starts a trip for a goal, [`ShopEnv::step`] takes one action. An episode is
//! `terminated` by the purchase and `truncated` by the step limit, never both; afterwards every
//! action is a no-op until the next reset, and nothing resets by itself.
//!
//! Action space: any [`Action`]; what can do something is listed in
//! [`Observation::available_actions`]. Observation space: text in the [`ObservationMode`] asked
//! for. Reward: 0 until the purchase, then 0 to 1 (see [`RewardBreakdown`]).
//!
//! Version history: `webshop-1`, the first; `webshop-2`, where searches cut words of every script, and emoji, as the
//! original's engine does.

use crate::action::{Action, NoopReason};
use crate::page::Page;
use crate::reward::RewardBreakdown;
use crate::session::{Fields, LastListing, Outcome, Session};
use crate::shop::Shop;
use crate::session::envelope::{Kind, SnapshotError, seal, unseal};
use crate::page::available_actions::AvailableActions;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use webshop_products::GoalId;

/// The name of this environment and of its rules; a change of behaviour changes it.
pub const ENVIRONMENT_ID: &str = "webshop-2";

/// How an episode is shown and bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnvConfig {
    /// After this many actions the episode is truncated; at least 1 is taken.
    pub max_steps: u32,
    /// In which form the page is shown.
    pub observation: ObservationMode,
}

impl Default for EnvConfig {
    fn default() -> Self {
        EnvConfig { max_steps: 15, observation: ObservationMode::Text }
    }
}

/// The forms in which a page can be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationMode {
    /// The whole document.
    Html,
    /// The visible text on one line.
    #[default]
    Text,
    /// The visible text, a line per piece, with what can be clicked marked.
    TextRich,
    /// The address.
    Url,
    /// The page's fields.
    Json,
}

/// What the customer is shown after a reset or a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The page, in the form asked for.
    pub content: String,
    /// The legal moves.
    pub available_actions: AvailableActions,
}

/// What one step brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The page after the action.
    pub observation: Observation,
    /// The purchase's worth, 0 to 1; 0 for every other action.
    pub reward: f64,
    /// Whether something has been bought.
    pub terminated: bool,
    /// Whether the step limit has ended the episode.
    pub truncated: bool,
    /// What else is known.
    pub info: StepInfo,
}

/// What a step tells beside the observation; an agent must not need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepInfo {
    /// Why the action did nothing, if so.
    pub noop: Option<NoopReason>,
    /// How the reward came about, if this action bought something.
    pub breakdown: Option<RewardBreakdown>,
}

/// One customer's environment.
#[derive(Clone, Debug)]
pub struct ShopEnv {
    shop: Arc<Shop>,
    config: EnvConfig,
    session: Session,
    page: Page,
    last_listing: LastListing,
}

impl ShopEnv {
    /// An environment that stands at the start of the shop's first goal.
    ///
    /// # Panics
    /// If the shop has no goals; one can be searched, but there is nothing to shop for.
    pub fn new(shop: Arc<Shop>, config: EnvConfig) -> ShopEnv {
        let session = Session::start(GoalId(0));
        let mut last_listing = LastListing::default();
        ShopEnv { page: session.page_with(&shop, &mut last_listing), shop, config, session, last_listing }
    }

    /// Starts a trip.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn reset(&mut self, goal: GoalId) -> Observation {
        self.resume(Session::start(goal))
    }

    /// Goes on from where a session stands.
    pub fn resume(&mut self, session: Session) -> Observation {
        self.session = session;
        self.page = self.session.page_with(&self.shop, &mut self.last_listing);
        self.observation()
    }

    /// Takes one action.
    pub fn step(&mut self, action: &Action) -> Step {
        let outcome = if self.is_over() {
            Outcome::passed(NoopReason::EpisodeOver)
        } else {
            self.session.act_with(&self.shop, &mut self.last_listing, action)
        };
        if outcome.noop.is_none() {
            self.page = self.session.page_after(&outcome, &self.shop, &mut self.last_listing);
        }
        Step {
            observation: self.observation(),
            reward: outcome.reward,
            terminated: self.is_terminated(),
            truncated: self.is_truncated(),
            info: StepInfo { noop: outcome.noop, breakdown: outcome.breakdown },
        }
    }

    /// This environment as bytes: how it is shown and bounded, and its session.
    pub fn snapshot(&self) -> Vec<u8> {
        seal(Kind::Env, self.shop.world(), &(&self.config, self.session.fields()))
    }

    /// The environment that [`ShopEnv::snapshot`] made these bytes of, in the same shop.
    ///
    /// # Errors
    /// As [`Session::restore`].
    pub fn restore(shop: Arc<Shop>, bytes: &[u8]) -> Result<ShopEnv, SnapshotError> {
        let (config, fields): (EnvConfig, Fields) = unseal(Kind::Env, shop.world(), bytes)?;
        let session = Session::from_fields(fields, &shop)?;
        let mut last_listing = LastListing::default();
        Ok(ShopEnv { page: session.page_with(&shop, &mut last_listing), shop, config, session, last_listing })
    }

    /// This environment `n` times over; each goes its own way. See [`Session::fork`] for what must
    /// be drawn anew.
    pub fn fork(&self, n: usize) -> Vec<ShopEnv> {
        vec![self.clone(); n]
    }

    /// The world this customer is in.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// The customer.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The page the customer is on.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Whether the episode has ended, one way or the other.
    pub fn is_over(&self) -> bool {
        self.is_terminated() || self.is_truncated()
    }

    /// Whether something has been bought.
    pub fn is_terminated(&self) -> bool {
        self.session.is_done()
    }

    /// Whether the step limit has ended the episode.
    pub fn is_truncated(&self) -> bool {
        !self.is_terminated() && self.session.steps() >= self.config.max_steps.max(1)
    }

    /// The page in the form asked for, and the legal moves; none once the episode is over.
    pub fn observation(&self) -> Observation {
        let content = match self.config.observation {
            ObservationMode::Html => self.page.html(),
            ObservationMode::Text => self.page.text(),
            ObservationMode::TextRich => self.page.text_rich(),
            ObservationMode::Url => self.page.url(&self.session.name()),
            ObservationMode::Json => {
                serde_json::to_string(&self.page).expect("a page holds strings and finite numbers only")
            }
        };
        Observation { content, available_actions: self.page.available_actions() }
    }
}
