//! Proximal policy optimization: a clipped ratio, and advantages against a critic that is trained beside the
//! policy.
//!
//! Papers: "Proximal Policy Optimization Algorithms", arXiv 1707.06347, equations 7, 9 and 11;
//! "High-Dimensional Continuous Control Using Generalized Advantage Estimation", arXiv 1506.02438, equation
//! 16. The two bounds of the clip are those of DAPO (arXiv 2503.14476, section 3.1).
//!
//! ```text
//! δ_k = r_k + γ V(s_{k+1}) − V(s_k)                  k: turns; V after the last turn is 0; V — `ScoredTurn::value`
//! Â_k = Σ_l (γ λ)^l δ_{k+l}                          `estimates`
//! R_k = Â_k + V(s_k)                                 `Target::returns`
//! A_k = (Â_k − mean Â) / (std Â + 1e-6)              over the turns of the batch; `Segment::advantage`
//! L   = −mean_b [ mean_t min( ρ_t A, clip(ρ_t, 1 − ε_low, 1 + ε_high) A ) − k · mean_t KL_t ],    ρ_t = exp(lp_t − old_t)
//!       + c · mean_b [ mean_k ( V_θ(s_k) − R_k )² ]
//! ```
//!
//! γ — `gamma`, λ — `gae_lambda`, c — `vf_coef`. s_k is what the policy reads before turn k: V_θ is a linear
//! function of its final hidden state at the last token of the prompt ([`crate::model::critic`], which has the
//! squared error). The V of Â and R are those of the weights that sampled the batch: they are computed once,
//! before the first update. The reward is that of the last turn, the other turns earn 0.
//!
//! Deviations from the papers:
//!
//! - An action is a turn: all its tokens have its advantage, while ratio and clip are by token. Tokens are
//!   averaged within an episode and turns within an episode, then both over episodes; the papers average over
//!   time steps.
//! - An episode that is cut off at `run.max_steps` ends there, and no value is added for what would follow: the
//!   limit is part of the task. The papers bootstrap with V at the end of a segment.
//! - The error of V_θ goes into the policy's weights with the factor c, into the critic's own weights without
//!   it. These have an optimizer of their own, AdamW at the constant rate `value_lr` and without gradient
//!   clipping: they start at 0, and the policy's rate is too small to learn them in some ten steps. The KL term
//!   is to the reference, as in the other losses. There is no entropy bonus.
//! - The second paper fits V by a trust region on whole returns; here R_k is the λ-return, as in
//!   implementations of the first.
//! - Advantages are normalized over the batch, which is what implementations do and the papers do not state
//!   (`normalize_advantages`). A batch of a single turn is not normalized.
//!
//! A batch whose Â are all 0 is no signal, for the critic neither: R = V then.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::group::GroupStatistics;
use crate::loss::grpo::token_mean;
use crate::loss::terms::{Clip, LogProbs, Term};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Segment, Target, share_of};

/// The loss of PPO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ppo {
    /// ε below and above 1.
    pub clip: Clip,
    /// Its KL term.
    #[serde(flatten)]
    pub kl: KlTerm,
    /// γ, 0 to 1: discount of the reward per turn.
    pub gamma: f64,
    /// λ, 0 to 1: 0 trusts the critic, 1 the reward.
    pub gae_lambda: f64,
    /// Whether advantages are normalized over the turns of the batch.
    pub normalize_advantages: bool,
    /// c ≥ 0: weight of the critic's error in the gradient of the policy's weights; with 0 the critic learns
    /// from hidden states that it does not change.
    pub vf_coef: f64,
    /// Learning rate of the critic's own weights, > 0; about the largest change of a value in one step.
    pub value_lr: f64,
}

impl Default for Ppo {
    fn default() -> Self {
        Self {
            clip: Clip::default(),
            kl: KlTerm::default(),
            gamma: 1.0,
            gae_lambda: 0.95,
            normalize_advantages: true,
            vf_coef: 0.1,
            value_lr: 0.05,
        }
    }
}

