//! V*: what the reference policy could expect of a goal if it were steered towards reward.
//!
//! Paper: "Accelerating RL for LLM Reasoning with Optimal Advantage Regression", arXiv 2505.20686, section 4,
//! stage 1. From N rollouts of the frozen reference on goal x, with rewards r₁…r_N:
//!
//! ```text
//! V*(x) = β₁ · log( (1/N) Σᵢ exp(rᵢ/β₁) )        `optimal_value(rewards, beta1)`
//! ```
//!
//! [`ValueTable`] keeps V* of every goal with the rewards that made it and the [`ValueKey`] under which they may be
//! used again. Deviations from the paper: none in V*(x).
//!
//! A rollout passes states, and its reward is a sample for each of them too. So the same rollouts give V* of every state
//! that some of them passed ([`GoalValue::v_state`]), at no cost: the shop is deterministic, and a state is named by what
//! it shows. Rollouts that are forked from a state are samples of it as well; the trainer makes them where it is asked to,
//! and keeps them with its own state, since it was its own episode that led there. All that is ours, untested in the
//! literature, and an approximation: neither what the model read before it came to a state nor how many actions are left is
//! part of the name, so that there is one V* for a goal and a state, from whichever way there was valued first.
//!
//! A goal whose samples all fail is kept, where TRL's `a2po` leaves it out:
//! V* = 0 makes a later success count in full. It rolls nothing out.
//!
//! The estimate is biased low, since the logarithm is concave: for success probability .2 and β₁ = .5 by .042 at
//! N = 8. On policy that costs variance only; [`ValueTable::mean_bias`] reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::ShopR1Config;
use crate::error::Result;
use crate::reward::TaskReward;
use crate::run::atomic::{read_json, write_json};

/// β₁ · log of the mean of exp(r/β₁), between the mean of `rewards` and their maximum.
///
/// The maximum is subtracted first, so that no reward overflows. `beta1` is positive. No rewards give NaN.
///
/// ```
///  Two rollouts, one success: .5 · ln((e² + 1)/2) = .5 · ln 4.1945
/// assert!((optimal_value(&[1.0, 0.0], 0.5) - 0.716_890).abs() < 1e-6);
/// assert_eq!(optimal_value(&[0.25; 8], 0.5), 0.25);
/// ```
pub fn optimal_value(rewards: &[f64], beta1: f64) -> f64 {
    let Some(max) = rewards.iter().copied().reduce(f64::max) else {
        return f64::NAN;
    };
    let mean = rewards.iter().map(|r| ((r - max) / beta1).exp()).sum::<f64>() / rewards.len() as f64;
    max + beta1 * mean.ln()
}

/// Version of [`ValueKey`]: goes up when a field is added, renamed or gets another meaning.
pub(crate) const VALUE_KEY_VERSION: u32 = 2;

/// The conditions of reference rollouts. Values are reused only if all of them are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueKey {
    /// [`VALUE_KEY_VERSION`].
    pub(crate) version: u32,
    /// Fingerprint of the weights of the reference.
    pub(crate) reference: String,
    /// Version of the prompt format.
    pub(crate) prompt: String,
    /// Products of a results page in a prompt.
    pub(crate) results_shown: usize,
    /// Tokens of a context.
    pub(crate) max_context: usize,
    /// Tokens of a completion.
    pub(crate) max_turn_tokens: usize,
    /// Actions of an episode.
    pub(crate) max_steps: usize,
    /// Digest of all shops with their goals and prices.
    pub(crate) task_set: String,
    /// Seed of the run.
    pub(crate) seed: u64,
    /// RL step at which the reference was the policy.
    pub(crate) since: u64,
    /// N.
    pub(crate) samples: usize,
    /// Whether N falls with the steps.
    pub(crate) adaptive: bool,
    /// The reward of an episode.
    pub(crate) reward: TaskReward,
    /// Subtracted per malformed completion.
    pub(crate) malformed_penalty: f64,
    /// Sampling temperature.
    pub(crate) temperature: f64,
    /// Sampling nucleus.
    pub(crate) top_p: f64,
    /// The examples and their reward, in single-step mode.
    pub(crate) single_step: Option<ShopR1Config>,
    /// Device, dtype and kernels; empty for the cpu backend.
    pub(crate) compute: String,
}

impl ValueKey {
    /// SHA-256 of its JSON, 64 hexadecimal digits.
    pub(crate) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("a key has no map with other keys than strings");
        Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A rollout of the reference, as far as values go.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRollout {
    /// What it earned.
    pub reward: f64,
    /// Tokens it took to write.
    pub n_tokens: usize,
    /// Names of the states that it passed after its first turn, the last excepted.
    pub states: Vec<u64>,
}

/// V* of one goal with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalValue {
    /// Number of the shop, 0 being the one that is judged.
    pub shop: u32,
    /// The goal in that shop.
    pub goal: u32,
    /// Rewards of the reference's rollouts, in sample order; at least one.
    pub rewards: Vec<f64>,
    /// The estimate from these rewards.
    pub v_star: f64,
    /// Tokens that the rollouts took.
    pub n_tokens: u64,
    /// Rewards of the rollouts that passed a state, by its name; a rollout counts once at each.
    pub states: BTreeMap<u64, Vec<f64>>,
}

