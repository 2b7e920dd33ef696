//! 95 % intervals of rates and means over goals, whose unit is the product.
//!
//! The goals of one product are not independent: who finds the product succeeds on most of them. So the products
//! are the clusters of a sample, and an interval takes its variance from the products' totals.
//!
//! With goals `1..n`, values `y`, their mean `ȳ`, and `m` products with residual totals
//! `rᵢ = Σ (y − ȳ)` over the goals of product `i`, the variance of `ȳ` is that of a ratio of totals (Cochran
//! 1977, "Sampling Techniques", eq. 9A.3, without finite population correction):
//!
//! ```text
//! v = m / (m − 1) · Σ rᵢ² / n²                                            `mean_variance`
//! ```
//!
//! A mean has the interval `ȳ ± t·√v` with the 97.5 % quantile `t` of Student's distribution with `m − 1` degrees of
//! freedom ([`mean_interval`]). A rate `p` has Wilson's interval on the effective number of goals (Rao and Scott
//! 1992, "A Simple Method for the Analysis of Clustered Binary Data", Biometrics 48:577), with the same `t` in the
//! place of 1.96 (as Korn and Graubard 1998 do, Survey Methodology 24:193) ([`rate_interval`]):
//!
//! ```text
//! d = v / (p(1 − p)/n)        design effect, at least 1
//! n* = n / d                  effective number of goals
//! ( p + t²/2n* ± t·√(p(1 − p)/n* + t²/4n*²) ) / (1 + t²/n*)
//! ```
//!
//! A rate in which every product counts the same is the mean of the products' own rates. It has Wilson's interval on
//! `n* = p(1 − p)/v`, where `v` is the variance of that mean, and at most on the number of goals ([`product_rate_interval`]).
//!
//! Deviations: a design effect below 1, which few products give by chance, counts as 1, so that no interval is
//! narrower than that of independent goals; a rate of 0 or 1 has no variance, and its design effect is 1, the limit
//! of a rate with a single exception. A mean, or a difference other than 0, without any variance has the interval of a
//! rate there, as if it were one: differences are stretched from −1..=1 to 0..=1. Results of a sample with fewer than two
//! products say nothing about others: their interval is the whole range.

use std::collections::BTreeMap;

use crate::statistics::{ROUNDING, mean, wilson};
use crate::student::{quantile_975, two_sided_p};

/// The interval of the mean of `values`, which are in 0..=1; `clusters[i]` names the product of value `i`. It is cut at
/// 0 and 1; with fewer than two products it is `[0, 1]`.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// // Mean .5. Three products with two goals each have the residual totals .2, 0 and −.2: v = 3/2 · .08/36, t(2) = 4.30.
/// let scores = [0.5, 0.7, 0.5, 0.5, 0.4, 0.4];
/// let [low, high] = webshop_evaluation::clustered_mean_interval(&scores, &[7, 7, 8, 8, 9, 9]);
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (252.0, 748.0));
/// ```
pub fn clustered_mean_interval<C: Ord>(values: &[f64], clusters: &[C]) -> [f64; 2] {
    let (mean, (variance, m)) = (mean(values), mean_variance(values, clusters));
    match variance > ROUNDING.powi(2) || m < 2 {
        true => interval_within([0.0, 1.0], mean, (variance, m)),
        false => wilson(mean, values.len() as f64, quantile_975(m - 1)),
    }
}

/// The interval of the share of successes; `clusters[i]` names the product of goal `i`. With fewer than two products
/// it is `[0, 1]`.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// // Each product succeeds on one of its two goals: no variance between products, so d = 1; t(3) = 3.18.
/// let halves = [true, false].repeat(4);
/// let products = [0, 0, 1, 1, 2, 2, 3, 3];
/// let [low, high] = webshop_evaluation::clustered_rate_interval(&halves, &products);
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (126.0, 874.0));
/// ```
pub fn clustered_rate_interval<C: Ord>(successes: &[bool], clusters: &[C]) -> [f64; 2] {
    let values: Vec<f64> = successes.iter().map(|success| f64::from(u8::from(*success))).collect();
    let (variance, m) = mean_variance(&values, clusters);
    if m < 2 {
        return [0.0, 1.0];
    }
    let (rate, n) = (mean(&values), values.len() as f64);
    let independent = rate * (1.0 - rate) / n;
    let design_effect = if independent > 0.0 { (variance / independent).max(1.0) } else { 1.0 };
    wilson(rate, n / design_effect, quantile_975(m - 1))
}

