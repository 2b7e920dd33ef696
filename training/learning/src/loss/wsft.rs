//! Weighted supervised fine-tuning: clone every sampled episode, with a larger weight for a higher advantage.
//!
//! No paper; the original recipe of this agent used it. For a batch of B episodes:
//!
//! ```text
//! A = r − V*                                        `Segment::advantage`
//! z = clip( (A − mean A) / (std A + 1e-6), ±c )     c — `advantage_clip`; std over B − 1
//! w = clamp( z + 1, 0.1, 5 )                        `Segment::weight`
//! L = mean_b w_b · ( CE_b + k · KL_b )              k — `kl_coefficient`
//!
//! CE_b = −mean_t lp_t       over the episode's sampled tokens, teacher forcing
//! KL_b = mean_t ½ (lp_t − ref_t)²     the k2 estimate of KL(π‖π_ref) for each token
//! ```
//!
//! There are two other weighting schemes ([`Weighting`]): w = z + c, which is never negative and keeps the
//! order of all episodes; and w = exp(min(A/β, 20)) divided by its mean. With credit by state, each run of
//! turns has its own A, z and w.
//!
//! Deviations from the formula, for batches in which it would ignore the rewards; `guarded = false` removes
//! them:
//!
//! | batch | formula | here |
//! |---|---|---|
//! | one episode, not exponential | w = 1, shifted c | w = clamp(1 + A/β), with one log warning; `NoSignal` if A = 0 |
//! | one episode, exponential | w = 1 | `NoSignal` |
//! | equal advantages (std below 1e-6); with [`Center::Prompt`] only if they are 0 | w = 1: self-imitation, or amplified noise | `NoSignal` |
//!
//! Three weaknesses of the original recipe remain. Two episodes always get w = 1.707 and .293, whatever their
//! gap (use batches of 8 or more). With seven successes and one failure, the weight of the failure is clamped
//! to .1, so negative evidence is lost (`apo` keeps it). Of two failures, the one on the goal with V* near 0
//! gets 5.8 times the weight, because its A is nearer to 0. [`Center::Prompt`] removes the last one: no batch
//! mean is subtracted, since V* already centers each goal; the standard deviation is taken about 0, over B;
//! and an episode with A = 0 gets w = 0.

use std::sync::Once;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::loss::awr::exponential_weights;
use crate::loss::group::{EPSILON, GroupStatistics};
use crate::loss::terms::{LogProbs, Term, constant};
use crate::loss::{AdvantageSource, KlTerm, Loss, Prepared, Scored, Target, credited};
use crate::math::sum_all;

/// Bounds of w.
const WEIGHTS: (f64, f64) = (0.1, 5.0);

/// How advantages become weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// clamp(z + 1, 0.1, 5).
    Normalized,
    /// exp(min(A/β, 20)), divided by its mean.
    Exponential,
    /// z + c, from 0 to 2c.
    Shifted,
}

/// The baseline that z subtracts from the advantages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Center {
    /// The mean advantage of the batch, as in the original recipe.
    Batch,
    /// Each prompt's own V*: no mean is subtracted, and an episode with A = 0 gets weight 0.
    Prompt,
}

/// The loss of weighted supervised fine-tuning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Wsft {
    /// The weighting scheme.
    pub weighting: Weighting,
    /// k ≥ 0, the factor of the KL term.
    pub kl_coefficient: f64,
    /// c > 0, the largest |z|.
    pub advantage_clip: f64,
    /// β > 0, the scale of the advantage in a batch of one, and of the exponential scheme.
    pub beta: f64,
    /// The baseline of z.
    pub center: Center,
    /// Whether batches without a signal in the rewards are skipped.
    pub guarded: bool,
}

impl Default for Wsft {
    fn default() -> Self {
        Self {
            weighting: Weighting::Normalized,
            kl_coefficient: KlTerm::default().coefficient,
            advantage_clip: 3.0,
            beta: 0.5,
            center: Center::Batch,
            guarded: true,
        }
    }
}

impl Loss for Wsft {
    fn name(&self) -> &'static str {
        "wsft"
    }

    fn advantage_source(&self) -> AdvantageSource {
        AdvantageSource::Value
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let mut targets = credited(self.name(), batch)?;
        let has_signal = match self.weighting {
            Weighting::Exponential => exponential_weights(&mut targets, self.beta),
            Weighting::Normalized | Weighting::Shifted => self.set_weights(&mut targets),
        };
        Ok(if has_signal || !self.guarded { Prepared::Learn(targets) } else { Prepared::NoSignal })
    }

    fn loss(&self, target: &Target, log_probs: &LogProbs) -> Result<Term> {
        let kl = ((&log_probs.policy - &log_probs.reference)?.sqr()? * 0.5)?; // [T]
        let objective = (&log_probs.policy - (kl * self.kl_coefficient)?)?; // [T]
        let scale = -target.share / target.n_tokens() as f64;
        let factors = target.per_token(|segment| scale * segment.weight);
        Ok(sum_all(&(objective * constant(&factors, &log_probs.policy)?)?)?.into())
    }
}

