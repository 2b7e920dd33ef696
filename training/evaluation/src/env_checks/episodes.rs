//! The episodes that the checks read.

use std::sync::Arc;

use webshop_agent::{
    Episode, EpisodeCoordinates, ExploitPolicy, OraclePolicy, Policy, RandomPolicy, RolloutConfig,
    RulePolicy, Task, rollout,
};
use webshop_env::{Action, Shop};
use webshop_products::{Goal, GoalId, Seed};

use crate::error::Result;

/// Number of goals for which [`crate::validate`] collects episodes, at most. With 15 steps each they reach
/// every kind of page some hundred times, and a catalog of a thousand products takes seconds.
pub(crate) const MAX_CHECKED_GOALS: usize = 200;

/// The default step limit of the shop.
const ROLLOUT: RolloutConfig = RolloutConfig { max_steps: 15, lanes: 64 };

/// Seed of the random policy; `seed_control` also runs the next one.
pub(super) const SEED: Seed = Seed(0);

/// Episodes of every policy for the same goals.
pub(super) struct Episodes {
    pub shop: Arc<Shop>,
    pub goals: Vec<GoalId>,
    pub random: Vec<Episode>,
    pub oracle: Vec<Episode>,
    /// Policies that read no page, by name.
    pub exploits: Vec<(&'static str, Vec<Episode>)>,
}

impl Episodes {
    pub(super) fn collect(shop: &Arc<Shop>) -> Result<Self> {
        let goals = spaced(shop.goals().goals(), MAX_CHECKED_GOALS);
        let mut exploits = vec![("buy-at-once", episodes_of(&mut RulePolicy, shop, &goals)?)];
        for mut policy in ExploitPolicy::ALL {
            exploits.push((policy.name(), episodes_of(&mut policy, shop, &goals)?));
        }
        Ok(Self {
            random: episodes_of(&mut RandomPolicy::new(SEED), shop, &goals)?,
            oracle: episodes_of(&mut OraclePolicy, shop, &goals)?,
            exploits,
            shop: shop.clone(),
            goals,
        })
    }

    /// The episodes of all policies.
    pub(super) fn all(&self) -> impl Iterator<Item = &Episode> {
        let exploits = self.exploits.iter().flat_map(|(_, episodes)| episodes);
        self.random.iter().chain(&self.oracle).chain(exploits)
    }

    pub(super) fn goal_of(&self, episode: &Episode) -> &Goal {
        self.shop.goals().get(episode.meta.coordinates.goal)
    }
}

/// One episode of `policy` for each goal.
pub(super) fn episodes_of(
    policy: &mut dyn Policy,
    shop: &Arc<Shop>,
    goals: &[GoalId],
) -> Result<Vec<Episode>> {
    let coordinates = EpisodeCoordinates::of_goal;
    let task = |&goal| Task::new(shop.clone(), coordinates(goal));
    let tasks: Vec<Task> = goals.iter().map(task).collect();
    Ok(rollout(policy, &tasks, ROLLOUT, &mut |_, _| ())?)
}

/// The actions of an episode.
pub(super) fn actions(episode: &Episode) -> Vec<Action> {
    episode.turns.iter().map(|turn| turn.action.clone()).collect()
}

/// At most `n` goals, evenly spaced over the list.
pub(super) fn spaced(goals: &[Goal], n: usize) -> Vec<GoalId> {
    let n = n.min(goals.len());
    (0..n).map(|idx| goals[idx * goals.len() / n].id).collect()
}
