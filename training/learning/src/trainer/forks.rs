//! Rewards of reference rollouts that were forked from states, as a checkpoint holds them. `state_value`
//! makes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::task_set::TaskId;

/// Rewards and costs of forked reference rollouts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ForkedRewards {
    /// Tokens generated in forks, over the whole run.
    pub(super) generated: u64,
    /// Sampled tokens of their prefixes, which were not generated again.
    pub(super) reused: u64,
    /// Rewards under the current reference, by shop, goal and state.
    rewards: BTreeMap<u32, BTreeMap<u32, BTreeMap<u64, Vec<f64>>>>,
}

impl ForkedRewards {
    /// Rewards of the forks of a state, in the order of their numbers; empty if there are none.
    pub(super) fn of(&self, goal: TaskId, state: u64) -> &[f64] {
        let of_goal = self.rewards.get(&goal.shop).and_then(|of_shop| of_shop.get(&goal.goal.0));
        of_goal.and_then(|states| states.get(&state)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn insert(&mut self, goal: TaskId, state: u64, rewards: Vec<f64>) {
        let of_shop = self.rewards.entry(goal.shop).or_default();
        of_shop.entry(goal.goal.0).or_default().insert(state, rewards);
    }

    /// Forgets the rewards when the reference changes. The token counts stay.
    pub(super) fn forget_rewards(&mut self) {
        self.rewards.clear();
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::GoalId;

    use super::*;

    #[test]
    fn rewards_are_found_under_goal_and_state_until_another_reference_begins() {
        let goal = |shop, goal| TaskId { shop, goal: GoalId(goal) };
        let mut forks = ForkedRewards { generated: 7, reused: 5, ..ForkedRewards::default() };
        forks.insert(goal(0, 3), u64::MAX, vec![1.0 / 3.0, 0.0]);
        forks.insert(goal(1, 3), 4, vec![1.0]);
        // As a checkpoint has it.
        let mut forks: ForkedRewards = serde_json::from_str(&serde_json::to_string(&forks).unwrap()).unwrap();
        assert_eq!(
            (forks.of(goal(0, 3), u64::MAX), forks.of(goal(1, 3), 4)),
            (&[1.0 / 3.0, 0.0][..], &[1.0][..])
        );
        for (goal, state) in [(goal(1, 3), u64::MAX), (goal(0, 2), u64::MAX), (goal(0, 3), 4)] {
            assert!(forks.of(goal, state).is_empty(), "{goal:?} {state}");
        }
        forks.forget_rewards();
        assert!(forks.of(goal(1, 3), 4).is_empty());
        assert_eq!((forks.generated, forks.reused), (7, 5));
    }
}
