//! Filtered fine-tuning: clone the sampled episodes whose reward reaches a threshold, discard the others.
//!
//! Paper: RAFT, "Reward rAnked FineTuning for Generative Foundation Model Alignment", arXiv 2304.06767,
//! algorithm 1.
//!
//! ```text
//! w_b = 1[ r_b ≥ threshold ]                 `Segment::weight`
//! L = −(1/B) Σ_b w_b · Σₜ lpₜ
//! ```
//!
//! Deviations from the paper: an episode is selected by a threshold on its reward, not as the best of several
//! for its goal; the mean is over all B episodes, so that a batch with few selected episodes has a small
//! gradient. No V*, no reference, no KL. A batch without a selected episode is no signal.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{LogProbs, Term, weighted_likelihood};
use crate::loss::{AdvantageSource, Loss, Prepared, Scored, Target, share_of};

/// The loss of filtered fine-tuning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Raft {
    /// Smallest reward of a cloned episode.
    pub threshold: f64,
}

impl Default for Raft {
    fn default() -> Self {
        Self { threshold: 1.0 }
    }
}

impl Loss for Raft {
    fn name(&self) -> &'static str {
        "raft"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Reward
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = share_of(self.name(), batch)?;
        let target = |scored: &Scored| {
            let weight = f64::from(u8::from(scored.reward >= self.threshold));
            Target::whole(scored.n_tokens(), scored.reward, weight, share)
        };
        // Whether an episode is selected does not depend on the sign of the threshold.
        Ok(Prepared::learn_if(batch.iter().map(target).collect(), |segment| segment.weight != 0.0))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let factors = target.per_token(|segment| -target.share * segment.weight);
        Ok(weighted_likelihood(&factors, log_probs)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{differentiate, scored, targets, weights};

    #[test]
    fn episodes_at_or_above_the_threshold_are_cloned() {
        let raft = Raft { threshold: 0.5 };
        let pairs = [(1.0, 0.0), (0.5, 0.0), (0.25, 0.0), (0.0, 0.0)];
        assert_eq!(weights(&raft, &pairs), [1.0, 1.0, 0.0, 0.0]);
        let (loss, gradient) =
            differentiate(&raft, &targets(&raft, &pairs), &[-1.0; 4], &[0.0; 4], &[0.0; 4]);
        assert_eq!((loss, gradient), (0.5, vec![-0.25, -0.25, 0.0, 0.0]));
    }

    #[test]
    fn a_batch_of_failures_is_no_signal() {
        assert_eq!(
            Raft { threshold: 1.0 }.prepare(&scored(&[(0.0, 0.0), (0.9, 0.0)])).unwrap(),
            Prepared::NoSignal
        );
        // With a threshold of 0 an episode without a reward is cloned.
        assert_eq!(weights(&Raft { threshold: 0.0 }, &[(0.0, 0.0), (-0.1, 0.0)]), [1.0, 0.0]);
    }
}