impl Wsft {
    /// Sets w of each segment. Returns `false` if the advantages are equal; the weights are then those of the
    /// formula.
    fn set_weights(&self, targets: &mut [Target]) -> bool {
        let advantages: Vec<f64> =
            targets.iter().flat_map(|target| &target.segments).map(|segment| segment.advantage).collect();
        let (weights, has_signal) = self.weights(&advantages);
        let segments = targets.iter_mut().flat_map(|target| &mut target.segments);
        segments.zip(weights).for_each(|(segment, weight)| segment.weight = weight);
        has_signal
    }

    /// w of each advantage, and whether the advantages differ.
    fn weights(&self, advantages: &[f64]) -> (Vec<f64>, bool) {
        if let ([only], true) = (advantages, self.guarded) {
            static WARNED: Once = Once::new();
            WARNED
                .call_once(|| tracing::warn!("`wsft` on a batch of one weighs by 1 + A/β instead of z + 1"));
            return (vec![(1.0 + only / self.beta).clamp(WEIGHTS.0, WEIGHTS.1)], only.abs() >= EPSILON);
        }
        let (center, deviation) = self.center_and_deviation(advantages);
        let weight = |&advantage: &f64| match self.center {
            Center::Prompt if advantage.abs() < EPSILON => 0.0,
            _ => self.weight((advantage - center) / (deviation + EPSILON)),
        };
        (advantages.iter().map(weight).collect(), deviation >= EPSILON)
    }

    fn weight(&self, z: f64) -> f64 {
        let z = z.clamp(-self.advantage_clip, self.advantage_clip);
        match self.weighting {
            Weighting::Shifted => z + self.advantage_clip,
            _ => (z + 1.0).clamp(WEIGHTS.0, WEIGHTS.1),
        }
    }