/// The mean of each product's values, in the order of the products, and the products: values in which every product
/// counts the same, however many goals it has.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// let (means, products) = webshop_evaluation::product_means(&[1.0, 0.0, 0.5], &[8, 8, 7]);
/// assert_eq!((means, products), (vec![0.5, 0.5], vec![&7, &8]));
/// ```
pub fn product_means<'a, C: Ord>(values: &[f64], clusters: &'a [C]) -> (Vec<f64>, Vec<&'a C>) {
    assert_eq!(values.len(), clusters.len(), "each value has a product");
    let mut of: BTreeMap<&C, Vec<f64>> = BTreeMap::new();
    for (value, cluster) in values.iter().zip(clusters) {
        of.entry(cluster).or_default().push(*value);
    }
    of.into_iter().map(|(cluster, values)| (mean(&values), cluster)).unzip()
}

/// The interval of the mean of products' rates, which are in 0..=1 ([`product_means`]), over `n_goals` goals; with fewer
/// than two products it is `[0, 1]`.
///
/// ```
/// // Mean .5 and v = .1/12, as .25/v = 30 goals would have; t(3) = 3.18.
/// let [low, high] = webshop_evaluation::product_rate_interval(&[0.6, 0.4, 0.3, 0.7], 40);
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (249.0, 751.0));
/// // No product succeeds: as four goals would have.
/// let [low, high] = webshop_evaluation::product_rate_interval(&[0.0; 4], 4);
/// assert_eq!((low, (high * 1e3).round()), (0.0, 717.0));
/// // All have the same rate, whose mean is another in its last bit: as 40 goals would have.
/// let [low, high] = webshop_evaluation::product_rate_interval(&[0.1; 4], 40);
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (24.0, 338.0));
/// ```
pub fn product_rate_interval(rates: &[f64], n_goals: usize) -> [f64; 2] {
    let m = rates.len();
    if m < 2 {
        return [0.0, 1.0];
    }
    let products: Vec<usize> = (0..m).collect();
    let (rate, (variance, _)) = (mean(rates), mean_variance(rates, &products));
    let n_effective = if variance > 0.0 { rate * (1.0 - rate) / variance } else { f64::INFINITY };
    wilson(rate, n_effective.min(n_goals as f64), quantile_975(m - 1))
}

/// The mean of `after[i] − before[i]`, where `i` is a goal, with its interval and the p-value of a two-sided t test
/// of no difference; `clusters[i]` names the product of goal `i`.
///
/// Values are in 0..=1, so the interval is cut at −1 and 1. With fewer than two products it is `[−1, 1]` and the
/// p-value 1. If all differences are 0, the interval is `[0, 0]` and the p-value 1.
///
/// # Panics
/// If the lengths differ.
pub fn clustered_difference<C: Ord>(before: &[f64], after: &[f64], clusters: &[C]) -> Difference {
    assert_eq!(before.len(), after.len(), "`before` and `after` are of the same goals");
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let (mean, (variance, m)) = (mean(&differences), mean_variance(&differences, clusters));
    if mean == 0.0 || m < 2 || variance > ROUNDING.powi(2) {
        let ci95 = interval_within([-1.0, 1.0], mean, (variance, m));
        return Difference::new(mean, ci95, variance.sqrt(), m.saturating_sub(1));
    }
    let t = quantile_975(m - 1);
    let ci95 = wilson(f64::midpoint(mean, 1.0), differences.len() as f64, t).map(|bound| 2.0 * bound - 1.0);
    let towards_zero = if mean > 0.0 { mean - ci95[0] } else { ci95[1] - mean };
    Difference::new(mean, ci95, towards_zero / t, m - 1)
}

/// A difference of two measurements with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// The mean difference.
    pub mean: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// The p-value of a two-sided t test of no difference.
    pub p: f64,
}

