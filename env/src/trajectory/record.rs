//! A recorded episode, and its replay.
//!
//! An [`Episode`] is one line of a rollout file: shop, goal, actions turn by turn, and the result. Before the
//! first turn and after each it holds a [`TransitionDigest`]: digests of the state, of the observation and of
//! the available actions. [`Episode::replay`] plays the actions again and returns the first [`Difference`].
//!
//! A crate that records more adds its own fields through the type parameters: `T` for each turn, `M` for the
//! whole episode. Their fields are written beside those of this crate, and readers ignore unknown fields. For
//! the history of the format see [`EPISODE_FORMAT`].
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use webshop_env::{Action, EnvConfig, Episode, ShopEnv};
//! # use std::sync::Arc;
//! # use webshop_env::Shop;
//! # use webshop_products::{EmbeddedCatalog, GoalKind};
//! # let shop = Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both));
//!
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
//! struct ModelTurn {
//!     thought: Option<String>,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
//! struct EpisodeMeta {
//!     policy: String,
//! }
//!
//! let mut env = ShopEnv::new(Arc::clone(&shop), EnvConfig::default());
//! let mut episode = Episode::new(&env, EpisodeMeta { policy: "by-hand".into() });
//! let step = env.step(&Action::Search("lamps".into()));
//! let turn = ModelTurn { thought: Some("Lamps light rooms.".into()) };
//! episode.push(&env, Action::Search("lamps".into()), &step, turn);
//!
//! let line = serde_json::to_string(&episode)?;
//! assert!(line.contains(r#""action":"search[lamps]""#) && line.ends_with(r#""policy":"by-hand"}"#));
//! assert_eq!(Episode::read(&line), Ok(episode.clone()));
//! assert_eq!(episode.replay(&shop), Ok(None));
//! // The fields of this crate can be read without the types of the other one.
//! assert!(Episode::<()>::read(&line).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::action::{Action, NoopReason};
use crate::original::compat::Compat;
use crate::reward::RewardBreakdown;
use crate::session::Session;
use crate::shop::Shop;
use crate::shop_env::{EnvConfig, Observation, ShopEnv, Step};
use crate::version::{ENVIRONMENT_ID, EPISODE_FORMAT};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use webshop_products::{Digest, GoalId, NoSuchGoal, line_problem};

/// Digests of the state at one point of an episode: before the first turn or after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TransitionDigest {
    /// Digest of the session, see [`Session::digest`].
    pub state: Digest,
    /// Digest of the observation's content, in the mode of the episode's [`EnvConfig`].
    pub observation: Digest,
    /// Digest of the available actions: whether there is a search bar, and every label in order.
    pub actions: Digest,
}

impl TransitionDigest {
    /// The digests of a state and its observation. Renders the observation.
    pub fn of(session: &Session, observation: &Observation) -> TransitionDigest {
        let actions = serde_json::to_vec(&observation.available_actions());
        TransitionDigest {
            state: session.digest(),
            observation: Digest::of(observation.content().as_bytes()),
            actions: Digest::of(&actions.expect("labels are all valid JSON")),
        }
    }
}

/// One turn of an [`Episode`], with further fields `T`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TurnFields<T>", bound(deserialize = "T: Deserialize<'de>"))]
pub struct Turn<T = ()> {
    /// The action; written as its text, which is `noop` for [`Action::Noop`].
    #[serde(serialize_with = "action_text")]
    pub action: Action,
    /// Why the action did nothing; `None` if it did something.
    pub noop: Option<NoopReason>,
    /// The reward of the action.
    pub reward: f64,
    /// Digests of the state after the action.
    pub after: TransitionDigest,
    /// Further fields of the turn.
    #[serde(flatten)]
    pub agent: T,
}

/// The fields of a [`Turn`] as they are written.
#[derive(Deserialize)]
struct TurnFields<T> {
    action: String,
    noop: Option<NoopReason>,
    reward: f64,
    after: TransitionDigest,
    #[serde(flatten)]
    agent: T,
}

impl<T> TryFrom<TurnFields<T>> for Turn<T> {
    type Error = String;

    fn try_from(fields: TurnFields<T>) -> Result<Self, String> {
        let TurnFields { action, noop, reward, after, agent } = fields;
        let action = match (Action::from_display(&action), noop) {
            // The text of a no-op does not hold its reason.
            (Some(Action::Noop(_)), Some(reason)) => Action::Noop(reason),
            (Some(action), _) => action,
            (None, _) => {
                return Err(format!("`{action}` is not `search[…]`, `click[…]` or `noop`"));
            }
        };
        Ok(Turn { action, noop, reward, after, agent })
    }
}

