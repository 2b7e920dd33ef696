//! Group sequence policy optimization: one ratio for a whole episode.
//!
//! Paper: "Group Sequence Policy Optimization", arXiv 2507.18071, equations 5 to 7.
//!
//! ```text
//! s = exp( (1/T) Σ_t (lp_t − old_t) )
//! L = −mean_b min( s A, clip(s, 1 − ε_low, 1 + ε_high) A )  +  KL term
//! A_i = (r_i − mean r) / (std r + 1e-6)                 over the G episodes of a goal; `Segment::advantage`
//! ```
//!
//! Ratios of whole sequences move little, so ε is small: 3e-4 and 4e-4, as in the paper. Deviations: T counts
//! the sampled tokens of all turns; the paper has no KL term; a coefficient of 0 disables it.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_group, with_kl};
use crate::math::mean_all;

/// The loss of GSPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gspo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
    /// Standard deviation of a group's rewards below which they count as equal; 0 for the paper's equation.
    pub min_std: f64,
}

impl Default for Gspo {
    fn default() -> Self {
        Self { clip: Clip { low: 3e-4, high: 4e-4 }, kl: KlTerm::default(), min_std: 0.0 }
    }
}

impl Loss for Gspo {
    fn name(&self) -> &'static str {
        "gspo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_group(self.name(), batch, self.kl, |group, reward| group.normalized(reward, self.min_std))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let log_ratio = mean_all(&(&log_probs.policy - &log_probs.behaviour)?)?.reshape(1)?; // [1]
        let mut loss = self.clip.surrogate(&log_ratio, &[target.advantage()])?;
        loss.value = (loss.value * -target.share)?;
        loss.n_clipped *= target.n_tokens();
        with_kl(loss, self.kl, log_probs, target.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{NO_KL, differentiate};

    #[test]
    fn the_ratio_is_the_geometric_mean_of_the_tokens() {
        let loss = Gspo { clip: Clip { low: 0.1, high: 0.2 }, kl: NO_KL, min_std: 0.0 };
        let target = Target::whole(2, 2.0, 1.0, 0.5);
        // Log-ratios .1 and .2: s = e^.15 = 1.161834, within 1.2.
        let (value, gradient) =
            differentiate(&loss, std::slice::from_ref(&target), &[-0.9, -1.8], &[0.0; 2], &[-1.0, -2.0]);
        assert!((value + 1.161_834).abs() < 1e-6, "{value}");
        assert!(gradient.iter().all(|g| (g + 1.161_834 / 2.0).abs() < 1e-6), "{gradient:?}");
        // e^.25 = 1.284 exceeds it: the value is that of the bound, and no token has a gradient. Another episode keeps its own.
        let both = [target.clone(), target];
        let policy = [-0.9, -1.6, -0.9, -1.8];
        let (value, gradient) = differentiate(&loss, &both, &policy, &[0.0; 4], &[-1.0, -2.0, -1.0, -2.0]);
        assert!((value + 1.2 + 1.161_834).abs() < 1e-6, "{value}");
        assert_eq!(gradient[..2], [0.0, 0.0]);
        assert!(gradient[2..].iter().all(|g| (g + 1.161_834 / 2.0).abs() < 1e-6), "{gradient:?}");
    }
}
