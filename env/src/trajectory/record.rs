//! A trip on record, and whether it would go the same way again.
//!
//! A [`Trip`] is one line of a rollout file: in which shop, for which goal, what was said turn by
//! turn, and what came of it. Of every moment it keeps a [`Footprint`]: digests of the state, of the
//! observation and of the list of actions. [`Trip::replay`] makes the trip again and compares; what
//! it finds first is a [`Difference`].
//!
//! Whoever records more of a turn than the shop knows (tokens, thoughts) puts a type of its own in
//! the place of [`TripTurn`] and writes its fields beside these. Reading ignores what it does not
//! know. Version history of the format: `webshop-trip-2` is the first that can be replayed.

use crate::action::{Action, NoopReason};
use crate::original::compat::Compat;
use webshop_products::Digest;
use crate::reward::RewardBreakdown;
use crate::session::Session;
use crate::shop::Shop;
use crate::shop_env::{ENVIRONMENT_ID, EnvConfig, Observation, ShopEnv};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use webshop_products::GoalId;

/// The layout of a recorded trip; a change of its meaning changes it.
pub const TRIP_FORMAT: &str = "webshop-trip-2";

/// What one moment of a trip leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Footprint {
    /// Of the customer's state, see [`Session::digest`].
    pub state: Digest,
    /// Of what was shown, in the form of the trip's [`EnvConfig`].
    pub observation: Digest,
    /// Of the legal moves: whether there is a search bar, and every label in order.
    pub actions: Digest,
}

impl Footprint {
    /// The footprint of a state and of what it shows.
    pub fn of(session: &Session, observation: &Observation) -> Footprint {
        let actions = serde_json::to_vec(&observation.available_actions);
        Footprint {
            state: session.digest(),
            observation: Digest::of(observation.content.as_bytes()),
            actions: Digest::of(&actions.expect("labels are all valid JSON")),
        }
    }
}

/// One turn of a [`Trip`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TripTurn {
    /// The action as text; `noop` for what was no action.
    pub action: String,
    /// Why it changed nothing, if so.
    pub noop: Option<NoopReason>,
    /// What it earned.
    pub reward: f64,
    /// What it led to.
    pub after: Footprint,
}

/// A whole trip, as one line of a rollout file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trip<T = TripTurn> {
    /// [`TRIP_FORMAT`].
    pub format: String,
    /// [`ENVIRONMENT_ID`].
    pub environment: String,
    /// The goals this one is of, which stand for the catalog too.
    pub goal_fingerprint: String,
    /// The rules of the shop.
    pub rules: Compat,
    /// How pages were shown and when the trip was to be cut.
    pub config: EnvConfig,
    /// What was wanted.
    pub goal: GoalId,
    /// What was there before the first turn.
    pub start: Footprint,
    /// What was done.
    pub turns: Vec<T>,
    /// The sum of the turns' rewards.
    pub reward: f64,
    /// How it came about; none if nothing was bought.
    pub breakdown: Option<RewardBreakdown>,
    /// Whether something was bought.
    pub terminated: bool,
    /// Whether the trip was cut, by the step limit or by a customer who could not go on.
    pub truncated: bool,
}

/// Why a line is no trip that could be made in this shop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TripError {
    /// It is not JSON, or lacks something.
    #[error("no recorded trip: {0}")]
    Malformed(String),
    /// It is laid out as another version of this program does.
    #[error("recorded in the format `{found}`; this program replays `{TRIP_FORMAT}`")]
    Format {
        /// The format it says it has.
        found: String,
    },
    /// It was made under other rules, or for goals of another catalog.
    #[error("recorded with the {what} `{recorded}`; this shop has `{here}`")]
    OtherShop {
        /// What differs.
        what: &'static str,
        /// As the trip has it.
        recorded: String,
        /// As the shop has it.
        here: String,
    },
    /// The goals are the same ones, but this is none of them.
    #[error("there is no goal `{}` among {n_goals}", goal.0)]
    NoSuchGoal {
        /// The goal the trip names.
        goal: GoalId,
        /// How many there are.
        n_goals: usize,
    },
}

/// The first thing that was not as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// After which turn, counting from 1; 0 is before the first.
    pub turn: usize,
    /// What was said in that turn; empty before the first.
    pub action: String,
    /// What differs: `observation`, `actions`, `reward`, …
    pub what: &'static str,
    /// As it was recorded.
    pub recorded: String,
    /// As it is now.
    pub now: String,
    /// What a digest stands for, in full and as it is now; empty for what is no digest.
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