impl Loss for Ppo {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Critic
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let share = share_of(self.name(), batch)?;
        let estimates: Vec<Vec<f64>> = batch.iter().map(|scored| self.estimates(scored)).collect();
        let all = estimates.concat();
        if all.iter().all(|estimate| *estimate == 0.0) {
            return Ok(Prepared::NoSignal);
        }
        let statistics = GroupStatistics::of(&all);
        let is_normalized = self.normalize_advantages && all.len() > 1;
        let advantage =
            |estimate: f64| if is_normalized { statistics.normalized(estimate, 0.0) } else { estimate };
        let target = |(scored, estimates): (&Scored, &Vec<f64>)| {
            let turns = scored.turns.iter().zip(estimates);
            // Every turn has a weight, because the critic learns from all of them.
            let segment = |(turn, estimate): (&crate::loss::ScoredTurn, &f64)| Segment {
                n_tokens: turn.n_tokens,
                advantage: advantage(*estimate),
                weight: 1.0,
            };
            let segments = turns.clone().map(segment).collect();
            Target { segments, share, returns: turns.map(|(turn, estimate)| estimate + turn.value).collect() }
        };
        Ok(Prepared::Learn(batch.iter().zip(&estimates).map(target).collect()))
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        token_mean(self.clip, self.kl, target, log_probs)
    }
}

impl Ppo {
    /// Â of each turn of an episode.
    fn estimates(&self, scored: &Scored) -> Vec<f64> {
        let mut estimates = vec![0.0; scored.turns.len()];
        // Of the turn after the one at hand.
        let (mut estimate, mut reward, mut value) = (0.0, scored.reward, 0.0);
        for (turn, place) in scored.turns.iter().zip(&mut estimates).rev() {
            let delta = reward + self.gamma * value - turn.value;
            estimate = delta + self.gamma * self.gae_lambda * estimate;
            *place = estimate;
            (reward, value) = (0.0, turn.value);
        }
        estimates
    }
}

