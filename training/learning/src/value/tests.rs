//! Tests of V* and of its table.

use super::*;
use crate::config::WarmStartConfig;

const BETA1: f64 = 0.5;

#[test]
fn v_star_is_between_the_mean_and_the_best_reward() {
    // Two rollouts, one success: .5 · ln((e² + 1)/2) = .5 · ln 4.1945
    assert!((optimal_value(&[1.0, 0.0], BETA1) - 0.716_890).abs() < 1e-6);
    assert_eq!(optimal_value(&[0.25; 8], BETA1), 0.25);
}

fn key() -> ValueKey {
    ValueKey {
        version: VALUE_KEY_VERSION,
        reference: "abc".into(),
        prompt: "1".into(),
        results_shown: 5,
        price_ranges: false,
        detail_chars: 400,
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
        demonstrator: None,
        examples: String::new(),
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
    let rollout =
        |&reward: &f64| ReferenceRollout { reward, is_success: reward == 1.0, n_tokens: 10, states: vec![] };
    rewards.iter().map(rollout).collect()
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
    let rollout = |reward, states: &[u64]| ReferenceRollout {
        reward,
        is_success: reward == 1.0,
        n_tokens: 5,
        states: states.into(),
    };
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
    let changes: [fn(&mut ValueKey); 8] = [
        |key| key.reference.push('x'),
        |key| key.task_set.push('x'),
        |key| key.version += 1,
        |key| key.price_ranges = true,
        |key| key.detail_chars = 401,
        |key| key.temperature = 0.9,
        |key| key.single_step = Some(ShopR1Config::default()),
        |key| key.demonstrator = Some(WarmStartConfig::default().habits),
    ];
    for change in changes {
        let mut other = key();
        change(&mut other);
        assert!(ValueTable::load(&path, &other, BETA1).unwrap().goals().is_empty());
        assert_ne!(other.digest(), key().digest());
    }
}

#[test]
fn values_under_another_beta_come_from_the_same_rewards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value.json");
    let [half, quarter] = [0.5, 0.25].map(|beta1| {
        let mut table = ValueTable::new(key(), beta1);
        table.insert(0, 3, &rollouts(&[1.0 / 3.0, 0.1, 1.0]));
        table
    });
    assert_ne!(half.goals()[0].v_star, quarter.goals()[0].v_star);
    half.save(&path).unwrap();
    assert_eq!(ValueTable::load(&path, &key(), 0.25).unwrap(), quarter);
    quarter.save(&path).unwrap();
    assert_eq!(ValueTable::load(&path, &key(), 0.5).unwrap(), half);
}

#[test]
fn a_success_is_the_shops_whatever_its_reward_in_training() {
    let rollout = |reward, is_success| ReferenceRollout { reward, is_success, n_tokens: 1, states: vec![] };
    let mut table = ValueTable::new(key(), BETA1);
    // A success with a penalty; a failure with a hierarchical reward of 1.
    table.insert(0, 0, &[rollout(0.9, true), rollout(0.0, false)]);
    table.insert(0, 1, &[rollout(1.0, false)]);
    assert_eq!(table.goals().iter().map(GoalValue::has_success).collect::<Vec<_>>(), [true, false]);
    assert_eq!(table.share_without_success(), 0.5);
    // A file from before successes were counted has rewards only.
    let mut old = serde_json::to_value(&table).unwrap();
    for value in old["goals"].as_array_mut().unwrap() {
        value.as_object_mut().unwrap().remove("n_successes").unwrap();
    }
    let old: ValueTable = serde_json::from_value(old).unwrap();
    assert_eq!(old.goals().iter().map(GoalValue::has_success).collect::<Vec<_>>(), [false, true]);
}
