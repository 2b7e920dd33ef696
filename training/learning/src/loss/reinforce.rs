//! REINFORCE: increase the likelihood of episodes above a baseline, decrease it for those below.
//!
//! Paper: Williams, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement
//! Learning", 1992: the estimator of its theorem 1, with an episode as one action.
//!
//! ```text
//! L = −mean_b (r − b) · Σₜ lpₜ          r − b — `Segment::advantage`
//! b — `baseline`: 0, the mean reward of the batch, or V* of the goal
//! ```
//!
//! With [`Baseline::Value`] this is on-policy A*-PO without its KL ([`crate::loss::Apo`]), and credit by
//! state is supported. Deviation from the paper: with `rl.minibatches` × `rl.epochs` above 1 only the first step
//! on a batch is on the policy that sampled it, and nothing corrects the others. Episodes with r = b have no
//! gradient and are left out of the forward and backward pass. Without a baseline, equal rewards other than 0
//! have a gradient: all sampled episodes become more likely.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::group::GroupStatistics;
use crate::loss::terms::{KlTerm, LogProbs, Term, weighted_likelihood};
use crate::loss::{AdvantageSource, Loss, Prepared, Scored, Target, by_episode, by_value, share_of};

/// The baseline of a reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Nothing.
    None,
    /// The mean of the batch.
    Batch,
    /// V* of the goal.
    Value,
}

/// The loss of REINFORCE.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reinforce {
    /// b.
    pub baseline: Baseline,
}

impl Default for Reinforce {
    fn default() -> Self {
        Self { baseline: Baseline::Value }
    }
}

impl Loss for Reinforce {
    fn name(&self) -> &'static str {
        "reinforce"
    }

    fn advantage_source(&self) -> AdvantageSource {
        match self.baseline {
            Baseline::Value => AdvantageSource::Value,
            Baseline::None | Baseline::Batch => AdvantageSource::Reward,
        }
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = share_of(self.name(), batch)?;
        let rewards: Vec<f64> = batch.iter().map(|scored| scored.reward).collect();
        let of_batch = GroupStatistics::of(&rewards);
        match self.baseline {
            Baseline::None => Ok(by_episode(batch, rewards, share, KlTerm::NONE)),
            Baseline::Batch => {
                Ok(by_episode(batch, rewards.into_iter().map(|r| of_batch.centred(r)), share, KlTerm::NONE))
            }
            Baseline::Value => by_value(self.name(), batch, KlTerm::NONE),
        }
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let factors = target.per_token(|segment| -target.share * segment.advantage);
        Ok(weighted_likelihood(&factors, log_probs)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{differentiate, scored, targets};

    #[track_caller]
    fn check(baseline: Baseline, expected: [f64; 3]) {
        let loss = Reinforce { baseline };
        let targets = targets(&loss, &[(1.0, 0.75), (0.5, 0.5), (0.0, 0.25)]);
        let (_, gradient) = differentiate(&loss, &targets, &[-1.0; 3], &[0.0; 3], &[0.0; 3]);
        // The gradient of −(1/3) Σ A lp is −A/3.
        for (given, advantage) in gradient.iter().zip(expected) {
            assert!((given + advantage / 3.0).abs() < 1e-12, "{gradient:?}");
        }
    }

    #[test]
    fn advantages_are_against_the_configured_baseline() {
        check(Baseline::None, [1.0, 0.5, 0.0]);
        check(Baseline::Batch, [0.5, 0.0, -0.5]);
        check(Baseline::Value, [0.25, 0.0, -0.25]);
    }

    #[test]
    fn a_batch_of_failures_is_no_signal() {
        for baseline in [Baseline::None, Baseline::Batch, Baseline::Value] {
            assert_eq!(
                Reinforce { baseline }.prepare(&scored(&[(0.0, 0.0); 4])).unwrap(),
                Prepared::NoSignal
            );
        }
        let equal = scored(&[(0.5, 0.0); 4]);
        assert_eq!(Reinforce { baseline: Baseline::Batch }.prepare(&equal).unwrap(), Prepared::NoSignal);
    }
}
