//! V*: the optimal value of a goal under a KL penalty to the reference policy.
//!
//! Paper: "Accelerating RL for LLM Reasoning with Optimal Advantage Regression", arXiv 2505.20686, section 4,
//! stage 1. From N rollouts of the frozen reference on goal x, with rewards r₁…r_N:
//!
//! ```text
//! V*(x) = β₁ · log( (1/N) Σᵢ exp(rᵢ/β₁) )        `optimal_value(rewards, beta1)`
//! ```
//!
//! [`ValueTable`] holds V* of each goal with its rewards, and the [`ValueKey`] under which they can be
//! reused. Deviations from the paper: none in V*(x).
//!
//! V* of states is an extension, not from the literature. The reward of a rollout is also a sample for each
//! state that it passes, so the same rollouts give V* of these states ([`GoalValue::v_state`]) without
//! further generation: the shop is deterministic, and a state is identified by a digest of its page. Rollouts
//! forked from a state are samples for it too; the trainer makes them if configured, and saves them with its
//! checkpoint, since they depend on its own episodes. This is an approximation: the digest is of the page's
//! text, and contains neither selected options nor the query, the earlier context of the model or the number of actions
//! left. So a goal and a state have one V*, whichever path was valued first, and a turn that selects an option has the V*
//! of the page that it was on.
//!
//! A goal whose samples all fail is kept, while TRL's `a2po` leaves it out: with V* = 0 a later success has
//! its full advantage. Nothing here makes rollouts.
//!
//! The estimate is biased low, since the logarithm is concave: by .042 for success probability .2, β₁ = .5
//! and N = 8. On policy the bias adds variance only; [`ValueTable::mean_bias`] reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use webshop_agent::{BrowsingHabits, compact};
use webshop_products::hex;

use crate::config::ShopR1Config;
use crate::error::Result;
use crate::reward::TaskReward;
use crate::run::atomic::{read_json, write_json};

/// β₁ · log of the mean of exp(r/β₁), between the mean of `rewards` and their maximum.
///
/// The maximum is subtracted first, so that no reward overflows. `beta1` is positive. No rewards give NaN.
pub(crate) fn optimal_value(rewards: &[f64], beta1: f64) -> f64 {
    let Some(max) = rewards.iter().copied().reduce(f64::max) else {
        return f64::NAN;
    };
    let mean = rewards.iter().map(|r| libm::exp((r - max) / beta1)).sum::<f64>() / rewards.len() as f64;
    max + beta1 * libm::log(mean)
}

/// Version of [`ValueKey`]: goes up when a field is added, renamed or gets another meaning.
pub(crate) const VALUE_KEY_VERSION: u32 = 2;

/// The conditions of reference rollouts. Values are reused only if all of them are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValueKey {
    /// [`VALUE_KEY_VERSION`].
    pub(crate) version: u32,
    /// Fingerprint of the weights of the reference.
    pub(crate) reference: String,
    /// Version of the prompt format.
    pub(crate) prompt: String,
    /// Products of a results page in a prompt.
    pub(crate) results_shown: usize,
    /// Whether a prompt shows both ends of a price that is a range.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) price_ranges: bool,
    /// The most characters of a page of details in a prompt.
    #[serde(default = "usual_detail_chars", skip_serializing_if = "is_usual")]
    pub(crate) detail_chars: usize,
    /// Tokens of a context.
    pub(crate) max_context: usize,
    /// Tokens of a completion.
    pub(crate) max_turn_tokens: usize,
    /// Actions of an episode.
    pub(crate) max_steps: u32,
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
    /// The habits of the browsing expert, if single steps are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) demonstrator: Option<BrowsingHabits>,
    /// Digest of the examples of `shop_r1.data`; empty without a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) examples: String,
    /// Device, dtype and kernels; empty for the cpu backend.
    pub(crate) compute: String,
}

fn usual_detail_chars() -> usize {
    compact::DETAIL_CHARS
}

fn is_usual(detail_chars: &usize) -> bool {
    *detail_chars == compact::DETAIL_CHARS
}

impl ValueKey {
    /// SHA-256 of its JSON, 64 hexadecimal digits.
    pub(crate) fn digest(&self) -> String {
        let json = serde_json::to_vec(self).expect("a key has no map with other keys than strings");
        hex(&Sha256::digest(json))
    }
}

/// The data of a reference rollout that V* needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReferenceRollout {
    /// Its reward.
    pub(crate) reward: f64,
    /// Whether the episode has the shop's full reward, or the completion the ground-truth action; the reward of
    /// training need not be 1 then.
    pub(crate) is_success: bool,
    /// Number of generated tokens.
    pub(crate) n_tokens: usize,
    /// Digests of the states after its first turn, without the last state.
    pub(crate) states: Vec<u64>,
}

/// V* of one goal with the rewards that it was estimated from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GoalValue {
    /// Number of the shop; 0 is the evaluated one.
    pub shop: u32,
    /// The goal in that shop.
    pub goal: u32,
    /// Rewards of the reference's rollouts, in sample order; at least one.
    pub rewards: Vec<f64>,
    /// Number of these rollouts that succeeded; `None` in files written before it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_successes: Option<usize>,
    /// The estimate from these rewards.
    pub v_star: f64,
    /// Number of tokens generated in the rollouts.
    pub n_tokens: u64,
    /// Rewards of the rollouts that passed a state, by its digest; a rollout counts once per state.
    pub states: BTreeMap<u64, Vec<f64>>,
}

