//! Group-relative policy optimization: PPO's clip, with the group in place of a value function.
//!
//! Paper: "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models", arXiv 2402.03300,
//! equation 3 with outcome supervision (section 4.1.2); the two bounds of the clip are those of
//! "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", arXiv 2503.14476, section 3.1.
//!
//! ```text
//! A_i = (r_i − mean r) / (std r + 1e-6)                 over the G trips of a goal; `Segment::advantage`
//! ρ_t = exp(lp_t − old_t)
//! L = −mean_b [ mean_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A ) − k · mean_t KL_t ]
//! ```
//!
//! ε — `clip`; k and the estimate of the KL — `kl`. Deviations: none from the equation. With one optimizer step for each
//! batch of trips every ρ is 1 up to rounding and the clip never acts. Goals whose trips all earned the same have A = 0 and
//! are left out of the pass unless there is a KL term; a batch of such goals alone is no signal.

use super::group::GroupStatistics;
use super::terms::{Clip, LogProbs, Term};
use super::{Judged, KlTerm, Learner, Prepared, Scored, Target, by_group, with_kl};
use crate::error::Result;

/// The loss of GRPO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grpo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    pub kl: KlTerm,
}

impl Learner for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }

    fn judged(&self) -> Judged {
        Judged::InGroups
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_group(self.name(), batch, self.kl, GroupStatistics::normalized)
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        token_mean(self.clip, self.kl, target, log_probs)
    }
}

/// share · ( −mean_t min( ρ_t A_t, clip(ρ_t) A_t ) + KL term ), with the advantage of each token's segment.
pub(super) fn token_mean(clip: Clip, kl: KlTerm, target: &Target, log_probs: &LogProbs) -> Result<Term> {
    let scale = -target.share / target.n_tokens() as f64;
    let log_ratios = (&log_probs.policy - &log_probs.behaviour)?; // [T]
    let mut loss = clip.surrogate(&log_ratios, &target.per_token(|segment| segment.advantage))?;
    loss.value = (loss.value * scale)?;
    with_kl(loss, kl, log_probs, target.share)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CLIP, NO_KL, differentiate, scored_in_groups, targets_of};
    use super::*;
    use crate::loss::KlEstimator;

    #[test]
    fn advantages_are_normalized_within_the_group() {
        let batch = scored_in_groups(&[(0, 1.0), (0, 0.0), (0, 0.0), (0, 0.0), (1, 1.0), (1, 1.0)]);
        let targets = targets_of(&Grpo { clip: CLIP, kl: NO_KL }, &batch);
        let advantages: Vec<f64> = targets.iter().map(Target::advantage).collect();
        // Mean .25, deviation √((.5625 + 3 · .0625)/3) = .5: 1.5 and −.5, less a millionth.
        for (given, expected) in advantages.iter().zip([1.5, -0.5, -0.5, -0.5, 0.0, 0.0]) {
            assert!((given - expected).abs() < 1e-5, "{advantages:?}");
        }
        assert!(!targets[4].is_taught());
    }

    #[test]
    fn a_trip_is_averaged_over_its_tokens() {
        let grpo = Grpo { clip: CLIP, kl: NO_KL };
        let target = Target::whole(2, 1.5, 1.0, 0.25);
        let (loss, gradient) = differentiate(&grpo, &[target], &[-1.0, -2.0], &[0.0; 2], &[-1.0, -2.0]);
        // Ratios of 1: −.25 · 1.5; each token's gradient is −.25 · 1.5/2.
        assert!((loss + 0.375).abs() < 1e-12 && gradient.iter().all(|g| (g + 0.1875).abs() < 1e-12));
    }

    #[test]
    fn the_kl_pulls_at_trips_that_are_as_expected_too() {
        let kl = KlTerm { coefficient: 0.1, estimator: KlEstimator::K3 };
        let batch = scored_in_groups(&[(0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0)]);
        let targets = targets_of(&Grpo { clip: CLIP, kl }, &batch);
        assert!(targets.iter().all(Target::is_taught));
        let (loss, _) = differentiate(&Grpo { clip: CLIP, kl }, &targets[2..3], &[-1.0], &[-1.5], &[-1.0]);
        // d = .5: .25 · .1 · (e^−.5 − 1 + .5)
        assert!((loss - 0.025 * ((-0.5_f64).exp() - 0.5)).abs() < 1e-12, "{loss}");
    }
}