/// 1 − Var(R − V) / Var(R) over the turns of a batch: 1 if the values are the returns, 0 if a constant is as good,
/// negative if it is better. `None` if all returns are equal.
pub(crate) fn explained_variance(batch: &[Scored], targets: &[Target]) -> Option<f64> {
    let values = batch.iter().flat_map(|scored| &scored.turns).map(|turn| turn.value);
    let returns: Vec<f64> = targets.iter().flat_map(|target| &target.returns).copied().collect();
    let errors: Vec<f64> = returns.iter().zip(values).map(|(actual, value)| actual - value).collect();
    let [of_returns, of_errors] = [&returns, &errors].map(|numbers| GroupStatistics::of(numbers).std.powi(2));
    (of_returns > 0.0).then(|| 1.0 - of_errors / of_returns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::ScoredTurn;
    use crate::loss::tests::{CLIP, NO_KL, differentiate, targets_of};

    fn ppo(gae_lambda: f64, normalize_advantages: bool) -> Ppo {
        Ppo { clip: CLIP, kl: NO_KL, gamma: 0.5, gae_lambda, normalize_advantages, ..Ppo::default() }
    }

    /// An episode of turns of one token with these values.
    fn episode(reward: f64, values: &[f64]) -> Scored {
        let turns = values.iter().map(|&value| ScoredTurn { value, ..ScoredTurn::new(1, 0) }).collect();
        Scored { group: 0, reward, v_star: 0.0, turns }
    }

    fn advantages(target: &Target) -> Vec<f64> {
        target.segments.iter().map(|segment| segment.advantage).collect()
    }

    #[test]
    fn advantages_and_returns_follow_the_recursion() {
        let [target] = &targets_of(&ppo(0.5, false), &[episode(1.0, &[0.5, 0.25, 0.75])])[..] else {
            panic!()
        };
        // δ = .5 · .25 − .5, .5 · .75 − .25, 1 − .75 = −.375, .125, .25; γλ = .25: Â₃ = .25,
        // Â₂ = .125 + .25 · .25 = .1875, Â₁ = −.375 + .25 · .1875 = −.328125. R = Â + V.
        assert_eq!(advantages(target), [-0.328125, 0.1875, 0.25]);
        assert_eq!(target.returns, [0.171875, 0.4375, 1.0]);
    }

    #[test]
    fn with_lambda_1_the_return_is_the_discounted_reward_whatever_the_values() {
        let [target] = &targets_of(&ppo(1.0, false), &[episode(1.0, &[0.5, 0.25, 0.75])])[..] else {
            panic!()
        };
        // R = γ² r, γ r, r; Â = R − V.
        assert_eq!(target.returns, [0.25, 0.5, 1.0]);
        assert_eq!(advantages(target), [-0.25, 0.25, 0.25]);
    }

    #[test]
    fn advantages_are_normalized_over_the_turns_of_the_batch_and_returns_are_not() {
        let batch = [episode(1.0, &[0.0, 0.0]), episode(0.0, &[0.0])];
        let targets = targets_of(&ppo(1.0, true), &batch);
        // Â = .5, 1 and 0: mean .5, deviation .5.
        let given: Vec<f64> = targets.iter().flat_map(advantages).collect();
        for (given, expected) in given.iter().zip([0.0, 1.0, -1.0]) {
            assert!((given - expected).abs() < 1e-5, "{given} for {expected}");
        }
        assert_eq!((&targets[0].returns[..], &targets[1].returns[..]), (&[0.5, 1.0][..], &[0.0][..]));
        assert!(targets.iter().all(Target::has_weight), "the critic learns from all turns");
    }

    #[test]
    fn equal_advantages_train_the_critic_only() {
        let targets = targets_of(&ppo(1.0, true), &[episode(1.0, &[0.0]), episode(1.0, &[0.0])]);
        for target in targets {
            assert_eq!((advantages(&target), target.returns), (vec![0.0], vec![1.0]));
        }
    }

    #[test]
    fn the_explained_variance_is_that_of_the_returns() {
        let explained = |values: [f64; 2]| {
            let batch = [episode(1.0, &values[..1]), episode(0.0, &values[1..])];
            explained_variance(&batch, &targets_of(&ppo(1.0, true), &batch))
        };
        // Returns 1 and 0.
        assert_eq!(explained([0.5, 0.5]), Some(0.0));
        assert_eq!(explained([0.75, 0.25]), Some(0.75));
        assert_eq!(explained([0.0, 1.0]), Some(-3.0));
        let equal = [episode(1.0, &[0.5])];
        assert_eq!(explained_variance(&equal, &targets_of(&ppo(1.0, true), &equal)), None);
    }

    #[test]
    fn gradients_follow_the_advantage_up_to_the_clip() {
        let (ppo, batch) = (ppo(1.0, false), [episode(1.0, &[0.4]), episode(0.0, &[0.4])]);
        let targets = targets_of(&ppo, &batch);
        let (loss, gradient) = differentiate(&ppo, &targets, &[-1.0, -1.0], &[0.0; 2], &[-1.0, -1.0]);
        // Ratios of 1: −(.6 − .4)/2, and −A/2 for each.
        assert!((loss + 0.1).abs() < 1e-12, "{loss}");
        assert!((gradient[0] + 0.3).abs() < 1e-12 && (gradient[1] - 0.2).abs() < 1e-12, "{gradient:?}");
        // e^.3 = 1.35 exceeds 1.28, e^−.3 = .74 is below .8; the other episode, at a ratio of 1, keeps its gradient.
        for (policy, clipped, free) in [([-0.7, -1.0], 0, 0.2), ([-1.0, -1.3], 1, -0.3)] {
            let (_, gradient) = differentiate(&ppo, &targets, &policy, &[0.0; 2], &[-1.0, -1.0]);
            assert_eq!(gradient[clipped], 0.0);
            assert!((gradient[1 - clipped] - free).abs() < 1e-12, "{gradient:?}");
        }
    }
}
