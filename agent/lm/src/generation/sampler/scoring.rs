//! The sampled distribution, for scoring given tokens in training.
//!
//! A policy gradient needs the probability of a token under the distribution it was sampled from. With logits
//! z, temperature T and nucleus N,
//!
//! ```text
//! log π(y) = z_y / T − log Σ_{i ∈ N ∪ {y}} exp(z_i / T)        ∂ log π(y) / ∂z_i = (1[i = y] − π(i)) / T   in N ∪ {y}, else 0
//! ```
//!
//! A target y outside the nucleus, because of rounding, of another model's weights (a reference model) or of
//! later weights, is added to it, so that its log-probability is finite, and reported as outside. The nucleus
//! is constant under small changes of the logits, so its choice has no gradient. Two computations of a row
//! agree up to rounding, unless rounding moves a token across the end of the nucleus.

use crate::error::LmError;
use crate::generation::sampler::nucleus::NucleusEnd;
use crate::generation::sampler::{Sampler, sum};
use webshop_kernels::cpu::rows::{exp_all, relative_all};

/// The logit of an excluded token. Its exponential is 0, and their product is 0 and not NaN as with minus
/// infinity.
const NEVER: f32 = f32::MIN;

impl Sampler {
    /// Whether this is the model's own distribution.
    pub(crate) fn is_untempered(&self) -> bool {
        *self == Self::UNTEMPERED
    }

    /// Fails for temperature 0, at which log-probabilities have no gradient.
    pub(crate) fn check_scoring(&self) -> Result<(), LmError> {
        if self.temperature > 0.0 {
            return Ok(());
        }
        Err(LmError::Sampling("tokens cannot be scored at temperature `0`; use a temperature above 0".into()))
    }

    /// Changes a row of logits so that its softmax is the sampled distribution with `target` added to the
    /// nucleus. Returns whether `target` was outside. NaN logits are kept.
    pub(crate) fn shape(&self, row: &mut [f32], target: usize) -> bool {
        if self.is_untempered() {
            return false;
        }
        relative_all(row, self.temperature);
        if self.top_p == 1.0 {
            return false;
        }
        let mut weights = vec![0.0; row.len()];
        exp_all(row, &mut weights);
        let Some(end) = NucleusEnd::find(&weights, sum(&weights), f64::from(self.top_p)) else {
            return false;
        };
        for (id, (logit, weight)) in row.iter_mut().zip(&weights).enumerate() {
            if !end.holds(*weight, id) && id != target {
                *logit = NEVER;
            }
        }
        !end.holds(weights[target], target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::constraint::Allowed;
    use webshop_kernels::cpu::rows::log_softmax_row;

    #[test]
    fn scores_equal_sampling_log_probs() {
        let logits: Vec<f32> = (0..300_u32).map(|i| ((i * i % 97) as f32 * 0.37).sin() * 4.0).collect();
        for (temperature, top_p) in [(1.0, 1.0), (0.7, 1.0), (1.0, 0.9), (0.9, 0.95), (1.5, 0.3)] {
            let sampler = Sampler::new(temperature, top_p).unwrap();
            let mut n_outside = 0;
            for id in 0..300 {
                let drawn = sampler.log_prob(&logits, Allowed::All, id).unwrap();
                let mut row = logits.clone();
                let is_outside = sampler.shape(&mut row, id as usize);
                assert_eq!(is_outside, drawn == f32::NEG_INFINITY);
                n_outside += usize::from(is_outside);
                let scored = log_softmax_row(&row, id as usize).log_prob;
                assert!(is_outside || (scored - drawn).abs() < 2e-6, "token {id}: {scored} for {drawn}");
                assert!(scored.is_finite());
            }
            assert_eq!(n_outside > 0, top_p < 1.0);
        }
    }

    #[test]
    fn a_target_outside_the_nucleus_is_added() {
        // Weights 8, 4, 2, 1, 1 of 16: half of them is the first alone, and the third makes it 8 + 2.
        let mut row = [8.0_f32, 4.0, 2.0, 1.0, 1.0].map(f32::ln);
        assert!(Sampler::new(1.0, 0.5).unwrap().shape(&mut row, 2));
        let stats = log_softmax_row(&row, 2);
        assert!((stats.log_prob - 0.2_f32.ln()).abs() < 1e-6, "{stats:?}");
        // −(.8 ln .8 + .2 ln .2)
        assert!((stats.entropy - 0.500_402).abs() < 1e-6, "{stats:?}");
    }

    #[test]
    fn nan_logits_are_kept() {
        let mut row = [0.0, f32::NAN, 1.0];
        assert!(!Sampler::new(0.9, 0.5).unwrap().shape(&mut row, 0));
        assert!(log_softmax_row(&row, 0).log_prob.is_nan());
    }
}
