//! Group-in-group policy optimization: group advantages of episodes, and of turns at equal states.
//!
//! Paper: "Group-in-Group Policy Optimization for LLM Agent Training", arXiv 2505.10978,
//! section 4.
//!
//! ```text
//! A^E_i   = (r_i − mean r) / (std r + 1e-6)                    over the G episodes of a goal
//! R_{i,t} = Σ_{k ≥ t} γ^{k−t} r_{i,k}                          here γ^{n−t} · r_i: reward after the last of n turns
//! A^S_{i,t} = (R_{i,t} − mean R) / (std R + 1e-6)              over all turns of these episodes at an equal state
//! A_{i,t} = A^E_i + ω · A^S_{i,t}                              `Segment::advantage`, a segment for each turn
//! L = −mean_b [ mean_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A ) − k · mean_t KL_t ]
//! ```
//!
//! γ — `discount`, ω — `step_weight`. States are equal if the digests of their texts are
//! ([`crate::loss::ScoredTurn::state`]). A turn at a state that no other turn of the group visits has A^S =
//! 0.
//!
//! Deviations from the paper: the text of a product's page does not show selected options, so that choosing one and buying
//! after it are actions of one state; an episode is one sequence and its tokens are averaged together, while the
//! paper's code makes a sample of every turn; standard deviations are over n − 1, as in
//! [`crate::loss::Grpo`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::group;
use crate::loss::group::GroupStatistics;
use crate::loss::grpo::token_mean;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Segment, Target, share_of};
use crate::math::power;

/// The loss of GiGPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gigpo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
    /// Standard deviation of a group's rewards below which they count as equal; 0 for the paper's equation.
    pub min_std: f64,
    /// γ, 0 to 1: discount of the reward per turn.
    pub discount: f64,
    /// ω ≥ 0, the weight of A^S.
    pub step_weight: f64,
}

impl Default for Gigpo {
    fn default() -> Self {
        Self { clip: Clip::default(), kl: KlTerm::default(), min_std: 0.0, discount: 0.95, step_weight: 1.0 }
    }
}

impl Loss for Gigpo {
    fn name(&self) -> &'static str {
        "gigpo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Group
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = share_of(self.name(), batch)?;
        let groups = group::of_each(self.name(), batch)?;
        let at_states = self.returns_at_states(batch);
        let target = |(scored, of_episodes): (&Scored, &GroupStatistics)| {
            let of_episode = of_episodes.normalized(scored.reward, self.min_std);
            let segment = |(at, turn): (usize, &crate::loss::ScoredTurn)| {
                let of_turns = at_states[&(scored.group, turn.state)];
                let of_turn = of_turns.normalized(self.return_from(scored, at), self.min_std);
                let advantage = of_episode + self.step_weight * of_turn;
                Segment { n_tokens: turn.n_tokens, advantage, weight: self.kl.weight_beside(advantage) }
            };
            Target::new(scored.turns.iter().enumerate().map(segment).collect(), share)
        };
        Ok(Prepared::learn_or_no_signal(batch.iter().zip(&groups).map(target).collect()))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        token_mean(self.clip, self.kl, target, log_probs)
    }
}

impl Gigpo {
    /// R of an episode from turn `at` on.
    fn return_from(&self, scored: &Scored, at: usize) -> f64 {
        scored.reward * power(self.discount, (scored.turns.len() - 1 - at) as u64)
    }

    /// Statistics of the returns at each (group, state), over all visits.
    fn returns_at_states(&self, batch: &[Scored]) -> BTreeMap<(usize, u64), GroupStatistics> {
        let mut returns: BTreeMap<(usize, u64), Vec<f64>> = BTreeMap::new();
        for scored in batch {
            for (at, turn) in scored.turns.iter().enumerate() {
                returns.entry((scored.group, turn.state)).or_default().push(self.return_from(scored, at));
            }
        }
        returns.into_iter().map(|(place, returns)| (place, GroupStatistics::of(&returns))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::ScoredTurn;
    use crate::loss::tests::{CLIP, NO_KL, targets_of};

    fn episode(reward: f64, states: &[u64]) -> Scored {
        let turns = states.iter().map(|&state| ScoredTurn::new(1, state)).collect();
        Scored { group: 0, reward, v_star: 0.0, turns }
    }

    #[test]
    fn turns_at_equal_states_are_compared() {
        let gigpo = Gigpo { clip: CLIP, kl: NO_KL, min_std: 0.0, discount: 0.5, step_weight: 1.0 };
        // Both start at state 1; only the success visits state 2, only the failure state 3.
        let targets = targets_of(&gigpo, &[episode(1.0, &[1, 2]), episode(0.0, &[1, 3])]);
        let advantages = |target: &Target| target.segments.iter().map(|s| s.advantage).collect::<Vec<_>>();
        // Episodes: mean .5, deviation √.5, ±.70711. At state 1 returns .5 and 0, again ±.70711; single
        // visits elsewhere.
        let z = 0.5_f64.sqrt();
        for (given, expected) in advantages(&targets[0]).iter().zip([2.0 * z, z]) {
            assert!((given - expected).abs() < 1e-5, "{given}");
        }
        for (given, expected) in advantages(&targets[1]).iter().zip([-2.0 * z, -z]) {
            assert!((given - expected).abs() < 1e-5, "{given}");
        }
    }

    #[test]
    fn a_revisited_state_counts_twice() {
        let gigpo = Gigpo { clip: CLIP, kl: NO_KL, min_std: 0.0, discount: 0.5, step_weight: 1.0 };
        let batch = [episode(1.0, &[1, 1]), episode(0.0, &[1])];
        // Returns from state 1: .5, 1 and 0, mean .5, deviation .5.
        let targets = targets_of(&gigpo, &batch);
        let z = 0.5_f64.sqrt();
        for (segment, expected) in targets[0].segments.iter().zip([z, z + 1.0]) {
            assert!((segment.advantage - expected).abs() < 1e-5, "{segment:?}");
        }
        assert!((targets[1].segments[0].advantage + z + 1.0).abs() < 1e-5);
    }

    #[test]
    fn with_a_step_weight_of_0_it_is_grpo() {
        let gigpo = Gigpo { clip: CLIP, kl: NO_KL, min_std: 0.0, discount: 0.95, step_weight: 0.0 };
        let batch = [episode(1.0, &[1, 2]), episode(0.0, &[1])];
        let grpo = targets_of(&crate::loss::Grpo { clip: CLIP, kl: NO_KL, min_std: 0.0 }, &batch);
        for (target, whole) in targets_of(&gigpo, &batch).iter().zip(&grpo) {
            assert!(target.segments.iter().all(|segment| segment.advantage == whole.segments[0].advantage));
        }
    }
}
