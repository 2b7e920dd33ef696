//! The trips that the checks look at.

use std::sync::Arc;

use webshop_agent::{Canary, Episode, EpisodeCoordinates, OraclePolicy, Policy, RandomPolicy, RolloutConfig, RulePolicy, Task, rollout};
use webshop_env::{Action, Shop};
use webshop_products::{Goal, GoalId, Seed};

use crate::env_checks::MAX_GOALS;
use crate::error::Result;

/// The shop's own limit, as everywhere.
const LIMITS: RolloutConfig = RolloutConfig { max_steps: 15, lanes: 64 };

/// The seed of the random customer; another one is compared with it.
pub(super) const SEED: Seed = Seed(0);

/// What every kind of customer did for the same goals.
pub(super) struct Trips {
    pub shop: Arc<Shop>,
    pub goals: Vec<GoalId>,
    pub random: Vec<Episode>,
    pub oracle: Vec<Episode>,
    /// Those that ought not to succeed, by name.
    pub canaries: Vec<(&'static str, Vec<Episode>)>,
}

impl Trips {
    pub fn play(shop: &Arc<Shop>) -> Result<Self> {
        let goals = spaced(shop.goals().goals(), MAX_GOALS);
        let mut canaries = vec![("buy-at-once", played(shop, &goals, &mut RulePolicy)?)];
        for mut canary in Canary::ALL {
            canaries.push((canary.name(), played(shop, &goals, &mut canary)?));
        }
        Ok(Self {
            random: played(shop, &goals, &mut RandomPolicy::new(SEED))?,
            oracle: played(shop, &goals, &mut OraclePolicy)?,
            canaries,
            shop: shop.clone(),
            goals,
        })
    }

    /// Every trip of every customer.
    pub fn all(&self) -> impl Iterator<Item = &Episode> {
        let canaries = self.canaries.iter().flat_map(|(_, episodes)| episodes);
        self.random.iter().chain(&self.oracle).chain(canaries)
    }

    pub fn goal_of(&self, episode: &Episode) -> &Goal {
        self.shop.goals().get(episode.coordinates.goal)
    }
}

/// The trips of one customer.
pub(super) fn played(shop: &Arc<Shop>, goals: &[GoalId], policy: &mut dyn Policy) -> Result<Vec<Episode>> {
    let coordinates = |goal| EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
    let task = |&goal| Task::new(shop.clone(), coordinates(goal));
    let tasks: Vec<Task> = goals.iter().map(task).collect();
    Ok(rollout(policy, &tasks, LIMITS, &mut |_, _| ())?)
}

/// What was done in a trip.
pub(super) fn actions(episode: &Episode) -> Vec<Action> {
    episode.turns.iter().map(|turn| turn.action.clone()).collect()
}

/// At most `n` goals, from the whole list.
fn spaced(goals: &[Goal], n: usize) -> Vec<GoalId> {
    let n = n.min(goals.len());
    (0..n).map(|at| goals[at * goals.len() / n].id).collect()
}