fn action_text<S: Serializer>(action: &Action, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(action)
}

/// An episode as one line of a rollout file, with further fields `T` for each turn and `M` for the episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode<T = (), M = ()> {
    /// [`EPISODE_FORMAT`].
    pub format: String,
    /// [`ENVIRONMENT_ID`].
    pub environment: String,
    /// Fingerprint of the goal set, which covers the catalog.
    pub goal_fingerprint: String,
    /// The rules of the shop.
    pub rules: Compat,
    /// Observation mode and step limit.
    pub config: EnvConfig,
    /// The goal.
    pub goal: GoalId,
    /// Digests of the state before the first turn.
    pub start: TransitionDigest,
    /// The turns in order.
    #[serde(bound(deserialize = "T: Deserialize<'de>"))]
    pub turns: Vec<Turn<T>>,
    /// The sum of the turns' rewards.
    pub reward: f64,
    /// How the reward came about; `None` without a purchase.
    pub breakdown: Option<RewardBreakdown>,
    /// Whether the episode ended by a purchase.
    pub terminated: bool,
    /// Whether the episode was cut, by the step limit or by an agent that could not continue.
    pub truncated: bool,
    /// Further fields of the episode.
    #[serde(flatten)]
    pub meta: M,
}

impl<T, M> Episode<T, M> {
    /// The record of an episode that begins in the present state of `env`, without any turns.
    pub fn new(env: &ShopEnv, meta: M) -> Self {
        Episode {
            format: EPISODE_FORMAT.into(),
            environment: ENVIRONMENT_ID.into(),
            goal_fingerprint: env.shop().goals().fingerprint().into(),
            rules: env.shop().config().compat,
            config: env.config(),
            goal: env.session().goal(),
            start: TransitionDigest::of(env.session(), &env.observation()),
            turns: Vec::new(),
            reward: 0.0,
            breakdown: None,
            terminated: false,
            truncated: false,
            meta,
        }
    }

    /// Adds a turn: `action`, which took `env` to its present state and returned `step`.
    pub fn push(&mut self, env: &ShopEnv, action: Action, step: &Step, agent: T) {
        self.reward += step.reward;
        self.breakdown = step.info.breakdown;
        self.terminated = step.terminated;
        self.truncated = step.truncated;
        let after = TransitionDigest::of(env.session(), &step.observation);
        self.turns.push(Turn { action, noop: step.info.noop, reward: step.reward, after, agent });
    }
}

/// A line that is not a recorded episode of this shop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EpisodeError {
    /// The line is not JSON, or a field is missing or invalid.
    #[error("not a recorded episode: {0}")]
    Malformed(String),
    /// The record has the format of another version.
    #[error("the episode has the format `{found}`; this version replays `{EPISODE_FORMAT}`")]
    Format {
        /// The format of the record.
        found: String,
    },
    /// The shop of the record has other rules or goals.
    #[error("the episode was recorded with the {what} `{recorded}`; this shop has `{here}`")]
    OtherShop {
        /// The part that differs.
        what: &'static str,
        /// Its value in the record.
        recorded: String,
        /// Its value in the shop.
        here: String,
    },
    /// The shop has no such goal.
    #[error(transparent)]
    NoSuchGoal(#[from] NoSuchGoal),
}

/// The first value of a replay that is not as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The turn after which it differs, from 1; 0 is before the first turn.
    pub turn: usize,
    /// The action of that turn; empty before the first turn.
    pub action: String,
    /// The name of the value: `observation`, `actions`, `reward`, …
    pub what: &'static str,
    /// The recorded value.
    pub recorded: String,
    /// The value of the replay.
    pub now: String,
    /// The text of which the replay's value is a digest; empty if it is no digest.
    pub in_full: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.turn {
            0 => write!(f, "before the first turn, ")?,
            turn => write!(f, "after turn {turn}, `{}`, ", self.action)?,
        }
        write!(f, "`{}` differs\n  recorded  {}\n  now       {}", self.what, self.recorded, self.now)?;
        if !self.in_full.is_empty() {
            write!(f, "\n  in full   {}", self.in_full)?;
        }
        Ok(())
    }
}

