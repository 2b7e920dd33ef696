//! 95 % confidence intervals of independent trials, each as `[low, high]`.
//!
//! | function | interval of |
//! |---|---|
//! | [`wilson_interval`] | a rate |
//! | [`mean_interval`] | a mean of scores |
//! | [`difference_interval`] | the difference of two independent rates that have intervals |
//! | [`bootstrap`] | a statistic without a formula |
//!
//! Goals of one product are not independent: [`crate::clustered`] has the intervals of goals, and [`crate::seeds`]
//! those of runs. Every function is deterministic; the bootstrap draws from a [`Seed`] by coordinates.

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
    wilson(successes as f64 / n as f64, n as f64, Z)
}

/// Wilson's score interval of `rate` on `n` trials, which need not be whole, with the quantile `z`.
pub(crate) fn wilson(rate: f64, n: f64, z: f64) -> [f64; 2] {
    let scale = 1.0 + z * z / n;
    let middle = (rate + z * z / (2.0 * n)) / scale;
    let half = z / scale * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    // At the rates 0 and 1 a bound is the rate itself; rounding must not put it beyond.
    [(middle - half).max(0.0).min(rate), (middle + half).min(1.0).max(rate)]
}

/// The interval of `after − before` for two rates, each given with its 95 % interval: Newcombe's hybrid (1998,
/// "Interval estimation for the difference between independent proportions", method 10), which takes any two
/// intervals (Zou and Donner 2008, "Construction of confidence limits about effect measures: a general approach").
///
/// It assumes that the two rates are independent. If both are of the same goals, it is usually too wide; with the
/// outcome of each goal, [`crate::clustered_difference`] is narrower.
///
/// ```
/// use webshop_evaluation::{difference_interval, wilson_interval};
///
/// let rate = |successes, n| (successes as f64 / n as f64, wilson_interval(successes, n));
/// let [low, high] = difference_interval(rate(48, 80), rate(56, 70));
/// assert_eq!(((low * 1e4).round(), (high * 1e4).round()), (524.0, 3339.0));
/// ```
pub fn difference_interval(before: (f64, [f64; 2]), after: (f64, [f64; 2])) -> [f64; 2] {
    let ((before, [before_low, before_high]), (after, [after_low, after_high])) = (before, after);
    let difference = after - before;
    let below = libm::hypot(after - after_low, before_high - before);
    let above = libm::hypot(after_high - after, before - before_low);
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

/// The largest deviation of equal shares from their mean that rounding makes.
pub(crate) const ROUNDING: f64 = 1e-12;

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
        let rate = |successes: usize, n| (successes as f64 / n as f64, wilson_interval(successes, n));
        check(difference_interval(rate(48, 80), rate(56, 70)), [0.0524, 0.3339], 5e-5);
        check(difference_interval(rate(3, 10), rate(9, 10)), [0.1705, 0.8090], 5e-5);
        check(difference_interval(rate(0, 10), rate(10, 10)), [0.6075, 1.0], 5e-5);
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
    fn the_bootstrap_agrees_with_the_normal_interval_and_is_deterministic() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 4) / 3.0).collect();
        let of_mean =
            |seed| bootstrap(400, seed, |drawn| drawn.iter().map(|idx| values[*idx]).sum::<f64>() / 400.0);
        // Mean .5, variance (1/4 + 1/36 + 1/36 + 1/4)/4 = 5/36: .5 ± 1.96 · √(5/36/400) = .5 ± .03652.
        check(of_mean(Seed(0)), [0.46348, 0.53652], 3e-3);
        assert_eq!(of_mean(Seed(1)), of_mean(Seed(1)));
        assert_ne!(of_mean(Seed(1)), of_mean(Seed(2)));
        check(bootstrap(0, Seed(0), |_| 1.0), [0.0, 0.0], 0.0);
    }
}