impl Difference {
    /// From the mean, its interval, its standard error and the degrees of freedom of the error. Without an error
    /// the p-value is 0, or 1 if the mean is 0.
    pub(crate) fn new(mean: f64, ci95: [f64; 2], error: f64, df: usize) -> Self {
        let p = match (mean == 0.0, error > 0.0) {
            _ if df == 0 => 1.0,
            (true, _) => 1.0,
            (false, false) => 0.0,
            (false, true) => two_sided_p(mean.abs() / error, df),
        };
        Self { mean, ci95, p }
    }
}

/// The t interval of a mean, given its variance and the number of products, cut at the range of the values.
fn interval_within([least, most]: [f64; 2], mean: f64, (variance, m): (f64, usize)) -> [f64; 2] {
    if m < 2 {
        return [least, most];
    }
    let half = quantile_975(m - 1) * variance.sqrt();
    [(mean - half).max(least), (mean + half).min(most)]
}

/// The variance `v` of the mean, and the number of products `m`; 0 if `m` is below 2.
fn mean_variance<C: Ord>(values: &[f64], clusters: &[C]) -> (f64, usize) {
    assert_eq!(values.len(), clusters.len(), "each value has a product");
    let mean = mean(values);
    let mut totals: BTreeMap<&C, f64> = BTreeMap::new();
    for (value, cluster) in values.iter().zip(clusters) {
        *totals.entry(cluster).or_default() += value - mean;
    }
    let m = totals.len();
    if m < 2 {
        return (0.0, m);
    }
    let n = values.len() as f64;
    let squares: f64 = totals.values().map(|total| total * total).sum();
    (m as f64 / (m as f64 - 1.0) * squares / (n * n), m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::wilson_interval;

    #[track_caller]
    fn check(interval: [f64; 2], expected: [f64; 2], tolerance: f64) {
        let near = interval.iter().zip(expected).all(|(a, b)| (a - b).abs() <= tolerance);
        assert!(near, "{interval:?} is not {expected:?}");
    }

    /// `sizes[i]` goals of product `i`, of which the first `successes[i]` succeed.
    fn sample(sizes: &[usize], successes: &[usize]) -> (Vec<bool>, Vec<u32>) {
        let goals = || sizes.iter().zip(successes).enumerate();
        let outcomes = goals().flat_map(|(_, (size, success))| (0..*size).map(move |goal| goal < *success));
        let products = goals().flat_map(|(product, (size, _))| vec![product as u32; *size]);
        (outcomes.collect(), products.collect())
    }

    #[test]
    fn a_rate_has_wilsons_interval_on_the_effective_number_of_goals() {
        let (outcomes, products) = sample(&[4, 4, 2, 2], &[4, 0, 2, 0]);
        // p = 6/12. Residual totals 2, −2, 1, −1: v = 4/3 · 10/144 = .092593. p(1 − p)/n = .020833, d = 4.4444,
        // n* = 2.7. t(3)² = 10.1279, t²/n* = 3.75107. Centre 1/2; half width
        // t·√(.25/2.7 + t²/(4·2.7²)) / (1 + t²/n*) = 3.182446 · √(.092593 + .347320) / 4.75107 = .444275.
        check(clustered_rate_interval(&outcomes, &products), [0.055725, 0.944275], 2e-6);
    }

    #[test]
    fn goals_that_are_products_of_their_own_have_nearly_the_plain_interval() {
        let (outcomes, products) = sample(&[1; 400], &[[1; 300].as_slice(), &[0; 100]].concat());
        // v is larger than p(1 − p)/n by 400/399, and t(399) = 1.96593.
        check(clustered_rate_interval(&outcomes, &products), wilson_interval(300, 400), 5e-4);
    }

    #[test]
    fn products_that_agree_in_all_goals_count_once() {
        // 30 products of ten goals, 27 of which always succeed: as 30 goals, but for the factor 30/29.
        let successes = [[10; 27].as_slice(), &[0; 3]].concat();
        let (outcomes, products) = sample(&[10; 30], &successes);
        let [low, high] = clustered_rate_interval(&outcomes, &products);
        let [low_30, high_30] = wilson_interval(27, 30);
        assert!((low - low_30).abs() < 0.02 && (high - high_30).abs() < 0.01, "{low} {high}");
        let [plain_low, plain_high] = wilson_interval(270, 300);
        assert!(low < plain_low - 0.1 && high > plain_high + 0.02, "{low} {high}");
    }

    #[test]
    fn rates_of_zero_and_one_and_single_products_have_intervals() {
        // No variance: Wilson's interval with n* = 20 and t(4)² = 7.7086: 1 / (1 + 7.7086/20) = .721796.
        let (outcomes, products) = sample(&[4; 5], &[4; 5]);
        check(clustered_rate_interval(&outcomes, &products), [0.721796, 1.0], 1e-5);
        let (outcomes, products) = sample(&[4; 5], &[0; 5]);
        check(clustered_rate_interval(&outcomes, &products), [0.0, 1.0 - 0.721796], 1e-5);
        assert_eq!(clustered_rate_interval(&[true; 9], &[3; 9]), [0.0, 1.0]);
        assert_eq!(clustered_rate_interval::<u32>(&[], &[]), [0.0, 1.0]);
    }

    #[test]
    fn a_mean_has_a_t_interval_over_products() {
        // ȳ = .4. Residual totals: product 0: .6 + .6 + .3 − 3·.4 = .3; products 1 and 2: .25 − .4 = −.15.
        // v = 3/2 · (.09 + .0225 + .0225)/25 = .0081, √v = .09, t(2) = 4.302653: ± .387239.
        let interval = clustered_mean_interval(&[0.6, 0.6, 0.3, 0.25, 0.25], &[0, 0, 0, 1, 2]);
        check(interval, [0.4 - 0.387239, 0.4 + 0.387239], 1e-5);
        assert_eq!(clustered_mean_interval(&[0.5, 0.7], &[4, 4]), [0.0, 1.0]);
        let all = [0.0, 0.0, 0.0, 0.0, 0.0];
        let of_rate = clustered_rate_interval(&[false; 5], &[0, 0, 0, 1, 2]);
        assert_eq!(clustered_mean_interval(&all, &[0, 0, 0, 1, 2]), of_rate, "without variance as a rate");
        assert_eq!(clustered_mean_interval(&[0.0, 1.0], &[4, 5]), [0.0, 1.0], "cut at the range of scores");
    }

    #[test]
    fn a_difference_is_paired_by_goal_and_clustered_by_product() {
        // Differences .4, .4, 0, 0 of three products with residual totals .4, −.2, −.2 (mean .2): v = 3/2 · .24/16 =
        // .0225, √v = .15; t = .2/.15 = 4/3 with 2 degrees of freedom: p = 1 − t/√(2 + t²) = .314.
        let found = clustered_difference(&[0.0, 0.0, 1.0, 0.0], &[0.4, 0.4, 1.0, 0.0], &[5, 5, 6, 7]);
        assert!((found.mean - 0.2).abs() < 1e-12);
        check(found.ci95, [0.2 - 0.645398, 0.2 + 0.645398], 1e-5);
        let t: f64 = 4.0 / 3.0;
        assert!((found.p - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-12, "{}", found.p);
        let equal = clustered_difference(&[1.0, 0.0], &[1.0, 0.0], &[1, 2]);
        assert_eq!((equal.ci95, equal.p), ([0.0, 0.0], 1.0));
        // One better on each of two goals, t(1) = 12.706: Wilson's interval of 2 of 2 is [.0122, 1], that of the difference
        // [−.976, 1]: t = 1/(1.976/12.706) = 6.43, p = .098.
        let always = clustered_difference(&[0.0, 0.0], &[1.0, 1.0], &[1, 2]);
        check(always.ci95, [-0.975527, 1.0], 1e-5);
        assert!((always.p - 0.098).abs() < 1e-3, "{}", always.p);
        let single = clustered_difference(&[0.0, 0.0], &[1.0, 1.0], &[1, 1]);
        assert_eq!((single.ci95, single.p), ([-1.0, 1.0], 1.0));
    }
}
