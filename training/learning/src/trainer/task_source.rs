//! Where rollouts come from: whole episodes or completions at recorded steps.

use std::collections::BTreeMap;

use crate::data::task_set::TaskId;
use crate::data::trajectory::Trajectory;
use crate::error::Result;
use crate::loss::Scored;
use crate::metrics::{Metric, Record};
use crate::model::network::Network;
use crate::trainer::frozen::FrozenPolicy;
use crate::trainer::progress::Progress;
use crate::value::ReferenceRollout;

/// One RL step before its rollouts.
pub(super) struct RolloutRequest<'r> {
    /// RL step, from 0.
    pub(super) step: u64,
    /// Goals of the step; `rl.group_size` rollouts are made for each. A goal that occurs twice gets two groups of
    /// different rollouts, each with a baseline of its own, so that `rl.group_size` is the size of every group.
    pub(super) goals: &'r [TaskId],
    /// The network that is sampled.
    pub(super) network: &'r Network,
    /// The reference, which knows V* of the goals.
    pub(super) reference: &'r FrozenPolicy,
}

/// Rollouts of one RL step. Rollouts without a sampled token are left out.
#[derive(Default)]
pub(super) struct Rollouts {
    /// Token ids, masks and log-probabilities.
    pub(super) batch: Vec<Trajectory>,
    /// Reward and V* of each, in the same order.
    pub(super) scored: Vec<Scored>,
}

impl Rollouts {
    /// Adds a rollout.
    pub(super) fn push(&mut self, trajectory: Trajectory, scored: Scored) {
        self.batch.push(trajectory);
        self.scored.push(scored);
    }

    /// Adds the sampled tokens to those of the run and records the total.
    pub(super) fn count_tokens(&self, progress: &mut Progress, record: &mut Record) {
        progress.state.tokens += self.n_sampled();
        record.set(Metric::RolloutTokensTotal, progress.state.tokens as f64);
    }

    /// Tokens of completions.
    pub(super) fn n_sampled(&self) -> u64 {
        self.batch.iter().map(|trajectory| trajectory.n_sampled() as u64).sum()
    }
}

/// The `sample` coordinate of the first of `n_samples` rollouts of each of `goals`: `n_samples` times the number of
/// earlier occurrences of the goal. A step draws a goal more than once if its goals are more than the pool's, or if
/// the pool is exhausted within the step; without this offset the rollouts of all occurrences would be equal.
pub(super) fn first_samples(goals: impl IntoIterator<Item = TaskId>, n_samples: usize) -> Vec<u64> {
    let mut n_drawn: BTreeMap<TaskId, u64> = BTreeMap::new();
    let first = |goal| {
        let next = n_drawn.entry(goal).or_default();
        std::mem::replace(next, *next + n_samples as u64)
    };
    goals.into_iter().map(first).collect()
}

/// Makes rollouts for goals.
pub(super) trait TaskSource {
    /// The goals that RL draws from, sorted; `optimizer_step` is named in errors.
    fn goals(&self, optimizer_step: u64) -> Result<Vec<TaskId>>;

    /// Rollouts of the policy with rewards and V*, `rl.group_size` per goal, in the order of the goals.
    /// Counts their tokens in `progress` and their metrics in `record`.
    fn collect(
        &self,
        request: &RolloutRequest<'_>,
        progress: &mut Progress,
        record: &mut Record,
    ) -> Result<Rollouts>;

    /// `n_samples` rollouts of a reference for each of `goals`, which differ, drawn at step coordinate `at`; an
    /// empty list for a goal without a task.
    fn reference_rollouts(
        &self,
        reference: &Network,
        goals: &[TaskId],
        at: u64,
        n_samples: usize,
    ) -> Result<Vec<Vec<ReferenceRollout>>>;
}

#[cfg(test)]
mod tests {
    use webshop_products::GoalId;

    use super::*;

    #[test]
    fn samples_of_a_goal_that_is_drawn_again_follow_its_earlier_ones() {
        let goal = |shop, goal| TaskId { shop, goal: GoalId(goal) };
        let goals = [goal(0, 3), goal(1, 3), goal(0, 3), goal(0, 4), goal(0, 3)];
        assert_eq!(first_samples(goals, 8), [0, 0, 8, 0, 16]);
    }
}
