//! Dr. GRPO ("GRPO done right"): GRPO without the biases towards long failures and towards very easy or hard
//! goals.
//!
//! Paper: "Understanding R1-Zero-Like Training: A Critical Perspective", arXiv 2503.20783, section 3.2.
//!
//! ```text
//! A_i = r_i − mean r                                       over the G episodes of a goal; `Segment::advantage`
//! L = −mean_b Σ_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A )  +  KL term,    ρ_t = exp(lp_t − old_t)
//! ```
//!
//! Differences from [`crate::loss::Grpo`]: no division by the standard deviation, which favors goals with a
//! success rate near 0 or 1, and none by the length of the episode, which favors long failures. Deviations
//! from the paper: its sum over tokens is divided by the constant limit of generated tokens; here it is not
//! divided, which only rescales the learning rate. The paper has no KL term; the one here is a mean over tokens beside
//! a sum, so that it weighs less in longer episodes, and a coefficient of 0 disables it.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::group::GroupStatistics;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_group, with_kl};

/// The loss of Dr. GRPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct DrGrpo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
}

impl Loss for DrGrpo {
    fn name(&self) -> &'static str {
        "dr-grpo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_group(self.name(), batch, self.kl, GroupStatistics::centred)
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let log_ratios = (&log_probs.policy - &log_probs.behaviour)?; // [T]
        let mut loss = self.clip.surrogate(&log_ratios, &target.per_token(|segment| segment.advantage))?;
        loss.value = (loss.value * -target.share)?;
        with_kl(loss, self.kl, log_probs, target.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{CLIP, NO_KL, differentiate, scored_in_groups, targets_of};

    #[test]
    fn neither_deviation_nor_length_divides() {
        let loss = DrGrpo { clip: CLIP, kl: NO_KL };
        let targets = targets_of(&loss, &scored_in_groups(&[(0, 1.0), (0, 0.0), (0, 0.0), (0, 0.0)]));
        let advantages: Vec<f64> = targets.iter().map(Target::advantage).collect();
        assert_eq!(advantages, [0.75, -0.25, -0.25, -0.25]);
        let long = Target::whole(3, -0.25, 1.0, 0.25);
        let (_, gradient) = differentiate(&loss, &[long], &[-1.0; 3], &[0.0; 3], &[-1.0; 3]);
        assert!(gradient.iter().all(|g| (g - 0.0625).abs() < 1e-12), "{gradient:?}");
    }
}
