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
//! checkpoint, since they depend on its own episodes. This is an approximation: the digest contains neither
//! the earlier context of the model nor the number of actions left, so a goal and a state have one V*,
//! whichever path was valued first.
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

use crate::config::ShopR1Config;
use crate::error::Result;
use crate::reward::TaskReward;
use crate::run::atomic::{read_json, write_json};

/// β₁ · log of the mean of exp(r/β₁), between the mean of `rewards` and their maximum.
///
/// The maximum is subtracted first, so that no reward overflows. `beta1` is positive. No rewards give NaN.
///
/// ```
/// use webshop_training::optimal_value;
/// // Two rollouts, one success: .5 · ln((e² + 1)/2) = .5 · ln 4.1945
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

/// The data of a reference rollout that V* needs.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRollout {
    /// Its reward.
    pub reward: f64,
    /// Number of generated tokens.
    pub n_tokens: usize,
    /// Digests of the states after its first turn, without the last state.
    pub states: Vec<u64>,
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
        Self { shop, goal, v_star: optimal_value(&rewards, beta1), rewards, n_tokens, states }
    }

    /// V* of a state, from the rollouts that passed it and the rewards of rollouts `forked` there; `None` if
    /// there are fewer than `least` ≥ 1.
    pub fn v_state(&self, state: u64, forked: &[f64], beta1: f64, least: usize) -> Option<f64> {
        let passed = self.states.get(&state).map_or(&[][..], Vec::as_slice);
        let rewards = [passed, forked].concat();
        (rewards.len() >= least).then(|| optimal_value(&rewards, beta1))
    }

    /// Whether any sample has the full reward.
    pub fn has_success(&self) -> bool {
        self.rewards.contains(&1.0)
    }

    /// Standard deviation of the rewards, over N.
    pub fn spread(&self) -> f64 {
        let n = self.rewards.len() as f64;
        let mean = self.rewards.iter().sum::<f64>() / n;
        (self.rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / n).sqrt()
    }

    /// The jackknife estimate of the bias of `v_star`, negative if it is too low: (N − 1) · (mean of the N
    /// leave-one-out values − V*). 0 for a single sample.
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

