//! Proximal policy optimization, with V* instead of a learned value function.
//!
//! Paper: "Proximal Policy Optimization Algorithms", arXiv 1707.06347, equation 7; the two bounds of the clip
//! are those of DAPO (arXiv 2503.14476, section 3.1).
//!
//! ```text
//! L = −mean_b [ mean_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A ) − k · mean_t KL_t ],    ρ_t = exp(lp_t − old_t)
//! A = r − V*(x), or V*(s′) − V*(s) with credit by state                     `Segment::advantage`
//! ```
//!
//! Deviations from the paper: no critic is trained, so there is no value loss and no generalized advantage
//! estimate; V* of the reference replaces the critic, by goal or by state. Tokens are averaged within an
//! episode, then over episodes. There is no entropy bonus. Episodes with A = 0 are left out of the forward
//! and backward pass unless there is a KL term.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::grpo::token_mean;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_value};

/// The loss of PPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Ppo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
}

impl Loss for Ppo {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Value
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_value(self.name(), batch, self.kl)
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        token_mean(self.clip, self.kl, target, log_probs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{CLIP, NO_KL, differentiate, targets};

    #[test]
    fn gradients_follow_the_advantage_up_to_the_clip() {
        let ppo = Ppo { clip: CLIP, kl: NO_KL };
        let targets = targets(&ppo, &[(1.0, 0.4), (0.0, 0.4)]);
        let (loss, gradient) = differentiate(&ppo, &targets, &[-1.0, -1.0], &[0.0; 2], &[-1.0, -1.0]);
        // Ratios of 1: −(.6 − .4)/2, and −A/2 for each.
        assert!((loss + 0.1).abs() < 1e-12, "{loss}");
        assert!((gradient[0] + 0.3).abs() < 1e-12 && (gradient[1] - 0.2).abs() < 1e-12, "{gradient:?}");
        let (_, gradient) = differentiate(&ppo, &targets, &[-0.7, -1.3], &[0.0; 2], &[-1.0, -1.0]);
        // e^.3 = 1.35 exceeds 1.28, e^−.3 = .74 is below .8.
        assert_eq!(gradient, [0.0, 0.0]);
    }
}