impl<T: DeserializeOwned, M: DeserializeOwned> Episode<T, M> {
    /// Reads one line of a rollout file.
    ///
    /// # Errors
    /// [`EpisodeError::Malformed`] and [`EpisodeError::Format`].
    pub fn read(line: &str) -> Result<Self, EpisodeError> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
        }
        let malformed = |error| EpisodeError::Malformed(line_problem(&error));
        let head: Head = serde_json::from_str(line).map_err(malformed)?;
        match head.format {
            Some(format) if format == EPISODE_FORMAT => serde_json::from_str(line).map_err(malformed),
            Some(found) => Err(EpisodeError::Format { found }),
            None => Err(EpisodeError::Malformed("missing field `format`".into())),
        }
    }
}

impl<T, M> Episode<T, M> {
    /// Plays the recorded actions again and returns the first difference, if any. Compares state,
    /// observation, available actions, reward and no-op reason of every turn, and the end of the episode.
    ///
    /// # Errors
    /// [`EpisodeError`], if the episode belongs to another shop.
    pub fn replay(&self, shop: &Arc<Shop>) -> Result<Option<Difference>, EpisodeError> {
        self.check_shop(shop)?;
        let mut env = ShopEnv::new(Arc::clone(shop), self.config);
        let start = env.reset(self.goal);
        let mut comparison = Comparison { turn: 0, action: String::new() };
        if let Some(difference) = comparison.digests(&env, &start, self.start) {
            return Ok(Some(difference));
        }
        let (mut reward, mut breakdown) = (0.0, None);
        for (turn, number) in self.turns.iter().zip(1..) {
            comparison = Comparison { turn: number, action: turn.action.to_string() };
            let step = env.step(&turn.action);
            reward += step.reward;
            breakdown = step.info.breakdown;
            let difference = comparison
                .values("noop", &turn.noop, &step.info.noop)
                .or_else(|| comparison.digests(&env, &step.observation, turn.after))
                .or_else(|| comparison.values("reward", &turn.reward, &step.reward));
            if difference.is_some() {
                return Ok(difference);
            }
        }
        // An agent that cannot continue truncates an episode that the shop would continue; never the reverse.
        let truncated = env.is_truncated() || (self.truncated && !env.is_terminated());
        Ok(comparison
            .values("terminated", &self.terminated, &env.is_terminated())
            .or_else(|| comparison.values("truncated", &self.truncated, &truncated))
            .or_else(|| comparison.values("sum of rewards", &self.reward, &reward))
            .or_else(|| comparison.values("breakdown", &self.breakdown, &breakdown)))
    }

    /// Checks that the episode was recorded in `shop`.
    ///
    /// # Errors
    /// [`EpisodeError`], which names the first part of the shop that differs.
    pub fn check_shop(&self, shop: &Shop) -> Result<(), EpisodeError> {
        let name = |rules: &Compat| in_json(rules).trim_matches('"').to_owned();
        let goals = shop.goals();
        let parts = [
            ("environment", self.environment.clone(), ENVIRONMENT_ID.to_owned()),
            ("goals", self.goal_fingerprint.clone(), goals.fingerprint().to_owned()),
            ("rules", name(&self.rules), name(&shop.config().compat)),
        ];
        for (what, recorded, here) in parts {
            if recorded != here {
                return Err(EpisodeError::OtherShop { what, recorded, here });
            }
        }
        goals.find(self.goal.0.into())?;
        Ok(())
    }
}

/// Compares recorded and replayed values at one point of an episode.
struct Comparison {
    turn: usize,
    action: String,
}

impl Comparison {
    fn values<V: Serialize + PartialEq>(
        &self,
        what: &'static str,
        recorded: &V,
        now: &V,
    ) -> Option<Difference> {
        (recorded != now).then(|| self.difference(what, in_json(recorded), in_json(now), String::new()))
    }

    fn digests(
        &self,
        env: &ShopEnv,
        observation: &Observation,
        recorded: TransitionDigest,
    ) -> Option<Difference> {
        let now = TransitionDigest::of(env.session(), observation);
        let digest = |what, recorded: Digest, now: Digest, in_full: &dyn Fn() -> String| {
            (recorded != now).then(|| self.difference(what, recorded.to_string(), now.to_string(), in_full()))
        };
        let actions = || in_json(&observation.available_actions());
        digest("observation", recorded.observation, now.observation, &|| observation.content())
            .or_else(|| digest("actions", recorded.actions, now.actions, &actions))
            .or_else(|| digest("state", recorded.state, now.state, &|| in_json(env.session())))
    }

    fn difference(&self, what: &'static str, recorded: String, now: String, in_full: String) -> Difference {
        Difference { turn: self.turn, action: self.action.clone(), what, recorded, now, in_full }
    }
}

fn in_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("states hold numbers, texts and lists, which are all valid JSON")
}

#[cfg(test)]
mod tests;
