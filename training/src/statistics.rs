//! How sure a measured number is.
//!
//! An [`Interval`] is an estimate with its 95 % bounds: [`success_interval`] for a rate, [`mean_interval`] for a mean
//! of scores, [`paired_difference`] for two policies tried on the same goals. Every function is deterministic; the
//! bootstrap draws from a [`Seed`] by coordinates. No hypothesis is tested here.

use rand::RngCore;
use serde::{Deserialize, Serialize};
use webshop_products::{Purpose, Seed};

/// An estimate and the bounds that hold the truth in 95 of 100 repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The best single number.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Resamples of a bootstrap; the bounds are then exact to about a hundredth of the interval's width.
const N_RESAMPLES: usize = 2000;

/// Wilson's score interval (1927) for `successes` of `n`, which stays in 0..=1 and is honest near its ends.
/// For `n = 0` the estimate is 0 and the interval everything.
///
/// ```
/// let rate = webshop_training::success_interval(5, 10);
/// assert_eq!((rate.estimate, (rate.low * 1e3).round(), (rate.high * 1e3).round()), (0.5, 237.0, 763.0));
/// ```
pub fn success_interval(successes: usize, n: usize) -> Interval {
    if n == 0 {
        return Interval {
            estimate: 0.0,
            low: 0.0,
            high: 1.0,
        };
    }
    let (k, n) = (successes as f64, n as f64);
    let rate = k / n;
    let scale = 1.0 + Z * Z / n;
    let middle = (rate + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At k = 0 and k = n a bound is the estimate itself; rounding must not put it beyond.
    Interval {
        estimate: rate,
        low: (middle - half).max(0.0).min(rate),
        high: (middle + half).min(1.0).max(rate),
    }
}

/// The mean of `values` with a bootstrap percentile interval from `seed`. No values give zeros; one value, or equal
/// ones, an interval without width.
pub fn mean_interval(values: &[f64], seed: Seed) -> Interval {
    if values.is_empty() {
        return Interval {
            estimate: 0.0,
            low: 0.0,
            high: 0.0,
        };
    }
    let mut means: Vec<f64> = (0..N_RESAMPLES as u64)
        .map(|resample| {
            let mut rng = seed.rng(Purpose::Bootstrap, &[resample]);
            let n = values.len() as u64;
            // A 32-bit draw scaled to 0..n: exact enough for any number of episodes, and the same in any library version.
            let sum: f64 = (0..n)
                .map(|_| values[((u64::from(rng.next_u32()) * n) >> 32) as usize])
                .sum();
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = N_RESAMPLES / 40; // 2.5 %
    Interval {
        estimate: mean(values),
        low: means[tail],
        high: means[N_RESAMPLES - 1 - tail],
    }
}

/// The mean of `after − before`, pair by pair, with its bootstrap interval: what a change brought on the same goals.
///
/// Panics if the lengths differ.
pub fn paired_difference(before: &[f64], after: &[f64], seed: Seed) -> Interval {
    assert_eq!(before.len(), after.len(), "pairs have two sides");
    let differences: Vec<f64> = before
        .iter()
        .zip(after)
        .map(|(before, after)| after - before)
        .collect();
    mean_interval(&differences, seed)
}

/// The arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(interval: Interval, [estimate, low, high]: [f64; 3], tolerance: f64) {
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
        let all = near(interval.estimate, estimate) && near(interval.low, low) && near(interval.high, high);
        assert!(all, "{interval:?}");
    }

    #[test]
    fn wilson_matches_published_values() {
        // Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3.
        check(success_interval(81, 263), [81.0 / 263.0, 0.2553, 0.3662], 5e-5);
        check(success_interval(15, 148), [15.0 / 148.0, 0.0624, 0.1605], 5e-5);
        check(success_interval(0, 20), [0.0, 0.0, 0.1611], 5e-5);
        check(success_interval(1, 29), [1.0 / 29.0, 0.0061, 0.1718], 5e-5);
    }

    #[test]
    fn all_successes_reach_one_and_none_knows_nothing() {
        check(success_interval(20, 20), [1.0, 0.8389, 1.0], 5e-5);
        check(success_interval(0, 0), [0.0, 0.0, 1.0], 0.0);
    }

    #[test]
    fn five_hundred_tasks_are_known_to_four_points() {
        let interval = success_interval(350, 500);
        assert!(
            ((interval.high - interval.low) / 2.0 - 0.040).abs() < 0.001,
            "{interval:?}"
        );
    }

    #[test]
    fn the_bootstrap_agrees_with_the_normal_interval() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        // Mean .5, variance (1 + 1/9 + 1/9 + 1)/16 = 5/36 → ± 1.96 · √(5/36/400) = ± .03652
        check(mean_interval(&values, Seed(0)), [0.5, 0.46348, 0.53652], 3e-3);
    }

    #[test]
    fn one_seed_gives_one_interval() {
        let values = [0.1, 0.5, 0.9, 0.3];
        assert_eq!(mean_interval(&values, Seed(1)), mean_interval(&values, Seed(1)));
        check(mean_interval(&[0.3; 5], Seed(1)), [0.3; 3], 1e-15);
        check(mean_interval(&[], Seed(1)), [0.0; 3], 0.0);
    }

    #[test]
    fn pairs_remove_what_goals_have_in_common() {
        // Goals differ widely, the gain never does.
        let before: Vec<f64> = (0..50).map(|i| f64::from(i) / 100.0).collect();
        let after: Vec<f64> = before.iter().map(|score| score + 0.25).collect();
        check(paired_difference(&before, &after, Seed(0)), [0.25; 3], 1e-12);
    }
}
