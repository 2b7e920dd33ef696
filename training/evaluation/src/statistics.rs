//! How sure a measured number is.
//!
//! An interval is `[low, high]`, the bounds that hold the truth in 95 of 100 repetitions: [`wilson_interval`] for a rate,
//! [`mean_interval`] for a mean of scores, [`difference_interval`] for two rates measured apart, [`bootstrap`] for whatever
//! has no formula, [`paired_bootstrap`] for what a change brought on the same goals, [`crossed_bootstrap`] for the mean of
//! several runs on the same goals. Every function is deterministic; the bootstrap draws from a [`Seed`] by coordinates. No
//! hypothesis is tested here.

use rand::RngCore;
use webshop_products::{Purpose, Seed};

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Resamples of a bootstrap; the bounds are then exact to about a hundredth of the interval's width.
const N_RESAMPLES: usize = 2000;

/// Wilson's score interval (1927) for `successes` of `n`, which stays in 0..=1 and is honest near its ends. For
/// `n = 0` it is everything.
///
/// ```
/// let [low, high] = crate::statistics::wilson_interval(5, 10);
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

/// The interval of `after − before` for two rates, each given as successes and trials: Newcombe's hybrid of their
/// Wilson intervals (1998, "Interval estimation for the difference between independent proportions", method 10).
///
/// It takes the trials for independent. For the same goals tried twice it is wider than it need be, seldom too
/// narrow; where single outcomes are known, [`paired_bootstrap`] is sharper.
///
/// ```
/// let [low, high] = crate::statistics::difference_interval((48, 80), (56, 70));
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

/// The normal interval for the mean of `values`: ± 1.96 standard errors. No values give zeros, one value an interval
/// without width.
pub fn mean_interval(values: &[f64]) -> [f64; 2] {
    let (mean, n) = (mean(values), values.len() as f64);
    if values.len() < 2 {
        return [mean, mean];
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = Z * (variance / n).sqrt();
    [mean - half, mean + half]
}

/// The percentile bootstrap for a statistic of `n` items. `statistic` is given the positions of as many items, drawn with
/// replacement. No items give zeros.
pub fn bootstrap(n: usize, seed: Seed, statistic: impl Fn(&[usize]) -> f64) -> [f64; 2] {
    if n == 0 {
        return [0.0, 0.0];
    }
    middle_of((0..N_RESAMPLES as u64).map(|resample| statistic(&draws(n, seed, &[resample]))).collect())
}

/// The percentile bootstrap for the mean of `after − before`, pair by pair: what a change brought on the same goals.
/// No pairs give zeros.
///
/// Panics if the lengths differ.
pub fn paired_bootstrap(before: &[f64], after: &[f64], seed: Seed) -> [f64; 2] {
    assert_eq!(before.len(), after.len(), "pairs have two sides");
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let n = differences.len();
    bootstrap(n, seed, |drawn| drawn.iter().map(|at| differences[*at]).sum::<f64>() / n as f64)
}

/// The percentile bootstrap for the mean of `values` over rows and columns, such as runs and the goals that all of them
/// tried: both are drawn anew, each with replacement, so that the interval speaks of other runs on other goals (Owen
/// 2007, "The pigeonhole bootstrap"; it errs towards wide). No values give zeros.
///
/// Panics if the rows are not of one length.
pub fn crossed_bootstrap(values: &[Vec<f64>], seed: Seed) -> [f64; 2] {
    let n_columns = values.first().map_or(0, Vec::len);
    assert!(values.iter().all(|row| row.len() == n_columns), "all runs try the same goals");
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
    middle_of((0..N_RESAMPLES as u64).map(resampled).collect())
}

/// The bounds of the middle 95 % of [`N_RESAMPLES`] means.
fn middle_of(mut means: Vec<f64>) -> [f64; 2] {
    means.sort_by(f64::total_cmp);
    let tail = N_RESAMPLES / 40; // 2.5 %
    [means[tail], means[N_RESAMPLES - 1 - tail]]
}

/// As many positions below `n`, with replacement.
fn draws(n: usize, seed: Seed, coordinates: &[u64]) -> Vec<usize> {
    let mut rng = seed.rng(Purpose::Bootstrap, coordinates);
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
    fn a_difference_of_rates_matches_published_values() {
        // Newcombe (1998), table II, method 10, of its first minus its second sample.
        check(difference_interval((48, 80), (56, 70)), [0.0524, 0.3339], 5e-5);
        check(difference_interval((3, 10), (9, 10)), [0.1705, 0.8090], 5e-5);
        check(difference_interval((0, 10), (10, 10)), [0.6075, 1.0], 5e-5);
    }

    #[test]
    fn all_successes_reach_one_and_no_trials_know_nothing() {
        check(wilson_interval(20, 20), [0.8389, 1.0], 5e-5);
        assert_eq!(wilson_interval(20, 20)[1], 1.0);
        check(wilson_interval(0, 0), [0.0, 1.0], 0.0);
    }

    #[test]
    fn five_hundred_tasks_are_known_to_four_points() {
        let [low, high] = wilson_interval(350, 500);
        assert!(((high - low) / 2.0 - 0.040).abs() < 0.001, "{low} {high}");
    }

    #[test]
    fn the_mean_of_scores_is_known_to_its_standard_error() {
        // Mean 2, variance (1 + 0 + 1)/2 = 1: 2 ± 1.96/√3.
        check(mean_interval(&[1.0, 2.0, 3.0]), [2.0 - 1.131_586, 2.0 + 1.131_586], 1e-6);
        check(mean_interval(&[0.5]), [0.5, 0.5], 0.0);
        check(mean_interval(&[]), [0.0, 0.0], 0.0);
    }

    #[test]
    fn the_bootstrap_agrees_with_the_normal_interval() {
        let after: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        // Mean .5, variance (1/4 + 1/36 + 1/36 + 1/4)/4 = 5/36: .5 ± 1.96 · √(5/36/400) = .5 ± .03652.
        check(paired_bootstrap(&[0.0; 400], &after, Seed(0)), [0.46348, 0.53652], 3e-3);
    }

    #[test]
    fn runs_and_goals_are_both_drawn_anew() {
        let rows = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
        // Two runs that disagree on all goals: a quarter of the resamples holds only the one, a quarter only the other.
        check(crossed_bootstrap(&rows(&[&[0.0; 9], &[1.0; 9]]), Seed(0)), [0.0, 1.0], 0.0);
        // Runs that agree leave only the goals: as `paired_bootstrap` of one run.
        let goals: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        check(crossed_bootstrap(&rows(&[&goals, &goals]), Seed(0)), [0.46348, 0.53652], 3e-3);
        check(crossed_bootstrap(&[], Seed(0)), [0.0, 0.0], 0.0);
    }

    #[test]
    fn one_seed_gives_one_interval_and_pairs_remove_what_goals_have_in_common() {
        // Goals differ widely, the gain never does.
        let before: Vec<f64> = (0..50).map(|i| f64::from(i) / 64.0).collect();
        let after: Vec<f64> = before.iter().map(|score| score + 0.25).collect();
        assert_eq!(paired_bootstrap(&before, &after, Seed(0)), [0.25, 0.25]);
        let other: Vec<f64> = after.iter().rev().copied().collect();
        assert_eq!(paired_bootstrap(&before, &other, Seed(1)), paired_bootstrap(&before, &other, Seed(1)));
        assert_ne!(paired_bootstrap(&before, &other, Seed(1)), paired_bootstrap(&before, &other, Seed(2)));
        check(paired_bootstrap(&[], &[], Seed(0)), [0.0, 0.0], 0.0);
    }
}
