//! What the runs of several seeds say of an arm, and of its difference to the baseline arm.
//!
//! The unit is the run: an interval says what further seeds would give, not what other goals would. One seed has
//! no interval, and nor have equal values. Differences are paired by seed, whose runs share their warm start, and their p-values are corrected
//! for the number of arms.

use webshop_evaluation::{holm, mean, paired_seeds_difference, seeds_interval};

/// The corrected p-value below which a difference has a star.
const SIGNIFICANT: f64 = 0.05;

/// The difference of an arm to the baseline arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ArmDifference {
    /// Difference of the means over seeds.
    mean: f64,
    /// Its 95 % interval over seeds, and the p-value of a paired t test after Holm's correction; `None` for a
    /// single seed, and if it is the same for all.
    over_seeds: Option<([f64; 2], f64)>,
}

impl ArmDifference {
    /// As a cell in points: `+4.0 [+1.2, +6.8], p 0.012 *`.
    pub(super) fn cell(&self) -> String {
        let Some(([low, high], p)) = self.over_seeds else { return signed(self.mean) };
        let mark = if p < SIGNIFICANT { " *" } else { "" };
        let p = if p < 0.001 { "p < 0.001".into() } else { format!("p {p:.3}") };
        format!("{} [{}, {}], {p}{mark}", signed(self.mean), signed(low), signed(high))
    }
}

/// The difference of each arm to arm `baseline`, which has none, from `rates` `[arms, seeds]`.
pub(super) fn differences(rates: &[Vec<f64>], baseline: usize) -> Vec<Option<ArmDifference>> {
    let Some(before) = rates.get(baseline) else { return Vec::new() };
    let others = || rates.iter().enumerate().filter(|(number, _)| *number != baseline);
    let found: Vec<_> = others().map(|(_, after)| paired_seeds_difference(before, after)).collect();
    let p_values: Vec<f64> = found.iter().flatten().map(|difference| difference.p).collect();
    let mut corrected = holm(&p_values).into_iter();
    let mut of_others = others().zip(found).map(|((_, after), found)| ArmDifference {
        mean: mean(after) - mean(before),
        over_seeds: found.and_then(|found| Some((found.ci95, corrected.next()?))),
    });
    (0..rates.len()).map(|number| if number == baseline { None } else { of_others.next() }).collect()
}

/// The interval over seeds of the mean of `shares`, cut at 0 and 1; `None` for a single seed, and for equal shares.
pub(super) fn share_interval(shares: &[f64]) -> Option<[f64; 2]> {
    seeds_interval(shares).map(|bounds| bounds.map(|bound| bound.clamp(0.0, 1.0)))
}

/// A difference of shares in percentage points, with its sign.
fn signed(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference).replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_paired_by_seed_and_corrected_for_the_number_of_arms() {
        // Against the middle arm. First: −.01, −.02, −.03, mean −.02, error .01/√3, t(2) = 4.303: ± .02484; p = 1 −
        // t/√(2 + t²) with t = 2√3 is .0742, the only one, which Holm's method leaves. Last: .125 three times.
        let rates = [vec![0.49, 0.38, 0.57], vec![0.5, 0.4, 0.6], vec![0.625, 0.525, 0.725]];
        let cells: Vec<String> =
            differences(&rates, 1).iter().map(|of| of.map_or(String::new(), |of| of.cell())).collect();
        assert_eq!(cells[..2], ["−2.0 [−4.5, +0.5], p 0.074", ""]);
        assert_eq!(cells[2], "+12.5", "equal differences have no interval");
        let clear = ArmDifference { mean: 0.25, over_seeds: Some(([0.125, 0.375], 0.0004)) };
        assert_eq!(clear.cell(), "+25.0 [+12.5, +37.5], p < 0.001 *");
    }

    #[test]
    fn a_single_seed_has_a_difference_without_an_interval() {
        let found = differences(&[vec![0.5], vec![0.75]], 0);
        assert_eq!(found[0], None);
        assert_eq!(found[1].unwrap().cell(), "+25.0");
        assert_eq!(share_interval(&[0.5]), None);
    }

    #[test]
    fn intervals_of_shares_are_cut() {
        assert_eq!(share_interval(&[0.1, 0.9]), Some([0.0, 1.0]));
        assert!(differences(&[], 0).is_empty());
    }
}
