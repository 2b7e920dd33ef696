//! Group-relative policy optimization: PPO's clip, with group statistics instead of a value function.
//!
//! Paper: "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models", arXiv
//! 2402.03300, equation 3 with outcome supervision (section 4.1.2); the two bounds of the clip are those of
//! "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", arXiv 2503.14476, section 3.1.
//!
//! ```text
//! A_i = (r_i − mean r) / (std r + 1e-6)                 over the G episodes of a goal; std over G − 1
//! ρ_t = exp(lp_t − old_t)
//! L = −mean_b [ mean_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A ) − k · mean_t KL_t ]
//! ```
//!
//! ε — `clip`; k and the KL estimator — `kl`. With one optimizer step per batch every ρ is 1 up to rounding,
//! and the clip has no effect. Groups of equal rewards have A = 0 and are left out of the forward and
//! backward pass unless there is a KL term; a batch of such groups is no signal.
//!
//! Deviations from the paper, by default:
//!
//! - KL_t is the k2 estimate with k = .02. The paper's is k3 (its equation 4) with k = .04; k3 has a biased
//!   gradient ([`KlEstimator`](crate::loss::KlEstimator)). `kl = "k3"` and `kl_coefficient = 0.04` restore it.
//! - ε_high = .28 is above ε_low = .2, as in DAPO. The paper has one ε, whose value it does not state.
//!
//! `min_std` is an option of ours, and 0 by default. Division by std r gives small differences in reward the same
//! normalized advantages as large ones; with `min_std`, groups with a smaller standard deviation have A = 0 too.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_group, with_kl};

/// The loss of GRPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Grpo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
    /// Standard deviation of a group's rewards below which they count as equal; 0 for the paper's equation.
    pub min_std: f64,
}

impl Default for Grpo {
    fn default() -> Self {
        Self { clip: Clip::default(), kl: KlTerm::default(), min_std: 0.0 }
    }
}

impl Loss for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_group(self.name(), batch, self.kl, |group, reward| group.normalized(reward, self.min_std))
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
    use super::*;
    use crate::loss::terms::KlEstimator;
    use crate::loss::tests::{CLIP, NO_KL, differentiate, scored_in_groups, targets_of};

    #[test]
    fn advantages_are_normalized_within_the_group() {
        let batch = scored_in_groups(&[(0, 1.0), (0, 0.0), (0, 0.0), (0, 0.0), (1, 1.0), (1, 1.0)]);
        let targets = targets_of(&Grpo { clip: CLIP, kl: NO_KL, min_std: 0.0 }, &batch);
        let advantages: Vec<f64> = targets.iter().map(Target::advantage).collect();
        // Mean .25, deviation √((.5625 + 3 · .0625)/3) = .5: 1.5 and −.5, less a millionth.
        for (given, expected) in advantages.iter().zip([1.5, -0.5, -0.5, -0.5, 0.0, 0.0]) {
            assert!((given - expected).abs() < 1e-5, "{advantages:?}");
        }
        assert!(!targets[4].has_weight());
    }

    #[test]
    fn a_group_with_a_spread_below_min_std_has_no_advantages() {
        // A group of successes whose rewards differ by a thousandth, and a group of a success and a failure.
        let batch = scored_in_groups(&[(0, 1000.8), (0, 1000.801), (1, 1000.8), (1, 0.8)]);
        let advantages = |min_std| {
            let targets = targets_of(&Grpo { clip: CLIP, kl: NO_KL, min_std }, &batch);
            targets.iter().map(Target::advantage).collect::<Vec<_>>()
        };
        let z = 0.5_f64.sqrt();
        for (min_std, expected) in [(0.0, [-z, z, z, -z]), (0.05, [0.0, 0.0, z, -z])] {
            let given = advantages(min_std);
            assert!(given.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-3), "{min_std}: {given:?}");
        }
    }

    #[test]
    fn an_episode_is_averaged_over_its_tokens() {
        let grpo = Grpo { clip: CLIP, kl: NO_KL, min_std: 0.0 };
        let target = Target::whole(2, 1.5, 1.0, 0.25);
        let (loss, gradient) = differentiate(&grpo, &[target], &[-1.0, -2.0], &[0.0; 2], &[-1.0, -2.0]);
        // Ratios of 1: −.25 · 1.5; each token's gradient is −.25 · 1.5/2.
        assert!((loss + 0.375).abs() < 1e-12 && gradient.iter().all(|g| (g + 0.1875).abs() < 1e-12));
    }

    #[test]
    fn episodes_without_advantage_have_a_kl_term() {
        let kl = KlTerm { coefficient: 0.1, estimator: KlEstimator::K3 };
        let batch = scored_in_groups(&[(0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0)]);
        let targets = targets_of(&Grpo { clip: CLIP, kl, min_std: 0.0 }, &batch);
        assert!(targets.iter().all(Target::has_weight));
        let (loss, _) =
            differentiate(&Grpo { clip: CLIP, kl, min_std: 0.0 }, &targets[2..3], &[-1.0], &[-1.5], &[-1.0]);
        // d = .5: .25 · .1 · (e^−.5 − 1 + .5)
        assert!((loss - 0.025 * ((-0.5_f64).exp() - 0.5)).abs() < 1e-12, "{loss}");
    }
}
