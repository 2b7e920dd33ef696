//! The distribution that was drawn from, as training sees it.
//!
//! What is learned from a trip is the probability of its tokens under the distribution that chose them. With logits z,
//! temperature T and N the nucleus that sampling would keep of them,
//!
//! ```text
//! log π(y) = z_y / T − log Σ_{i ∈ N ∪ {y}} exp(z_i / T)        ∂ log π(y) / ∂z_i = (1[i = y] − π(i)) / T   in N ∪ {y}, else 0
//! ```
//!
//! A token that was said belongs to its nucleus by definition: where rounding, another model (a reference) or later
//! weights would leave it out, it is counted in, so that its log-probability is finite, and reported as outside. The
//! nucleus is a set that does not change under small steps, so its choice has no gradient. Two computations of one row
//! agree but for rounding, or, where that tips a token at the end of the nucleus in or out, but for that token's share.

use crate::generation::sampler::nucleus::NucleusEnd;
use crate::generation::sampler::{Sampler, sum};
use crate::error::LmError;
use webshop_kernels::cpu::rows::{exp_all, relative_all};

/// In the place of a logit that cannot be drawn: its exponential is 0, and so is its product with that.
const NEVER: f32 = f32::MIN;

impl Sampler {
    /// Whether this is the model's own distribution, of which nothing is changed.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }

    /// Fails for the greedy choice, whose probabilities have no gradient.
    pub(crate) fn check_scoring(&self) -> Result<(), LmError> {
        if self.temperature > 0.0 {
            return Ok(());
        }
        Err(LmError::Sampling("at temperature `0` a token has no probability to be learned from".into()))
    }

    /// Turns a row of logits into one whose softmax is drawn from, with `target` counted in; returns whether that
    /// would have been outside of the nucleus. A logit that is not a number stays in the row.
    pub(crate) fn shape(&self, row: &mut [f32], target: usize) -> bool {
        if self.is_plain() {
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
    fn what_is_scored_is_what_was_drawn_from() {
        let logits: Vec<f32> = (0..300_u32).map(|i| ((i * i % 97) as f32 * 0.37).sin() * 4.0).collect();
        for (temperature, top_p) in [(1.0, 1.0), (0.7, 1.0), (1.0, 0.9), (0.9, 0.95), (1.5, 0.3)] {
            let sampler = Sampler::new(temperature, top_p).unwrap();
            let mut n_outside = 0;
            for id in 0..300 {
                let drawn = sampler.log_prob(&logits, Allowed::AllBut(&[]), id).unwrap();
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
    fn a_token_outside_is_counted_in() {
        // Weights 8, 4, 2, 1, 1 of 16: half of them is the first alone, and the third makes it 8 + 2.
        let mut row = [8.0_f32, 4.0, 2.0, 1.0, 1.0].map(f32::ln);
        assert!(Sampler::new(1.0, 0.5).unwrap().shape(&mut row, 2));
        let stats = log_softmax_row(&row, 2);
        assert!((stats.log_prob - 0.2_f32.ln()).abs() < 1e-6, "{stats:?}");
        // −(.8 ln .8 + .2 ln .2)
        assert!((stats.entropy - 0.500_402).abs() < 1e-6, "{stats:?}");
    }

    #[test]
    fn not_a_number_is_not_hidden() {
        let mut row = [0.0, f32::NAN, 1.0];
        assert!(!Sampler::new(0.9, 0.5).unwrap().shape(&mut row, 0));
        assert!(log_softmax_row(&row, 0).log_prob.is_nan());
    }
}
