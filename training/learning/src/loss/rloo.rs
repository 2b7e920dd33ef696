//! REINFORCE leave-one-out: the baseline of an episode is the mean reward of the others for its goal.
//!
//! Paper: "Back to Basics: Revisiting REINFORCE-Style Optimization for Learning from Human Feedback in LLMs",
//! arXiv 2402.14740.
//!
//! ```text
//! A_i = r_i − 1/(G − 1) Σ_{j ≠ i} r_j  =  G/(G − 1) · (r_i − mean r)         `Segment::advantage`
//! L = −mean_b A_b · Σₜ lpₜ                                                   G — episodes of the goal
//! ```
//!
//! Deviations from the paper: the paper subtracts the KL from the reward; here it is a term of the loss
//! ([`KlTerm`]), a mean over tokens beside a sum, so that it weighs less in longer episodes; a coefficient of 0
//! disables it. Only the first of several steps on a batch is on the policy that sampled it. An episode that is alone in its group has A = 0.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::terms::{LogProbs, Term, weighted_likelihood};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_group, with_kl};

/// The loss of REINFORCE leave-one-out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct Rloo {
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
}

impl Loss for Rloo {
    fn name(&self) -> &'static str {
        "rloo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        by_group(self.name(), batch, self.kl, |group, reward| match group.n {
            1 => 0.0,
            n => group.centred(reward) * n as f64 / (n - 1) as f64,
        })
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let factors = target.per_token(|segment| -target.share * segment.advantage);
        let loss = weighted_likelihood(&factors, log_probs)?.into();
        with_kl(loss, self.kl, log_probs, target.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{NO_KL, scored_in_groups, targets_of};

    #[test]
    fn the_baseline_is_the_mean_of_the_others() {
        let batch = scored_in_groups(&[(0, 1.0), (0, 0.0), (0, 0.5), (1, 1.0), (1, 1.0)]);
        let targets = targets_of(&Rloo { kl: NO_KL }, &batch);
        let advantages: Vec<f64> = targets.iter().map(Target::advantage).collect();
        // 1 − .25, 0 − .75, .5 − .5; and two equal rewards.
        assert_eq!(advantages, [0.75, -0.75, 0.0, 0.0, 0.0]);
        assert_eq!(
            targets.iter().map(Target::has_weight).collect::<Vec<_>>(),
            [true, true, false, false, false]
        );
    }
}
