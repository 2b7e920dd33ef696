//! Advantage-weighted regression: clone every sampled episode with the exponential of its advantage as
//! weight.
//!
//! Paper: "Advantage-Weighted Regression: Simple and Scalable Off-Policy Reinforcement Learning", arXiv
//! 1910.00177, algorithm 1.
//!
//! ```text
//! w_b = exp( min( A_b / β, 20 ) ) / mean_b exp( min( A_b / β, 20 ) )        A — `Segment::advantage`, β — `beta`
//! L = −mean_b w_b · Σₜ lpₜ                                                 w — `Segment::weight`
//! ```
//!
//! Deviations from the paper: A = r − V* instead of a return minus a learned value; the policy's episodes of
//! this step instead of a replay buffer; weights are divided by their mean, so that the size of the step does
//! not depend on β alone; the exponent is bounded at 20, as the paper bounds w. If all advantages are equal,
//! all weights would be 1 and the policy would clone itself: no signal. With credit by state each run of
//! turns has its own weight.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{LogProbs, Term, weighted_likelihood};
use crate::loss::{AdvantageSource, Loss, Prepared, Scored, Segment, Target, credited};

/// Largest exponent: e²⁰ is 4.9 · 10⁸.
const LARGEST_EXPONENT: f64 = 20.0;

/// The loss of advantage-weighted regression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Awr {
    /// β > 0, the temperature: the smaller it is, the more weight the best episodes get.
    pub beta: f64,
}

impl Default for Awr {
    fn default() -> Self {
        Self { beta: 0.5 }
    }
}

impl Loss for Awr {
    fn name(&self) -> &'static str {
        "awr"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Value
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let mut targets = credited(self.name(), batch)?;
        Ok(match exponential_weights(&mut targets, self.beta) {
            true => Prepared::Learn(targets),
            false => Prepared::NoSignal,
        })
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let factors = target.per_token(|segment| -target.share * segment.weight);
        Ok(weighted_likelihood(&factors, log_probs)?.into())
    }
}

/// Sets the weights; `false` if all advantages are equal.
pub(super) fn exponential_weights(targets: &mut [Target], beta: f64) -> bool {
    let segments = || targets.iter().flat_map(|target| &target.segments);
    let first = segments().next().map(|segment| segment.advantage);
    if segments().all(|segment| Some(segment.advantage) == first) {
        return false;
    }
    let exponent = |segment: &Segment| (segment.advantage / beta).min(LARGEST_EXPONENT);
    // Of the largest exponent, which cancels: all others may underflow.
    let largest = segments().map(exponent).fold(f64::NEG_INFINITY, f64::max);
    let weight = |segment: &Segment| libm::exp(exponent(segment) - largest);
    let mean = segments().map(weight).sum::<f64>() / segments().count() as f64;
    for segment in targets.iter_mut().flat_map(|target| &mut target.segments) {
        segment.weight = weight(segment) / mean;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{differentiate, scored, targets, weights};

    #[test]
    fn weights_are_exponentials_over_their_mean() {
        let awr = Awr { beta: 0.5 };
        // e^(.5/.5) = 2.71828 and e^(−.5/.5) = .36788, of mean 1.54308.
        let weights = weights(&awr, &[(1.0, 0.5), (0.0, 0.5)]);
        assert!(
            (weights[0] - 1.761_594).abs() < 1e-6 && (weights[1] - 0.238_406).abs() < 1e-6,
            "{weights:?}"
        );
    }

    #[test]
    fn not_all_exponentials_underflow() {
        // e^(−800) and e^(−900) are 0 in 64 bits; their ratio is e^(−100).
        let weights = weights(&Awr { beta: 1e-3 }, &[(0.0, 0.8), (0.0, 0.9)]);
        assert_eq!(weights[0], 2.0);
        assert!((weights[1] / (2.0 * (-100.0_f64).exp()) - 1.0).abs() < 1e-9, "{weights:?}");
    }

    #[test]
    fn no_exponent_overflows() {
        let weights = weights(&Awr { beta: 1e-4 }, &[(1.0, 0.0), (0.0, 0.5)]);
        assert!((weights[0] - 2.0).abs() < 1e-6 && weights[1] < 1e-9, "{weights:?}");
    }

    #[test]
    fn equal_advantages_are_no_signal() {
        assert_eq!(
            Awr { beta: 0.5 }.prepare(&scored(&[(1.0, 0.5), (0.75, 0.25)])).unwrap(),
            Prepared::NoSignal
        );
    }

    #[test]
    fn the_loss_is_the_weighted_negative_log_likelihood() {
        let awr = Awr { beta: 0.5 };
        let targets = targets(&awr, &[(1.0, 0.5), (0.0, 0.5)]);
        let (loss, gradient) = differentiate(&awr, &targets, &[-1.0, -2.0], &[0.0; 2], &[0.0; 2]);
        // (1.761594 · 1 + .238406 · 2)/2
        assert!((loss - 1.119_203).abs() < 1e-6, "{loss}");
        assert!((gradient[0] + 0.880_797).abs() < 1e-6 && (gradient[1] + 0.119_203).abs() < 1e-6);
    }
}
