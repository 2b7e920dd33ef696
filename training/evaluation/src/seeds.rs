//! 95 % intervals over training seeds, and the correction for several comparisons.
//!
//! Runs of several seeds are a sample of the runs that the training procedure makes. Their intervals are
//! Student's, with one degree of freedom fewer than runs, and speak of the procedure; those of
//! [`crate::clustered_rate_interval`] speak of one run and of other goals. One run alone has no interval here, nor have
//! equal values: a policy without a model does the same for every seed on the goals that all seeds share, which says
//! nothing of further runs.

use crate::clustered::Difference;
use crate::statistics::{ROUNDING, mean};
use crate::student::quantile_975;

/// The t interval of the mean of `values`, one of each seed; `None` for fewer than two, and if all are equal.
///
/// ```
/// // Mean 2, standard deviation 1, t(2) = 4.3027: 2 ± 4.3027/√3.
/// let [low, high] = webshop_evaluation::seeds_interval(&[1.0, 2.0, 3.0]).unwrap();
/// assert_eq!(((low * 1e3).round(), (high * 1e3).round()), (-484.0, 4484.0));
/// ```
pub fn seeds_interval(values: &[f64]) -> Option<[f64; 2]> {
    let error = standard_error(values)?;
    let half = quantile_975(values.len() - 1) * error;
    Some([mean(values) - half, mean(values) + half])
}

/// The mean of `after[i] − before[i]`, where `i` is a seed, with its t interval and the p-value of a paired t test;
/// `None` for fewer than two seeds, and if all differences are equal.
///
/// # Panics
/// If the lengths differ.
pub fn paired_seeds_difference(before: &[f64], after: &[f64]) -> Option<Difference> {
    assert_eq!(before.len(), after.len(), "`before` and `after` are of the same seeds");
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let (error, ci95) = (standard_error(&differences)?, seeds_interval(&differences)?);
    Some(Difference::new(mean(&differences), ci95, error, differences.len() - 1))
}

/// The p-values of several comparisons after Holm's correction (1979, "A Simple Sequentially Rejective Multiple Test
/// Procedure"), in the given order: a comparison whose corrected p-value is below 0.05 is significant, and the
/// probability of one or more false ones among all comparisons is below 5 %.
///
/// The k-th smallest of `n` p-values, from 0, is multiplied by `n − k`; none becomes less than a smaller one before
/// it, nor more than 1.
///
/// ```
/// assert_eq!(webshop_evaluation::holm(&[0.25, 0.125, 0.5]), [0.5, 0.375, 0.5]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let n = p_values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let (mut corrected, mut least) = (vec![0.0; n], 0.0_f64);
    for (rank, place) in order.into_iter().enumerate() {
        least = least.max((n - rank) as f64 * p_values[place]).min(1.0);
        corrected[place] = least;
    }
    corrected
}

/// The standard error of the mean; `None` for fewer than two values, and if all are equal.
fn standard_error(values: &[f64]) -> Option<f64> {
    let (mean, n) = (mean(values), values.len());
    let deviations = || values.iter().map(|value| value - mean);
    if deviations().all(|deviation| deviation.abs() <= ROUNDING) {
        return None;
    }
    let squares: f64 = deviations().map(|deviation| deviation.powi(2)).sum();
    Some((squares / ((n - 1) * n) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_over_seeds_is_students() {
        // Bimodal runs: mean .3890, variance (.2620² + .2490² + .5110²)/2 = .19588, error √(.19588/3) = .25553, times
        // t(2) = 4.302653.
        let [low, high] = seeds_interval(&[0.127, 0.140, 0.900]).unwrap();
        assert!(
            (low - (0.389 - 1.09944)).abs() < 1e-4 && (high - (0.389 + 1.09944)).abs() < 1e-4,
            "{low} {high}"
        );
        assert_eq!((seeds_interval(&[0.5]), seeds_interval(&[])), (None, None));
        assert_eq!(seeds_interval(&[0.3, 0.3, 0.3]), None);
    }

    #[test]
    fn a_paired_difference_removes_the_variance_between_seeds() {
        let difference = |before: &[f64], after: &[f64]| paired_seeds_difference(before, after);
        // Differences 1, 2, 3: mean 2, error 1/√3, t = 2√3 with 2 degrees of freedom: p = 1 − t/√(2 + t²).
        let found = difference(&[10.0, 0.0, 5.0], &[11.0, 2.0, 8.0]).unwrap();
        assert_eq!((found.mean, found.ci95), (2.0, seeds_interval(&[1.0, 2.0, 3.0]).unwrap()));
        assert!((found.p - (1.0 - (12.0_f64 / 14.0).sqrt())).abs() < 1e-12, "{}", found.p);
        assert_eq!(difference(&[0.5, 0.4, 0.6], &[0.625, 0.525, 0.725]), None, "equal but for rounding");
        assert_eq!(difference(&[0.0], &[1.0]), None);
    }

    #[test]
    fn holm_multiplies_by_the_number_of_remaining_comparisons() {
        // Sorted .01, .02, .03, .04: 4 · .01, 3 · .02, 2 · .03, and 1 · .04, which is raised to .06.
        let found = holm(&[0.04, 0.01, 0.03, 0.02]);
        let expected = [0.06, 0.04, 0.06, 0.06];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert_eq!((holm(&[]), holm(&[0.9, 0.8]), holm(&[0.03])), (vec![], vec![1.0, 1.0], vec![0.03]));
    }
}
