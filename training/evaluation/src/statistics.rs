//! 95 % confidence intervals, each as `[low, high]`.
//!
//! | function | interval of |
//! |---|---|
//! | [`wilson_interval`] | a rate |
//! | [`mean_interval`] | a mean of scores |
//! | [`difference_interval`] | the difference of two rates measured on independent trials |
//! | [`bootstrap`] | a statistic without a formula |
//! | [`paired_bootstrap`] | the mean difference of two measurements of the same goals |
//! | [`crossed_bootstrap`] | the mean of several runs on the same goals |
//!
//! Every function is deterministic; the bootstraps draw from a [`Seed`] by coordinates. Hypothesis tests are
//! not implemented.

use rand::RngCore;
use webshop_products::{Purpose, Seed};

/// Resamples of [`bootstrap`].
const BOOTSTRAP: Purpose = Purpose::new("bootstrap");
/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Number of bootstrap resamples; the error of the bounds is about a hundredth of the interval's width.
const N_RESAMPLES: usize = 2000;

/// Wilson's score interval (1927) for `successes` of `n`. It stays in 0..=1 and keeps its coverage near 0 and
/// 1. For `n = 0` it is `[0, 1]`.
///
/// ```
/// let [low, high] = webshop_evaluation::wilson_interval(5, 10);
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (237.0, 763.0));
/// ```
pub fn wilson_interval(successes: usize, n: usize) -> [f64; 2] {
    if n == 0 {
        return [0.0, 1.0];
    }
    let (k, n) = (successes as f64, n as f64);
    let rate = k / n;
    let scale = 1.0 + Z * Z / n;
    let middle = (rate + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At k = 0 and k = n a bound is the rate itself; rounding must not put it beyond.
    [(middle - half).max(0.0).min(rate), (middle + half).min(1.0).max(rate)]
}

/// The interval of `after − before` for two rates, each given as successes and trials: Newcombe's hybrid of
/// their Wilson intervals (1998, "Interval estimation for the difference between independent proportions",
/// method 10).
///
/// It assumes independent trials. If both rates are of the same goals, it is usually too wide; with the
/// outcome of each goal, [`paired_bootstrap`] is narrower.
///
/// ```
/// let [low, high] = webshop_evaluation::difference_interval((48, 80), (56, 70));
/// assert_eq!(((low * 1e4).round(), (high * 1e4).round()), (524.0, 3339.0));
/// ```
pub fn difference_interval(before: (usize, usize), after: (usize, usize)) -> [f64; 2] {
    let rate = |(successes, n): (usize, usize)| successes as f64 / n.max(1) as f64;
    let [before_low, before_high] = wilson_interval(before.0, before.1);
    let [after_low, after_high] = wilson_interval(after.0, after.1);
    let (before, after) = (rate(before), rate(after));
    let difference = after - before;
    let below = (after - after_low).hypot(before_high - before);
    let above = (after_high - after).hypot(before - before_low);
    [difference - below, difference + above]
}

/// Normal interval of the mean of `values`: ± 1.96 standard errors. No values give `[0, 0]`, one value an
/// interval of width 0.
pub(crate) fn mean_interval(values: &[f64]) -> [f64; 2] {
    let (mean, n) = (mean(values), values.len() as f64);
    if values.len() < 2 {
        return [mean, mean];
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = Z * (variance / n).sqrt();
    [mean - half, mean + half]
}

/// Percentile bootstrap of a statistic over `n` items. `statistic` takes `n` item indices, drawn with
/// replacement. For `n = 0` it is `[0, 0]`.
pub fn bootstrap(n: usize, seed: Seed, statistic: impl Fn(&[usize]) -> f64) -> [f64; 2] {
    if n == 0 {
        return [0.0, 0.0];
    }
    percentiles((0..N_RESAMPLES as u64).map(|resample| statistic(&draws(n, seed, &[resample]))).collect())
}

/// Percentile bootstrap of the mean of `after[i] − before[i]`, where `i` is a goal. No pairs give `[0, 0]`.
///
/// # Panics
/// If the lengths differ.
pub fn paired_bootstrap(before: &[f64], after: &[f64], seed: Seed) -> [f64; 2] {
    assert_eq!(before.len(), after.len(), "`before` and `after` are of the same goals");
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let n = differences.len();
    bootstrap(n, seed, |drawn| drawn.iter().map(|idx| differences[*idx]).sum::<f64>() / n as f64)
}

/// Percentile bootstrap of the mean of `values` `[runs, goals]`. Each resample draws runs and goals with
/// replacement, so the interval covers the variance of both (Owen 2007, "The pigeonhole bootstrap"; it is
/// conservative). No values give `[0, 0]`.
///
/// # Panics
/// If the rows differ in length.
pub fn crossed_bootstrap(values: &[Vec<f64>], seed: Seed) -> [f64; 2] {
    let n_columns = values.first().map_or(0, Vec::len);
    assert!(values.iter().all(|row| row.len() == n_columns), "all runs have the same goals");
    if n_columns == 0 {
        return [0.0, 0.0];
    }
    let resampled = |resample: u64| {
        let rows = draws(values.len(), seed, &[resample, 0]);
        let columns = draws(n_columns, seed, &[resample, 1]);
        let sum: f64 =
            rows.iter().map(|row| columns.iter().map(|column| values[*row][*column]).sum::<f64>()).sum();
        sum / (values.len() * n_columns) as f64
    };
    percentiles((0..N_RESAMPLES as u64).map(resampled).collect())
}

/// The 2.5 % and 97.5 % percentiles of [`N_RESAMPLES`] means.
fn percentiles(mut means: Vec<f64>) -> [f64; 2] {
    means.sort_by(f64::total_cmp);
    let tail = N_RESAMPLES / 40; // 2.5 %
    [means[tail], means[N_RESAMPLES - 1 - tail]]
}

/// `n` indices below `n`, drawn with replacement.
fn draws(n: usize, seed: Seed, coordinates: &[u64]) -> Vec<usize> {
    let mut rng = seed.rng(BOOTSTRAP, coordinates);
    // 32 bits scaled to 0..n: exact enough for any number of episodes, and the same in any library version.
    (0..n).map(|_| ((u64::from(rng.next_u32()) * n as u64) >> 32) as usize).collect()
}

/// The arithmetic mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(interval: [f64; 2], expected: [f64; 2], tolerance: f64) {
        let near = interval.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
        assert!(near, "{interval:?} is not {expected:?}");
    }

    #[test]
    fn wilson_matches_published_values() {
        // Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3.
        check(wilson_interval(81, 263), [0.2553, 0.3662], 5e-5);
        check(wilson_interval(15, 148), [0.0624, 0.1605], 5e-5);
        check(wilson_interval(0, 20), [0.0, 0.1611], 5e-5);
        check(wilson_interval(1, 29), [0.0061, 0.1718], 5e-5);
    }

    #[test]
    fn difference_interval_matches_published_values() {
        // Newcombe (1998), table II, method 10, of its first minus its second sample.
        check(difference_interval((48, 80), (56, 70)), [0.0524, 0.3339], 5e-5);
        check(difference_interval((3, 10), (9, 10)), [0.1705, 0.8090], 5e-5);
        check(difference_interval((0, 10), (10, 10)), [0.6075, 1.0], 5e-5);
    }

    #[test]
    fn wilson_reaches_one_and_covers_everything_without_trials() {
        check(wilson_interval(20, 20), [0.8389, 1.0], 5e-5);
        assert_eq!(wilson_interval(20, 20)[1], 1.0);
        check(wilson_interval(0, 0), [0.0, 1.0], 0.0);
    }

    #[test]
    fn wilson_of_five_hundred_episodes_is_four_points_wide_on_each_side() {
        let [low, high] = wilson_interval(350, 500);
        assert!(((high - low) / 2.0 - 0.040).abs() < 0.001, "{low} {high}");
    }

    #[test]
    fn mean_interval_is_two_standard_errors() {
        // Mean 2, variance (1 + 0 + 1)/2 = 1: 2 ± 1.96/√3.
        check(mean_interval(&[1.0, 2.0, 3.0]), [2.0 - 1.131_586, 2.0 + 1.131_586], 1e-6);
        check(mean_interval(&[0.5]), [0.5, 0.5], 0.0);
        check(mean_interval(&[]), [0.0, 0.0], 0.0);
    }

    #[test]
    fn paired_bootstrap_agrees_with_the_normal_interval() {
        let after: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        // Mean .5, variance (1/4 + 1/36 + 1/36 + 1/4)/4 = 5/36: .5 ± 1.96 · √(5/36/400) = .5 ± .03652.
        check(paired_bootstrap(&[0.0; 400], &after, Seed(0)), [0.46348, 0.53652], 3e-3);
    }

    #[test]
    fn crossed_bootstrap_resamples_runs_and_goals() {
        let rows = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        // Two runs that differ on all goals: a quarter of the resamples holds only one of them, a quarter
        // only the other.
        check(crossed_bootstrap(&rows(&[&[0.0; 9], &[1.0; 9]]), Seed(0)), [0.0, 1.0], 0.0);
        // Equal runs leave only the variance of the goals: the same as `paired_bootstrap` of one run.
        let goals: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        check(crossed_bootstrap(&rows(&[&goals, &goals]), Seed(0)), [0.46348, 0.53652], 3e-3);
        check(crossed_bootstrap(&[], Seed(0)), [0.0, 0.0], 0.0);
    }

    #[test]
    fn paired_bootstrap_is_deterministic_and_removes_the_variance_between_goals() {
        // Scores differ between goals; the difference is the same for all.
        let before: Vec<f64> = (0..50).map(|i| f64::from(i) / 64.0).collect();
        let after: Vec<f64> = before.iter().map(|score| score + 0.25).collect();
        assert_eq!(paired_bootstrap(&before, &after, Seed(0)), [0.25, 0.25]);
        let other: Vec<f64> = after.iter().rev().copied().collect();
        assert_eq!(paired_bootstrap(&before, &other, Seed(1)), paired_bootstrap(&before, &other, Seed(1)));
        assert_ne!(paired_bootstrap(&before, &other, Seed(1)), paired_bootstrap(&before, &other, Seed(2)));
        check(paired_bootstrap(&[], &[], Seed(0)), [0.0, 0.0], 0.0);
    }
}