impl GoalValue {
    /// From the reference's rollouts, at least one.
    fn of(shop: u32, goal: u32, rollouts: &[ReferenceRollout], beta1: f64) -> Self {
        let rewards: Vec<f64> = rollouts.iter().map(|rollout| rollout.reward).collect();
        let mut states: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for rollout in rollouts {
            for state in rollout.states.iter().collect::<BTreeSet<_>>() {
                states.entry(*state).or_default().push(rollout.reward);
            }
        }
        let n_tokens = rollouts.iter().map(|rollout| rollout.n_tokens as u64).sum();
        Self { shop, goal, v_star: optimal_value(&rewards, beta1), rewards, n_tokens, states }
    }

    /// V* of a state on the way, from the rollouts that passed it and the rewards of those that were `forked` there; `None`
    /// if they are fewer than `least`, which is at least 1.
    pub fn v_state(&self, state: u64, forked: &[f64], beta1: f64, least: usize) -> Option<f64> {
        let passed = self.states.get(&state).map_or(&[][..], Vec::as_slice);
        let rewards = [passed, forked].concat();
        (rewards.len() >= least).then(|| optimal_value(&rewards, beta1))
    }

    /// Whether any sample earned the whole reward.
    pub fn has_success(&self) -> bool {
        self.rewards.contains(&1.0)
    }

    /// How far the samples differ: their standard deviation over N.
    pub fn spread(&self) -> f64 {
        let n = self.rewards.len() as f64;
        let mean = self.rewards.iter().sum::<f64>() / n;
        (self.rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / n).sqrt()
    }

    /// The jackknife's estimate of how far `v_star` lies from what infinitely many samples would give, negative
    /// where it is too low: (N − 1) · (mean of the N leave-one-out values − V*). 0 for a single sample.
    pub fn bias(&self, beta1: f64) -> f64 {
        let n = self.rewards.len();
        if n < 2 {
            return 0.0;
        }
        let without = |i: usize| {
            let mut rest = self.rewards.clone();
            rest.remove(i);
            optimal_value(&rest, beta1)
        };
        let mean = (0..n).map(without).sum::<f64>() / n as f64;
        (n - 1) as f64 * (mean - self.v_star)
    }
}

/// V* of the goals that were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueTable {
    key: ValueKey,
    beta1: f64,
    goals: Vec<GoalValue>,
}

impl ValueTable {
    /// An empty table; `beta1` is positive.
    pub fn new(key: ValueKey, beta1: f64) -> Self {
        Self { key, beta1, goals: Vec::new() }
    }

    /// Sets the rollouts of a goal, replacing earlier ones.
    ///
    /// Panics if there are none: no rollout, no value.
    pub fn insert(&mut self, shop: u32, goal: u32, rollouts: &[ReferenceRollout]) {
        assert!(!rollouts.is_empty(), "a value needs at least one rollout");
        self.put(GoalValue::of(shop, goal, rollouts, self.beta1));
    }

    /// Takes over the value of a goal from a table of equal conditions.
    pub fn put(&mut self, value: GoalValue) {
        match self.position(value.shop, value.goal) {
            Ok(at) => self.goals[at] = value,
            Err(at) => self.goals.insert(at, value),
        }
    }

    /// The value of a goal, if it has one.
    pub fn get(&self, shop: u32, goal: u32) -> Option<&GoalValue> {
        self.position(shop, goal).ok().map(|at| &self.goals[at])
    }

    fn position(&self, shop: u32, goal: u32) -> Result<usize, usize> {
        self.goals.binary_search_by_key(&(shop, goal), |value| (value.shop, value.goal))
    }

    /// All values, by shop, then by goal.
    pub fn goals(&self) -> &[GoalValue] {
        &self.goals
    }

    /// The conditions of these values.
    pub fn key(&self) -> &ValueKey {
        &self.key
    }

    /// β₁ of these values.
    pub fn beta1(&self) -> f64 {
        self.beta1
    }

    /// Share of goals none of whose samples earned the whole reward; 0 for an empty table.
    pub fn share_without_success(&self) -> f64 {
        self.mean_of(|value| f64::from(!value.has_success()))
    }

    /// Mean V*; 0 for an empty table.
    pub fn mean_v_star(&self) -> f64 {
        self.mean_of(|value| value.v_star)
    }

    /// Mean of [`GoalValue::bias`] over goals; 0 for an empty table.
    pub fn mean_bias(&self) -> f64 {
        self.mean_of(|value| value.bias(self.beta1))
    }

    fn mean_of(&self, what: impl Fn(&GoalValue) -> f64) -> f64 {
        self.goals.iter().map(what).sum::<f64>() / self.goals.len().max(1) as f64
    }

    /// Writes the table as JSON.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_json(path, self)
    }

    /// Reads the table of these conditions; an empty one if there is no file or it was made under others.
    pub fn load(path: &Path, key: &ValueKey, beta1: f64) -> Result<Self> {
        let kept = if path.exists() { Some(read_json::<Self>(path)?) } else { None };
        let kept = kept.filter(|table| table.key == *key && table.beta1 == beta1);
        Ok(kept.unwrap_or_else(|| Self::new(key.clone(), beta1)))
    }
}

#[cfg(test)]
mod tests;
