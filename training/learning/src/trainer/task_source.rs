//! Where rollouts come from: whole episodes or completions at recorded steps.

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
    /// Goals of the step; `rl.group_size` rollouts are made for each.
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

    /// Tokens of prompts and completions.
    pub(super) fn n_tokens(&self) -> usize {
        self.batch.iter().map(|trajectory| trajectory.ids.len()).sum()
    }

    /// Tokens of completions.
    pub(super) fn n_sampled(&self) -> u64 {
        self.batch.iter().map(|trajectory| trajectory.n_sampled() as u64).sum()
    }
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

    /// `n_samples` rollouts of a reference for each of `goals`, drawn at step coordinate `at`; an empty list
    /// for a goal without a task.
    fn reference_rollouts(
        &self,
        reference: &Network,
        goals: &[TaskId],
        at: u64,
        n_samples: usize,
    ) -> Result<Vec<Vec<ReferenceRollout>>>;
}