    fn center_and_deviation(&self, advantages: &[f64]) -> (f64, f64) {
        match self.center {
            Center::Batch => {
                let GroupStatistics { mean, std, .. } = GroupStatistics::of(advantages);
                (mean, std)
            }
            Center::Prompt => {
                let squares: f64 = advantages.iter().map(|a| a.powi(2)).sum();
                (0.0, (squares / advantages.len() as f64).sqrt())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::tests::{differentiate, scored, weights};

    const ORIGINAL: Wsft = Wsft {
        weighting: Weighting::Normalized,
        kl_coefficient: 0.02,
        advantage_clip: 3.0,
        beta: 0.5,
        center: Center::Batch,
        guarded: true,
    };
    const BY_PROMPT: Wsft = Wsft { center: Center::Prompt, ..ORIGINAL };

    #[track_caller]
    fn check(loss_fn: Wsft, pairs: &[(f64, f64)], expected: &[f64]) {
        let weights = weights(&loss_fn, pairs);
        let close = weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-4);
        assert!(close && weights.len() == expected.len(), "{weights:?}");
    }

    #[track_caller]
    fn check_no_signal(loss_fn: Wsft, pairs: &[(f64, f64)]) {
        assert_eq!(loss_fn.prepare(&scored(pairs)).unwrap(), Prepared::NoSignal);
    }

    #[test]
    fn weights_follow_the_normalized_advantage() {
        // A = .6, −.4, 0, −.2: mean 0, squares .36 + .16 + 0 + .04 = .56, std = √(.56/3) = .43205.
        // z = 1.3887, −.9258, 0, −.4629.
        check(ORIGINAL, &[(1.0, 0.4), (0.0, 0.4), (0.4, 0.4), (0.2, 0.4)], &[2.3887, 0.1, 1.0, 0.5371]);
    }

    #[test]
    fn one_episode_is_weighed_by_its_raw_advantage() {
        // 1 + .25/.5; 1 − .9/.5 is clamped.
        check(ORIGINAL, &[(1.0, 0.75)], &[1.5]);
        check(ORIGINAL, &[(0.0, 0.9)], &[0.1]);
        check(BY_PROMPT, &[(1.0, 0.75)], &[1.5]);
        check_no_signal(ORIGINAL, &[(0.5, 0.5)]);
    }

    #[test]
    fn two_episodes_get_the_same_weights_whatever_their_gap() {
        // ± half the gap over a deviation of half the gap times √2.
        for gap in [0.01, 1.0] {
            check(ORIGINAL, &[(gap, 0.0), (0.0, 0.0)], &[1.7071, 0.2929]);
        }
    }

    #[test]
    fn equal_advantages_are_no_signal() {
        check_no_signal(ORIGINAL, &[(1.0, 0.3); 8]);
        check_no_signal(ORIGINAL, &[(0.0, 0.0); 8]);
        check_no_signal(BY_PROMPT, &[(0.5, 0.5); 8]);
        // All rewards exceed V*: centered by prompt, z = 1.
        check(BY_PROMPT, &[(1.0, 0.3); 2], &[2.0, 2.0]);
    }

    #[test]
    fn a_deviation_below_epsilon_is_never_divided_by() {
        check_no_signal(ORIGINAL, &[(0.5, 0.0), (0.5 + 1e-7, 0.0), (0.5, 0.0)]);
    }

    #[test]
    fn a_failure_on_a_goal_of_low_value_weighs_more_unless_centered_by_prompt() {
        let failures = [(0.0, 0.29), (0.0, 0.0)];
        check(ORIGINAL, &failures, &[0.2929, 1.7071]);
        assert!((1.7071_f64 / 0.2929 - 5.8).abs() < 0.05);
        check(BY_PROMPT, &failures, &[0.1, 0.0]);
    }

    #[test]
    fn one_failure_among_wins_is_clamped() {
        let mut pairs = [(1.0, 0.5); 8];
        pairs[7] = (0.0, 0.5);
        // mean A = .375, deviations .125 and −.875, std = √((7 · .015625 + .765625)/7) = .35355: z = .35355,
        // −2.4749.
        let mut expected = [1.3536; 8];
        expected[7] = 0.1;
        check(ORIGINAL, &pairs, &expected);
    }

    #[test]
    fn far_advantages_are_clipped() {
        let clipped = Wsft { advantage_clip: 0.5, ..ORIGINAL };
        check(clipped, &[(1.0, 0.0), (0.0, 0.0)], &[1.5, 0.5]);
    }

    #[test]
    fn the_loss_is_weighted_cross_entropy_with_kl() {
        let loss_fn = Wsft { kl_coefficient: 0.5, ..ORIGINAL };
        let target = Target::whole(2, 0.6, 2.0, 0.25);
        let (loss, gradient) = differentiate(&loss_fn, &[target], &[-1.0, -2.0], &[-1.2, -2.6], &[0.0; 2]);
        // CE = 1.5; KL = (.04 + .36)/2/2 = .1; .25 · 2 · (1.5 + .05) = .775.
        assert!((loss - 0.775).abs() < 1e-12, "{loss}");
        // d/dlp₁ = .5 · (−1/2 + .5 · .2/2) = −.225; d/dlp₂ = .5 · (−1/2 + .5 · .6/2) = −.175
        assert!((gradient[0] + 0.225).abs() < 1e-12 && (gradient[1] + 0.175).abs() < 1e-12, "{gradient:?}");
    }

    #[test]
    fn without_guard_equal_advantages_are_cloned() {
        let unguarded = Wsft { guarded: false, ..ORIGINAL };
        check(unguarded, &[(0.0, 0.0); 4], &[1.0; 4]);
        check(unguarded, &[(0.0, 0.9)], &[1.0]);
        // Failures with V* = 0 have a gradient: −1/4 for each episode's mean log-likelihood.
        let targets = crate::loss::tests::targets(&unguarded, &[(0.0, 0.0); 4]);
        let (_, gradient) = differentiate(&unguarded, &targets, &[-1.0; 4], &[-1.0; 4], &[-1.0; 4]);
        assert!(gradient.iter().all(|g| (g + 0.25).abs() < 1e-12), "{gradient:?}");
    }

    #[test]
    fn the_other_weighting_schemes() {
        let pairs = [(1.0, 0.5), (0.0, 0.5)];
        // z = ±.70711.
        check(Wsft { weighting: Weighting::Shifted, ..ORIGINAL }, &pairs, &[3.7071, 2.2929]);
        // e and 1/e over their mean 1.54308.
        check(Wsft { weighting: Weighting::Exponential, ..ORIGINAL }, &pairs, &[1.7616, 0.2384]);
        check_no_signal(Wsft { weighting: Weighting::Exponential, ..ORIGINAL }, &[(1.0, 0.3); 8]);
    }
}
