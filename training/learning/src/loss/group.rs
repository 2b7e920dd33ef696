//! Groups: the episodes of one step that belong to one draw of a goal.
//!
//! If a step draws a goal twice, its episodes are two groups, so that every group has `rl.group_size` episodes.
//! The mean reward of the group replaces a value function. A group with equal rewards has no gradient.

use std::collections::BTreeMap;

use crate::error::{Result, TrainingError};
use crate::loss::Scored;

/// Added to a standard deviation before dividing by it; smaller standard deviations count as 0.
pub(super) const EPSILON: f64 = 1e-6;

/// Mean and spread of the rewards of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct GroupStatistics {
    /// Number of episodes.
    pub(crate) n: usize,
    /// Mean reward.
    pub(crate) mean: f64,
    /// Standard deviation over n − 1; 0 for one.
    pub(crate) std: f64,
}

impl GroupStatistics {
    /// The statistics of `rewards`, at least one.
    pub(crate) fn of(rewards: &[f64]) -> Self {
        let n = rewards.len();
        let mean = rewards.iter().sum::<f64>() / n as f64;
        let squares: f64 = rewards.iter().map(|r| (r - mean).powi(2)).sum();
        Self { n, mean, std: (squares / (n.max(2) - 1) as f64).sqrt() }
    }

    /// (r − mean) / (std + ε); 0 if the standard deviation is below `min_std` or below ε.
    pub(crate) fn normalized(&self, reward: f64, min_std: f64) -> f64 {
        if self.std < min_std.max(EPSILON) { 0.0 } else { (reward - self.mean) / (self.std + EPSILON) }
    }

    /// r − mean; 0 if the standard deviation is below ε.
    pub(crate) fn centred(&self, reward: f64) -> f64 {
        if self.std < EPSILON { 0.0 } else { reward - self.mean }
    }
}

/// The statistics of each episode's group, in the order of `batch`.
///
/// Fails if no group has two episodes. A group can have a single episode, if the others of its goal sampled
/// no token; its standard deviation is 0.
pub(crate) fn of_each(loss: &'static str, batch: &[Scored]) -> Result<Vec<GroupStatistics>> {
    let groups = rewards_of(batch);
    if groups.values().all(|rewards| rewards.len() < 2) {
        let problem = "no goal has two episodes with a sampled token, so that none can be compared; `rl.group_size` must be 2 or \
                       more, and prompts must leave room for completions";
        return Err(TrainingError::InvalidBatch { loss, problem: problem.into() });
    }
    let statistics: BTreeMap<usize, GroupStatistics> =
        groups.iter().map(|(&group, rewards)| (group, GroupStatistics::of(rewards))).collect();
    Ok(batch.iter().map(|scored| statistics[&scored.group]).collect())
}

/// Mean over groups of two or more of the standard deviation of their rewards; `None` without such a group.
pub(crate) fn mean_spread(batch: &[Scored]) -> Option<f64> {
    let groups = rewards_of(batch);
    let compared = groups.values().filter(|rewards| rewards.len() > 1);
    let spreads: Vec<f64> = compared.map(|rewards| GroupStatistics::of(rewards).std).collect();
    (!spreads.is_empty()).then(|| spreads.iter().sum::<f64>() / spreads.len() as f64)
}

fn rewards_of(batch: &[Scored]) -> BTreeMap<usize, Vec<f64>> {
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for scored in batch {
        groups.entry(scored.group).or_default().push(scored.reward);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_do_not_depend_on_the_order_of_episodes() {
        let batch = [(0, 1.0), (1, 0.5), (0, 0.0), (1, 0.5), (2, 0.3)];
        let batch = batch.map(|(group, reward)| Scored::single_turn(group, reward, 0.0, 1));
        let each = of_each("grpo", &batch).unwrap();
        // 1 and 0: mean .5, deviation √(2 · .25 / 1).
        assert_eq!((each[0].mean, each[0].std, each[0]), (0.5, 0.5_f64.sqrt(), each[2]));
        assert!((each[0].normalized(1.0, 0.7) - 0.5_f64.sqrt()).abs() < 1e-5);
        assert_eq!(each[0].normalized(1.0, 0.71), 0.0, "below `min_std`");
        assert_eq!((each[1].std, each[1].normalized(0.5, 0.0), each[1].centred(0.5)), (0.0, 0.0, 0.0));
        assert_eq!((each[4].n, each[4].centred(0.3)), (1, 0.0));
    }

    #[test]
    fn an_episode_without_another_of_its_goal_is_refused() {
        let alone = [Scored::single_turn(0, 1.0, 0.0, 1), Scored::single_turn(1, 0.0, 0.0, 1)];
        let error = of_each("grpo", &alone).unwrap_err().to_string();
        assert!(error.contains("`grpo`") && error.contains("`rl.group_size`"), "{error}");
    }
}
