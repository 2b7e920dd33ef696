//! A*-PO: regress the log-ratio to the reference on the optimal advantage.
//!
//! Paper: "Accelerating RL for LLM Reasoning with Optimal Advantage Regression", arXiv 2505.20686, section 4,
//! stage 2. With one trajectory y per goal x, sampled on policy:
//!
//! ```text
//! L = mean_b ( β₂ · ( Σₜ log π(yₜ) − Σₜ log π_ref(yₜ) ) − ( r − V*(x) ) )² / (2β₂)
//!
//! β₂ — `beta2`    Σₜ over sampled tokens only    r − V*(x) — `Segment::advantage`
//! ```
//!
//! Deviations from the paper: the division by 2β₂. Its gradient is (β₂ log-ratio − A) ∇ log π(y): REINFORCE
//! with V* as the baseline and the KL inside the reward, at a scale on which clipping and step sizes compare
//! with other losses; at the paper's β₂ = 0.001 the square without the division shrinks gradients
//! five-hundredfold. Log-probabilities are summed, not averaged; no ratio, no group, no standard deviation, as
//! in the paper.
//!
//! The paper has no clip. It takes two optimizer steps a batch; every step but the first is on a policy that did not
//! sample the batch, and at a high learning rate such steps diverge. With `ratio_clip` a token has no
//! gradient in the square, as in PPO, if its ratio to the policy that sampled it, ρₜ = π(yₜ) / π_old(yₜ), is past a bound
//! on the side to which the square pushes it: ρₜ > 1 + ε_high where the residual is negative, ρₜ < 1 − ε_low where it is
//! positive. The value of the square does not change. In the first step of a batch nothing is clipped.
//!
//! An episode with A = 0 (its goal always succeeds, or never) gets weight 0 and is left out of the forward
//! and backward pass. This drops its gradient towards the reference, at most β₂ · |log-ratio|: at the paper's
//! β₂ a thousandth of the gradient at |A| = 1. About half of all episodes then need no backward pass. A batch
//! of such episodes is [`Prepared::NoSignal`](crate::loss::Prepared::NoSignal).
//!
//! With credit by state (not in the paper) each run of turns between two states of known V* has its own
//! square, with A = V*(s′) − V*(s); their A add up to r − V*(x).

use candle_core::{DType, Tensor};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{Clip, KlTerm, LogProbs, OptionalClip, Term, constant};
use crate::loss::{AdvantageSource, Loss, Prepared, Scored, Target, by_value};
use crate::math::sum_all;

/// The loss of A*-PO; the default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Apo {
    /// β₂ > 0, the weight of the KL to the reference.
    pub beta2: f64,
    /// Bounds of the ratio to the policy that sampled, beyond which a token has no gradient.
    pub ratio_clip: OptionalClip,
}

impl Default for Apo {
    fn default() -> Self {
        Self { beta2: 0.01, ratio_clip: OptionalClip(Some(Clip::default())) }
    }
}

impl Loss for Apo {
    fn name(&self) -> &'static str {
        "apo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Value
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_value(self.name(), batch, KlTerm::NONE)
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        squares(target, log_probs, self.beta2, self.ratio_clip)
    }
}

/// share · Σ over segments of (β₂ · Σₜ (lpₜ − refₜ) − A)² / (2β₂), without segments of weight 0.
pub(super) fn squares(
    target: &Target,
    log_probs: &LogProbs,
    beta2: f64,
    OptionalClip(clip): OptionalClip,
) -> Result<Term> {
    let log_ratios = (&log_probs.policy - &log_probs.reference)?; // [T]
    let mut total = Tensor::zeros((), log_ratios.dtype(), log_ratios.device())?;
    let (mut start, mut n_clipped) = (0, 0);
    for segment in &target.segments {
        if segment.weight != 0.0 {
            let of_tokens = log_ratios.narrow(0, start, segment.n_tokens)?; // [T of the segment]
            let mut log_ratio = sum_all(&of_tokens)?; // []
            if let Some(clip) = clip {
                let push = segment.advantage - beta2 * log_ratio.to_dtype(DType::F64)?.to_scalar::<f64>()?;
                let moved = log_probs.narrow(start, segment.n_tokens)?.log_ratios()?;
                let is_past: Vec<bool> = moved.iter().map(|moved| clip.is_past(*moved, push)).collect();
                n_clipped += is_past.iter().filter(|past| **past).count();
                log_ratio = sum_of_free(&of_tokens, &is_past)?;
            }
            total = (total + log_ratio.affine(beta2, -segment.advantage)?.sqr()?)?;
        }
        start += segment.n_tokens;
    }
    Ok(Term { value: (total * (target.share / (2.0 * beta2)))?, n_clipped })
}