impl Trip {
    /// Reads one line of a rollout file.
    ///
    /// # Errors
    /// [`TripError::Malformed`] and [`TripError::Format`].
    pub fn read(line: &str) -> Result<Trip, TripError> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<String>,
        }
        // It is one line, so the parser's count of lines says nothing.
        let told = |error: serde_json::Error| error.to_string().replace(" at line 1 column ", " at column ");
        let malformed = |error| TripError::Malformed(told(error));
        let head: Head = serde_json::from_str(line).map_err(malformed)?;
        match head.format {
            Some(format) if format == TRIP_FORMAT => serde_json::from_str(line).map_err(malformed),
            Some(found) => Err(TripError::Format { found }),
            None => Err(TripError::Malformed("it names no `format`".into())),
        }
    }

    /// Makes the trip again and tells what first differs, if anything does. State, observation,
    /// list of actions, reward and reason of every turn are compared, and the end of the trip.
    ///
    /// # Errors
    /// [`TripError`], if the trip belongs to another shop.
    pub fn replay(&self, shop: &Arc<Shop>) -> Result<Option<Difference>, TripError> {
        self.belongs_to(shop)?;
        let mut env = ShopEnv::new(Arc::clone(shop), self.config);
        let start = env.reset(self.goal);
        let mut again = Comparison { turn: 0, action: "" };
        if let Some(difference) = again.footprints(&env, &start, self.start) {
            return Ok(Some(difference));
        }
        let (mut reward, mut breakdown) = (0.0, None);
        for (at, turn) in self.turns.iter().enumerate() {
            again = Comparison { turn: at + 1, action: &turn.action };
            let step = env.step(&turn.said(self.rules));
            reward += step.reward;
            breakdown = step.info.breakdown;
            let difference = again
                .values("noop", &turn.noop, &step.info.noop)
                .or_else(|| again.footprints(&env, &step.observation, turn.after))
                .or_else(|| again.values("reward", &turn.reward, &step.reward));
            if difference.is_some() {
                return Ok(difference);
            }
        }
        // Whoever cannot go on cuts a trip that the shop would let go on; never the reverse.
        let was_cut = env.is_truncated() || (self.truncated && !env.is_terminated());
        Ok(again
            .values("terminated", &self.terminated, &env.is_terminated())
            .or_else(|| again.values("truncated", &self.truncated, &was_cut))
            .or_else(|| again.values("sum of rewards", &self.reward, &reward))
            .or_else(|| again.values("breakdown", &self.breakdown, &breakdown)))
    }

    fn belongs_to(&self, shop: &Shop) -> Result<(), TripError> {
        let same = |what, recorded: &str, here: &str| match recorded == here {
            true => Ok(()),
            false => Err(TripError::OtherShop { what, recorded: recorded.into(), here: here.into() }),
        };
        same("environment", &self.environment, ENVIRONMENT_ID)?;
        same("goals", &self.goal_fingerprint, shop.goals().fingerprint())?;
        let name = |rules: &Compat| in_json(rules).trim_matches('"').to_owned();
        same("rules", &name(&self.rules), &name(&shop.config().compat))?;
        let n_goals = shop.goals().goals().len();
        match (self.goal.0 as usize) < n_goals {
            true => Ok(()),
            false => Err(TripError::NoSuchGoal { goal: self.goal, n_goals }),
        }
    }
}

impl TripTurn {
    /// The action of this turn, read as a shop with these rules reads it.
    pub fn said(&self, rules: Compat) -> Action {
        match self.noop {
            Some(reason) if self.action == Action::Noop(reason).to_string() => Action::Noop(reason),
            _ => Action::parse(&self.action, rules),
        }
    }
}

/// The moment of a trip at which recorded and present things are compared.
struct Comparison<'a> {
    turn: usize,
    action: &'a str,
}

impl Comparison<'_> {
    fn values<V: Serialize + PartialEq>(
        &self,
        what: &'static str,
        recorded: &V,
        now: &V,
    ) -> Option<Difference> {
        (recorded != now).then(|| self.differs(what, in_json(recorded), in_json(now), String::new()))
    }

    fn footprints(&self, env: &ShopEnv, shown: &Observation, recorded: Footprint) -> Option<Difference> {
        let now = Footprint::of(env.session(), shown);
        let digests = |what, recorded: Digest, now: Digest, in_full: &dyn Fn() -> String| {
            (recorded != now).then(|| self.differs(what, recorded.to_string(), now.to_string(), in_full()))
        };
        digests("observation", recorded.observation, now.observation, &|| shown.content.clone())
            .or_else(|| {
                digests("actions", recorded.actions, now.actions, &|| in_json(&shown.available_actions))
            })
            .or_else(|| digests("state", recorded.state, now.state, &|| in_json(env.session())))
    }

    fn differs(&self, what: &'static str, recorded: String, now: String, in_full: String) -> Difference {
        Difference { turn: self.turn, action: self.action.to_owned(), what, recorded, now, in_full }
    }
}

fn in_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("states hold numbers, texts and lists, which are all valid JSON")
}
