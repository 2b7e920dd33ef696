//! The shop as a Gymnasium environment for one agent.
//!
//! [`ShopEnv::reset`] starts an episode for a goal, [`ShopEnv::step`] takes one action. An episode is
//! `terminated` by the purchase and `truncated` by the step limit, never both; afterwards every action is a
//! no-op until the next reset. Nothing resets by itself.
//!
//! - Actions: any [`Action`]; [`Observation::available_actions`] lists the clicks that do something.
//! - Observations: text in an [`ObservationMode`], rendered when [`Observation::content`] is called.
//! - Rewards: 0 until the purchase, then 0 to 1 (see [`RewardBreakdown`]).
//!
//! For the version history see [`crate::ENVIRONMENT_ID`].

use crate::action::{Action, NoopReason};
use crate::page::Page;
use crate::page::available_actions::AvailableActions;
use crate::page::observation_mode::ObservationMode;
use crate::reward::RewardBreakdown;
use crate::session::envelope::{Kind, SnapshotError, seal, unseal};
use crate::session::{Fields, LastListing, Outcome, Session};
use crate::shop::Shop;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;
use webshop_products::GoalId;

/// Observation mode and step limit of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnvConfig {
    /// The number of actions after which an episode is truncated; 0 counts as 1.
    pub max_steps: u32,
    /// The text form of observations.
    pub observation: ObservationMode,
}

impl Default for EnvConfig {
    fn default() -> Self {
        EnvConfig { max_steps: 15, observation: ObservationMode::Text }
    }
}

/// The observation after a reset or a step: a page, rendered in the environment's mode when it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    page: Arc<Page>,
    mode: ObservationMode,
    /// The session's name, which only a URL shows.
    session: Option<Box<str>>,
}

impl Observation {
    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// The page as text in the environment's mode. Renders the page.
    pub fn content(&self) -> String {
        self.page.render(self.mode, self.session.as_deref().unwrap_or_default())
    }

    /// The available actions; none once the episode has terminated.
    pub fn available_actions(&self) -> AvailableActions {
        self.page.available_actions()
    }
}

impl Serialize for Observation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Observation", 2)?;
        fields.serialize_field("content", &self.content())?;
        fields.serialize_field("available_actions", &self.available_actions())?;
        fields.end()
    }
}

/// The result of one step, as in Gymnasium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The page after the action.
    pub observation: Observation,
    /// The reward of a purchase, 0 to 1; 0 for every other action.
    pub reward: f64,
    /// Whether the episode has ended by a purchase.
    pub terminated: bool,
    /// Whether the step limit has ended the episode.
    pub truncated: bool,
    /// Diagnostics.
    pub info: StepInfo,
}

/// Diagnostics of a step; an agent must not need them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepInfo {
    /// Why the action did nothing; `None` if it did something.
    pub noop: Option<NoopReason>,
    /// How the reward came about; `None` without a purchase.
    pub breakdown: Option<RewardBreakdown>,
}

/// An environment for one agent.
#[derive(Clone, Debug)]
pub struct ShopEnv {
    shop: Arc<Shop>,
    config: EnvConfig,
    session: Session,
    page: Arc<Page>,
    last_listing: LastListing,
}

impl ShopEnv {
    /// An environment at the start of the shop's first goal.
    ///
    /// # Panics
    /// If the shop has no goals.
    pub fn new(shop: Arc<Shop>, config: EnvConfig) -> ShopEnv {
        ShopEnv::at(shop, config, Session::start(GoalId(0)))
    }

    fn at(shop: Arc<Shop>, config: EnvConfig, session: Session) -> ShopEnv {
        let mut last_listing = LastListing::default();
        let page = Arc::new(session.page_with(&shop, &mut last_listing));
        ShopEnv { shop, config, session, page, last_listing }
    }

    /// Starts an episode.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn reset(&mut self, goal: GoalId) -> Observation {
        self.resume(Session::start(goal))
    }

    /// Continues from the state of `session`.
    pub fn resume(&mut self, session: Session) -> Observation {
        self.session = session;
        self.page = Arc::new(self.session.page_with(&self.shop, &mut self.last_listing));
        self.observation()
    }

    /// Takes one action.
    pub fn step(&mut self, action: &Action) -> Step {
        let outcome = if self.is_over() {
            Outcome::noop(NoopReason::EpisodeOver)
        } else {
            self.session.act_with(&self.shop, &mut self.last_listing, action)
        };
        if outcome.noop.is_none() {
            self.page = Arc::new(self.session.page_after(&outcome, &self.shop, &mut self.last_listing));
        }
        Step {
            observation: self.observation(),
            reward: outcome.reward,
            terminated: self.is_terminated(),
            truncated: self.is_truncated(),
            info: StepInfo { noop: outcome.noop, breakdown: outcome.breakdown },
        }
    }

    /// The configuration and the session as bytes.
    pub fn snapshot(&self) -> Vec<u8> {
        seal(Kind::Env, self.shop.snapshot_digest(), &(&self.config, self.session.fields()))
    }

    /// The environment of a [`ShopEnv::snapshot`] taken in the same shop.
    ///
    /// # Errors
    /// As [`Session::restore`].
    pub fn restore(shop: Arc<Shop>, bytes: &[u8]) -> Result<ShopEnv, SnapshotError> {
        let (config, fields): (EnvConfig, Fields) = unseal(Kind::Env, shop.snapshot_digest(), bytes)?;
        let session = Session::from_fields(fields, &shop)?;
        Ok(ShopEnv::at(shop, config, session))
    }

    /// `n` independent copies of this environment. See [`Session::fork`] for the seeding of copies.
    pub fn fork(&self, n: usize) -> Vec<ShopEnv> {
        vec![self.clone(); n]
    }

    /// The shop.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// Observation mode and step limit.
    pub fn config(&self) -> EnvConfig {
        self.config
    }

    /// The state of the episode.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The current page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Whether the episode has terminated or was truncated.
    pub fn is_over(&self) -> bool {
        self.is_terminated() || self.is_truncated()
    }

    /// Whether the episode has ended by a purchase.
    pub fn is_terminated(&self) -> bool {
        self.session.is_done()
    }

    /// Whether the step limit has ended the episode.
    pub fn is_truncated(&self) -> bool {
        !self.is_terminated() && self.session.steps() >= self.config.max_steps.max(1)
    }

    /// The current page as an observation.
    pub fn observation(&self) -> Observation {
        let mode = self.config.observation;
        let session = (mode == ObservationMode::Url).then(|| self.session.name().into());
        Observation { page: Arc::clone(&self.page), mode, session }
    }
}