/// The sum of `values` `[T]`, of which those that are past a bound have no gradient.
fn sum_of_free(values: &Tensor, is_past: &[bool]) -> Result<Tensor> {
    let kept: Vec<f64> = is_past.iter().map(|past| f64::from(u8::from(!past))).collect();
    let free = sum_all(&(values * constant(&kept, values)?)?)?;
    let fixed = (sum_all(values)? - &free)?.detach();
    Ok((fixed + free)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::ScoredTurn;
    use crate::loss::tests::{CLIP, NO_CLIP, differentiate, scored, targets, targets_of};

    #[test]
    fn the_loss_is_the_papers_divided_by_twice_beta2() {
        let apo = Apo { beta2: 0.1, ratio_clip: NO_CLIP };
        let batch = [Scored::single_turn(0, 1.0, 0.4, 2), Scored::single_turn(1, 0.0, 0.3, 1)];
        let targets = targets_of(&apo, &batch);
        let (loss, gradient) =
            differentiate(&apo, &targets, &[-1.0, -0.5, -2.0], &[-1.5, -1.0, -1.0], &[0.0; 3]);
        // First: log-ratio 1, residual .1 − .6 = −.5; second: log-ratio −1, residual −.1 + .3 = .2.
        // (.25 + .04)/2/(.2) = .725. Gradients: residual/2 for each token: −.25, −.25, .1.
        assert!((loss - 0.725).abs() < 1e-12, "{loss}");
        for (given, expected) in gradient.iter().zip([-0.25, -0.25, 0.1]) {
            assert!((given - expected).abs() < 1e-12, "{gradient:?}");
        }
    }

    #[test]
    fn rewards_equal_to_v_star_are_no_signal() {
        let apo = Apo { beta2: 1e-3, ratio_clip: NO_CLIP };
        assert_eq!(apo.prepare(&scored(&[(0.7, 0.7), (0.0, 0.0)])).unwrap(), Prepared::NoSignal);
    }

    #[test]
    fn a_reward_equal_to_v_star_has_weight_0() {
        let apo = Apo { beta2: 1e-3, ratio_clip: NO_CLIP };
        let targets = targets(&apo, &[(0.7, 0.7), (1.0, 0.7)]);
        assert_eq!([targets[0].weight(), targets[1].weight()], [0.0, 1.0]);
        // An episode of weight 0 has no gradient.
        let (loss, gradient) = differentiate(&apo, &targets[..1], &[-1.0], &[-1.0], &[-1.0]);
        assert_eq!((loss, gradient), (0.0, vec![0.0]));
    }

    #[test]
    fn one_episode_has_a_gradient() {
        let apo = Apo { beta2: 1e-3, ratio_clip: NO_CLIP };
        let targets = targets(&apo, &[(1.0, 0.25)]);
        // At the reference the gradient of the mean is −A for each token: a positive advantage increases the
        // likelihood.
        let (_, gradient) = differentiate(&apo, &targets, &[-1.0], &[-1.0], &[-1.0]);
        assert!((gradient[0] + 0.75).abs() < 1e-12, "{gradient:?}");
    }

    #[test]
    fn failures_and_successes_both_have_a_gradient() {
        let apo = Apo { beta2: 1e-3, ratio_clip: NO_CLIP };
        let mut pairs = [(1.0, 0.8); 8];
        pairs[7] = (0.0, 0.8);
        let (_, gradient) = differentiate(&apo, &targets(&apo, &pairs), &[-1.0; 8], &[-1.0; 8], &[-1.0; 8]);
        // Seven times −.2/8 and once +.8/8: failures decrease the likelihood in proportion to A.
        assert!((gradient[0] + 0.025).abs() < 1e-12 && (gradient[7] - 0.1).abs() < 1e-12, "{gradient:?}");
    }

    #[test]
    fn credit_by_state_has_a_square_for_each_run_of_turns() {
        let apo = Apo { beta2: 0.1, ratio_clip: NO_CLIP };
        let turn = |(state, v_next)| ScoredTurn { v_next, ..ScoredTurn::new(1, state) };
        let turns = [(0, Some(0.75)), (1, Some(0.75)), (2, None)].map(turn).into();
        let targets = targets_of(&apo, &[Scored { group: 0, reward: 1.0, v_star: 0.25, turns }]);
        let (loss, gradient) =
            differentiate(&apo, &targets, &[-1.0, -2.0, -1.0], &[-1.0, -1.0, -2.0], &[0.0; 3]);
        // A = .5, 0 and .25. The second has weight 0 and is left out, whatever its log-ratio; the residuals
        // of the others are −.5 and .1 − .25 = −.15: (.25 + .0225)/.2.
        assert!((loss - 1.3625).abs() < 1e-12, "{loss}");
        for (given, expected) in gradient.iter().zip([-0.5, 0.0, -0.15]) {
            assert!((given - expected).abs() < 1e-12, "{gradient:?}");
        }
    }

    #[test]
    fn a_token_past_the_bound_on_the_side_of_the_push_has_no_gradient() {
        let clipped = Apo { beta2: 0.1, ratio_clip: OptionalClip(Some(CLIP)) };
        let plain = Apo { ratio_clip: NO_CLIP, ..clipped };
        // ρ of the tokens: e^.5 and e^−.5, past both bounds, and 1.
        let (policy, behaviour) = ([-1.0, -1.0, -1.0], [-1.5, -0.5, -1.0]);
        // The first episode is pushed up, residual −.6, the second down, residual .3.
        for (reward, v_star, free) in [(1.0, 0.4, [0.0, 1.0, 1.0]), (0.0, 0.3, [1.0, 0.0, 1.0])] {
            let targets = targets_of(&clipped, &[Scored::single_turn(0, reward, v_star, 3)]);
            let (loss, gradient) = differentiate(&clipped, &targets, &policy, &policy, &behaviour);
            let (whole, without) = differentiate(&plain, &targets, &policy, &policy, &behaviour);
            assert!((loss - whole).abs() < 1e-12, "{loss} against {whole}");
            let expected: Vec<f64> = without.iter().zip(free).map(|(slope, kept)| slope * kept).collect();
            assert_eq!(gradient, expected);
        }
    }

    #[test]
    fn the_kl_to_the_reference_can_turn_the_push_against_the_advantage() {
        let clipped = Apo { beta2: 1.0, ratio_clip: OptionalClip(Some(CLIP)) };
        let targets = targets_of(&clipped, &[Scored::single_turn(0, 1.0, 0.4, 1)]);
        // A = .6 and a log-ratio of 1: residual .4, which pushes down, so that only the lower bound counts.
        for (behaviour, expected) in [(-1.5, 0.4), (-0.5, 0.0)] {
            let (_, gradient) = differentiate(&clipped, &targets, &[-1.0], &[-2.0], &[behaviour]);
            assert!((gradient[0] - expected).abs() < 1e-12, "{behaviour}: {gradient:?}");
        }
    }

    #[test]
    fn each_segment_has_the_ratios_of_its_own_tokens() {
        let clipped = Apo { beta2: 0.1, ratio_clip: OptionalClip(Some(CLIP)) };
        let turn = |(state, v_next)| ScoredTurn { v_next, ..ScoredTurn::new(1, state) };
        let turns = [(0, Some(0.6)), (1, None)].map(turn).into();
        let targets = targets_of(&clipped, &[Scored { group: 0, reward: 1.0, v_star: 0.2, turns }]);
        // A = .4 of each turn; the ratio of one of both is e^.5, past the bound.
        for (behaviour, expected) in [([-1.5, -1.0], [0.0, -0.4]), ([-1.0, -1.5], [-0.4, 0.0])] {
            let (_, gradient) = differentiate(&clipped, &targets, &[-1.0; 2], &[-1.0; 2], &behaviour);
            let is_close =
                gradient.iter().zip(expected).all(|(given, expected)| (given - expected).abs() < 1e-12);
            assert!(is_close, "{behaviour:?}: {gradient:?}");
        }
    }

    #[test]
    fn the_policy_that_sampled_is_not_clipped() {
        let clipped = Apo { beta2: 0.1, ratio_clip: OptionalClip(Some(Clip { low: 0.0, high: 0.0 })) };
        let targets = targets_of(&clipped, &[Scored::single_turn(0, 1.0, 0.4, 2)]);
        let (_, gradient) = differentiate(&clipped, &targets, &[-1.0; 2], &[-1.5; 2], &[-1.0; 2]);
        assert!(gradient.iter().all(|slope| (slope + 0.5).abs() < 1e-12), "{gradient:?}");
    }
}
