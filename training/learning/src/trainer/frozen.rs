//! The reference as rollouts and losses see it: frozen weights and V* of goals under them.

use crate::data::task_set::TaskId;
use crate::model::network::Network;
use crate::value::{GoalValue, ValueTable};

/// A frozen policy with V* under it.
pub(super) struct FrozenPolicy {
    pub(super) network: Network,
    /// The RL step at which it was the policy.
    pub(super) since: u64,
    /// V* of the goals drawn so far.
    pub(super) values: ValueTable,
}

impl FrozenPolicy {
    /// V* of a goal with its evidence, if it is known.
    pub(super) fn value(&self, goal: TaskId) -> Option<&GoalValue> {
        self.values.get(goal.shop, goal.goal.0)
    }

    /// V* of a goal; 0 if it is not known, as for losses that do not use it.
    pub(super) fn v_star(&self, goal: TaskId) -> f64 {
        self.value(goal).map_or(0.0, |value| value.v_star)
    }
}
