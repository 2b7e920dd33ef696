//! A*-PO with a lagging reference: episodes are sampled from the reference, which is set to the policy every
//! K steps.
//!
//! Paper: OAPL, "LLMs Can Learn to Reason Via Off-Policy RL", arXiv 2602.19362. G episodes for each goal x
//! are sampled from a snapshot π_lag of the policy, which is the reference as well:
//!
//! ```text
//! V*(x) = β₁ · log( (1/G) Σᵢ exp(rᵢ/β₁) )
//! L = mean_b ( β₂ · ( Σₜ log π(yₜ) − Σₜ log π_lag(yₜ) ) − ( r − V*(x) ) )² / (2β₂)
//!
//! β₁ — `beta1`    β₂ — `beta2`    G — `rl.group_size`    K — `value.refresh`
//! ```
//!
//! The regression does not need on-policy episodes, so the lag adds no bias. Since the reference moves,
//! pass@K of the first policy is no upper bound.
//!
//! Deviations from the paper: the division by 2β₂, see [`crate::loss::Apo`]. β₁ and β₂ are separate
//! parameters, as in A*-PO. Episodes are sampled from the snapshot of the last refresh; the paper's lag comes
//! from an asynchronous inference engine. A group of equal rewards (V* = r) is left out of the forward and
//! backward pass.

use crate::error::Result;
use crate::loss::apo::squares;
use crate::loss::terms::{LogProbs, OptionalClip, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, by_episode, group, share_of};
use crate::value::optimal_value;

/// The loss of A*-PO with a lagging reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApoLagged {
    /// β₁ > 0 of V* within the group.
    pub beta1: f64,
    /// β₂ > 0, the weight of the KL to the snapshot.
    pub beta2: f64,
}

impl Loss for ApoLagged {
    fn name(&self) -> &'static str {
        "apo-lagged"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn samples_from_reference(&self) -> bool {
        true
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = share_of(self.name(), batch)?;
        group::of_each(self.name(), batch)?;
        let advantage = |scored: &Scored| {
            let group = batch.iter().filter(|other| other.group == scored.group);
            let rewards: Vec<f64> = group.map(|other| other.reward).collect();
            if rewards.iter().all(|reward| *reward == scored.reward) {
                return 0.0;
            }
            scored.reward - optimal_value(&rewards, self.beta1)
        };
        Ok(by_episode(batch, batch.iter().map(advantage), share, KlTerm::NONE))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        squares(target, log_probs, self.beta2, OptionalClip(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{scored_in_groups, targets_of};

    #[test]
    fn advantages_are_against_the_soft_maximum_of_the_group() {
        let loss = ApoLagged { beta1: 0.5, beta2: 1e-3 };
        let targets = targets_of(&loss, &scored_in_groups(&[(0, 1.0), (0, 0.0), (1, 0.3), (1, 0.3)]));
        // .5 · ln((e² + 1)/2) = .716890; equal rewards have A = 0.
        assert!((targets[0].advantage() - 0.283_110).abs() < 1e-6);
        assert!((targets[1].advantage() + 0.716_890).abs() < 1e-6);
        assert!(!targets[2].has_weight() && !targets[3].has_weight());
    }
}