impl GoalValue {
    /// The value of a goal from reference rollouts, at least one.
    fn of(shop: u32, goal: u32, rollouts: &[ReferenceRollout], beta1: f64) -> Self {
        let rewards: Vec<f64> = rollouts.iter().map(|rollout| rollout.reward).collect();
        let mut states: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for rollout in rollouts {
            for state in rollout.states.iter().collect::<BTreeSet<_>>() {
                states.entry(*state).or_default().push(rollout.reward);
            }
        }
        let n_tokens = rollouts.iter().map(|rollout| rollout.n_tokens as u64).sum();
        let n_successes = Some(rollouts.iter().filter(|rollout| rollout.is_success).count());
        Self { shop, goal, v_star: optimal_value(&rewards, beta1), rewards, n_successes, n_tokens, states }
    }

    /// V* of a state, from the rollouts that passed it and the rewards of rollouts `forked` there; `None` if
    /// there are fewer than `least` ≥ 1.
    pub(crate) fn v_state(&self, state: u64, forked: &[f64], beta1: f64, least: usize) -> Option<f64> {
        let passed = self.states.get(&state).map_or(&[][..], Vec::as_slice);
        let rewards = [passed, forked].concat();
        (rewards.len() >= least).then(|| optimal_value(&rewards, beta1))
    }

    /// Whether any rollout succeeded. If successes were not counted, whether any has the reward 1.
    pub fn has_success(&self) -> bool {
        self.n_successes.map_or_else(|| self.rewards.contains(&1.0), |n_successes| n_successes > 0)
    }

    /// Standard deviation of the rewards, over N.
    pub(crate) fn spread(&self) -> f64 {
        let n = self.rewards.len() as f64;
        let mean = self.rewards.iter().sum::<f64>() / n;
        (self.rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / n).sqrt()
    }

    /// The jackknife estimate of the bias of `v_star`, negative if it is too low: (N − 1) · (mean of the N
    /// leave-one-out values − V*). 0 for a single sample.
    pub(crate) fn bias(&self, beta1: f64) -> f64 {
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

/// V* of goals, with the conditions of their rollouts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueTable {
    key: ValueKey,
    beta1: f64,
    goals: Vec<GoalValue>,
}

impl ValueTable {
    /// An empty table; `beta1` is positive.
    pub(crate) fn new(key: ValueKey, beta1: f64) -> Self {
        Self { key, beta1, goals: Vec::new() }
    }

    /// Sets the rollouts of a goal, replacing earlier ones.
    ///
    /// Panics if `rollouts` is empty.
    pub(crate) fn insert(&mut self, shop: u32, goal: u32, rollouts: &[ReferenceRollout]) {
        assert!(!rollouts.is_empty(), "a value needs at least one rollout");
        self.put(GoalValue::of(shop, goal, rollouts, self.beta1));
    }

    /// Inserts the value of a goal from a table with an equal key.
    pub(crate) fn put(&mut self, value: GoalValue) {
        match self.position(value.shop, value.goal) {
            Ok(at) => self.goals[at] = value,
            Err(at) => self.goals.insert(at, value),
        }
    }

    /// The value of a goal, if it has one.
    pub(crate) fn get(&self, shop: u32, goal: u32) -> Option<&GoalValue> {
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
    pub(crate) fn key(&self) -> &ValueKey {
        &self.key
    }

    /// Share of goals without a success ([`GoalValue::has_success`]); 0 for an empty table.
    pub fn share_without_success(&self) -> f64 {
        self.mean_of(|value| f64::from(!value.has_success()))
    }

    /// Mean V*; 0 for an empty table.
    pub fn mean_v_star(&self) -> f64 {
        self.mean_of(|value| value.v_star)
    }

    /// Mean of `GoalValue::bias` over goals; 0 for an empty table.
    pub fn mean_bias(&self) -> f64 {
        self.mean_of(|value| value.bias(self.beta1))
    }

    fn mean_of(&self, what: impl Fn(&GoalValue) -> f64) -> f64 {
        self.goals.iter().map(what).sum::<f64>() / self.goals.len().max(1) as f64
    }

    /// Writes the table as JSON.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        write_json(path, self)
    }

    /// Reads the table of `key`; an empty one if there is no file or its conditions differ. The rewards do not depend
    /// on `beta1`, so the values of a table with another are computed from its rewards again.
    pub(crate) fn load(path: &Path, key: &ValueKey, beta1: f64) -> Result<Self> {
        let kept = if path.exists() { Some(read_json::<Self>(path)?) } else { None };
        let Some(mut table) = kept.filter(|table| table.key == *key) else {
            return Ok(Self::new(key.clone(), beta1));
        };
        if table.beta1 != beta1 {
            table.beta1 = beta1;
            table.goals.iter_mut().for_each(|value| value.v_star = optimal_value(&value.rewards, beta1));
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests;