/// V* of goals, with the conditions of their rollouts.
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
    /// Panics if `rollouts` is empty.
    pub fn insert(&mut self, shop: u32, goal: u32, rollouts: &[ReferenceRollout]) {
        assert!(!rollouts.is_empty(), "a value needs at least one rollout");
        self.put(GoalValue::of(shop, goal, rollouts, self.beta1));
    }

    /// Inserts the value of a goal from a table with an equal key.
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

    /// Share of goals without a sample with the full reward; 0 for an empty table.
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

    /// Reads the table of `key` and `beta1`; an empty one if there is no file or its conditions differ.
    pub fn load(path: &Path, key: &ValueKey, beta1: f64) -> Result<Self> {
        let kept = if path.exists() { Some(read_json::<Self>(path)?) } else { None };
        let kept = kept.filter(|table| table.key == *key && table.beta1 == beta1);
        Ok(kept.unwrap_or_else(|| Self::new(key.clone(), beta1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BETA1: f64 = 0.5;

    fn key() -> ValueKey {
        ValueKey {
            version: VALUE_KEY_VERSION,
            reference: "abc".into(),
            prompt: "1".into(),
            results_shown: 5,
            max_context: 512,
            max_turn_tokens: 64,
            max_steps: 15,
            task_set: "shops".into(),
            seed: 0,
            since: 0,
            samples: 2,
            adaptive: false,
            reward: TaskReward::Success,
            malformed_penalty: 0.1,
            temperature: 1.0,
            top_p: 1.0,
            single_step: None,
            compute: String::new(),
        }
    }

    /// Σₖ C(n, k) pᵏ (1 − p)ⁿ⁻ᵏ · f(k): the exact mean of f over n trials.
    fn binomial_mean(n: usize, p: f64, f: impl Fn(usize) -> f64) -> f64 {
        let mut coefficient = 1.0;
        let mut mean = 0.0;
        for k in 0..=n {
            mean += coefficient * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32) * f(k);
            coefficient *= (n - k) as f64 / (k + 1) as f64;
        }
        mean
    }

    fn rollouts(rewards: &[f64]) -> Vec<ReferenceRollout> {
        rewards.iter().map(|&reward| ReferenceRollout { reward, n_tokens: 10, states: vec![] }).collect()
    }

    fn outcomes(successes: usize, n: usize) -> Vec<f64> {
        (0..n).map(|i| f64::from(i < successes)).collect()
    }

    /// V* of a coin with success probability p: β₁ ln(p e² + 1 − p).
    fn exact(p: f64) -> f64 {
        BETA1 * (p * (1.0 / BETA1).exp() + 1.0 - p).ln()
    }

    #[test]
    fn the_bias_of_n_samples_is_as_tabulated() {
        // Rows: p, V*, then for N = 2, 4, 8, 16, 32 the bias and the chance that all samples fail, to three
        // and two digits as the method's notes state them.
        let table: [(f64, f64, [f64; 5], [f64; 5]); 5] = [
            (0.02, 0.060, [-0.032, -0.023, -0.014, -0.008, -0.005], [0.96, 0.92, 0.85, 0.72, 0.52]),
            (0.05, 0.139, [-0.068, -0.047, -0.028, -0.016, -0.008], [0.90, 0.81, 0.66, 0.44, 0.19]),
            (0.10, 0.247, [-0.108, -0.070, -0.040, -0.021, -0.011], [0.81, 0.66, 0.43, 0.19, 0.03]),
            (0.20, 0.412, [-0.142, -0.082, -0.042, -0.021, -0.010], [0.64, 0.41, 0.17, 0.03, 0.00]),
            (0.50, 0.717, [-0.108, -0.047, -0.020, -0.010, -0.005], [0.25, 0.06, 0.00, 0.00, 0.00]),
        ];
        for (p, v_star, biases, all_fail) in table {
            assert!((exact(p) - v_star).abs() < 5.01e-4, "V*({p}) = {}", exact(p));
            for (i, n) in [2, 4, 8, 16, 32].into_iter().enumerate() {
                let mean = binomial_mean(n, p, |k| optimal_value(&outcomes(k, n), BETA1));
                let bias = mean - exact(p);
                assert!((bias - biases[i]).abs() < 5.01e-4, "bias at p = {p}, N = {n}: {bias}");
                let fail = binomial_mean(n, p, |k| f64::from(k == 0));
                assert!((fail - all_fail[i]).abs() < 5.01e-3, "all fail at p = {p}, N = {n}: {fail}");
            }
        }
    }

    #[test]
    fn small_beta_is_the_maximum_and_large_beta_the_mean() {
        let rewards = [0.0, 0.25, 1.0, 0.75];
        assert!((optimal_value(&rewards, 1e-6) - 1.0).abs() < 1e-5);
        assert!((optimal_value(&rewards, 1e6) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn large_rewards_do_not_overflow() {
        // exp(1000/.5) is far beyond f64; 1000 + .5 · ln(1/2) is not.
        assert!((optimal_value(&[1000.0, 0.0], BETA1) - (1000.0 + 0.5 * 0.5_f64.ln())).abs() < 1e-9);
        assert!(optimal_value(&[], BETA1).is_nan());
    }

    #[test]
    fn the_jackknife_has_the_sign_of_the_bias() {
        let mean_bias = binomial_mean(8, 0.2, |k| {
            let mut table = ValueTable::new(key(), BETA1);
            table.insert(0, 0, &rollouts(&outcomes(k, 8)));
            table.mean_bias()
        });
        // The true bias is −.042; the jackknife is itself approximate.
        assert!((-0.055..-0.030).contains(&mean_bias), "{mean_bias}");
    }

    #[test]
    fn a_table_keeps_goals_in_order_and_replaces() {
        let mut table = ValueTable::new(key(), BETA1);
        table.insert(1, 0, &rollouts(&[0.0]));
        table.insert(0, 7, &rollouts(&[0.0, 0.5]));
        table.insert(0, 7, &rollouts(&[1.0, 0.0]));
        let order: Vec<_> = table.goals().iter().map(|value| (value.shop, value.goal)).collect();
        assert_eq!(order, [(0, 7), (1, 0)]);
        assert!((table.get(0, 7).unwrap().v_star - exact(0.5)).abs() < 1e-12);
        assert_eq!(table.get(0, 8), None);
        assert_eq!(table.share_without_success(), 0.5);
    }

    #[test]
    fn the_value_of_a_state_comes_from_the_rollouts_that_passed_it() {
        let rollout = |reward, states: &[u64]| ReferenceRollout { reward, n_tokens: 5, states: states.into() };
        let mut table = ValueTable::new(key(), BETA1);
        table.insert(0, 0, &[rollout(1.0, &[1, 2, 1]), rollout(0.0, &[1]), rollout(0.0, &[3])]);
        let value = table.get(0, 0).unwrap();
        // State 1 was passed by a success and a failure, twice by the former.
        assert!((value.v_state(1, &[], BETA1, 2).unwrap() - exact(0.5)).abs() < 1e-12);
        assert_eq!((value.v_state(2, &[], BETA1, 1), value.v_state(2, &[], BETA1, 2)), (Some(1.0), None));
        assert_eq!((value.v_state(4, &[], BETA1, 1), value.n_tokens), (None, 15));
        // No rollout passed state 4, and one of four forks succeeded: .5 · ln((e² + 3)/4) = .5 · ln 2.597264.
        assert!((value.v_state(4, &[0.0, 1.0, 0.0, 0.0], BETA1, 2).unwrap() - 0.477_229).abs() < 1e-6);
        // A success passed state 2 and a fork of it failed.
        assert!((value.v_state(2, &[0.0], BETA1, 2).unwrap() - exact(0.5)).abs() < 1e-12);
        assert!((value.spread() - (2.0_f64 / 9.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_table_is_reused_only_under_equal_conditions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value.json");
        let empty = ValueTable::new(key(), BETA1);
        assert_eq!(ValueTable::load(&path, &key(), BETA1).unwrap(), empty);
        let mut table = empty.clone();
        table.insert(0, 3, &rollouts(&[1.0 / 3.0, 0.1]));
        table.save(&path).unwrap();
        assert_eq!(ValueTable::load(&path, &key(), BETA1).unwrap(), table);
        let changes: [fn(&mut ValueKey); 5] = [
            |key| key.reference.push('x'),
            |key| key.task_set.push('x'),
            |key| key.version += 1,
            |key| key.temperature = 0.9,
            |key| key.single_step = Some(ShopR1Config::default()),
        ];
        for change in changes {
            let mut other = key();
            change(&mut other);
            assert!(ValueTable::load(&path, &other, BETA1).unwrap().goals().is_empty());
            assert_ne!(other.digest(), key().digest());
        }
        assert!(ValueTable::load(&path, &key(), 0.25).unwrap().goals().is_empty());
    }
}
