//! Weighted supervised fine-tuning: imitate every own trip, the better ones more.
//!
//! No paper; the variant this method's shopping agent was first described with. For a batch of B trajectories:
//!
//! ```text
//! A = r − V*                                        `Target::advantage`
//! z = clip( (A − mean A) / (std A + 1e-6), ±c )     c — `advantage_clip`; std over B − 1
//! w = clamp( z + 1, 0.1, 5 )                        `Target::weight`
//! L = mean_b w_b · ( CE_b + k · KL_b )              k — `kl_coefficient`
//!
//! CE_b = −mean_t lp_t       over the trajectory's sampled tokens, teacher forcing
//! KL_b = mean_t ½ (lp_t − ref_t)²     the k2 estimate of KL(π‖π_ref) for each token
//! ```
//!
//! Deviations from the bare formula, each where it would ignore the rewards:
//!
//! | batch | bare formula | here |
//! |---|---|---|
//! | one trajectory | w = 1 | w = clamp(1 + A/β), said once in the log; `NoSignal` if A = 0 |
//! | all advantages equal (std below 1e-6) | w = 1: self-imitation, or amplified noise | `NoSignal`: skipped and counted |
//!
//! And three that stay as founded, to be known: two trajectories always get w = 1.707 and .293 whatever their gap (take
//! batches of 8 or more); seven wins and one failure clamp the failure to .1, so negative evidence is lost (`apo` keeps
//! it); of two failures the one on the hopeless goal is imitated 5.8 times more, because its A is nearer to 0. With
//! [`Center::Prompt`] the last does not happen: no batch mean is subtracted, since V* already centres each goal; the
//! deviation is taken about 0, over B; and a trip with A = 0 carries no evidence and gets w = 0.

use std::sync::Once;

use candle_core::Tensor;

use super::{Learner, Prepared, Scored, Target, advantages};
use crate::config::Center;
use crate::error::Result;

/// Added to the deviation, and the deviation below which there is none.
const EPSILON: f64 = 1e-6;
/// Bounds of w.
const WEIGHTS: (f64, f64) = (0.1, 5.0);

/// The loss of weighted supervised fine-tuning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wsft {
    /// k ≥ 0, the factor of the KL term.
    pub kl_coefficient: f64,
    /// c > 0, the largest |z|.
    pub advantage_clip: f64,
    /// β > 0, the scale of the advantage in a batch of one.
    pub beta: f64,
    /// What z is measured from.
    pub center: Center,
}

impl Learner for Wsft {
    fn name(&self) -> &'static str {
        "wsft"
    }

    fn prepare(&self, batch: &[Scored]) -> Result<Prepared> {
        let advantages = advantages(self.name(), batch)?;
        let Some(weights) = self.weights(&advantages) else {
            return Ok(Prepared::NoSignal);
        };
        let share = 1.0 / batch.len() as f64;
        let targets = advantages
            .into_iter()
            .zip(weights)
            .map(|(advantage, weight)| Target { advantage, weight, share })
            .collect();
        Ok(Prepared::Learn(targets))
    }

    fn loss(&self, target: &Target, log_probs: &Tensor, reference: &Tensor) -> Result<Tensor> {
        let log_likelihood = log_probs.mean_all()?; // []
        let kl = ((log_probs - reference)?.sqr()?.mean_all()? * 0.5)?; // []
        let objective = (log_likelihood - (kl * self.kl_coefficient)?)?;
        Ok((objective * -(target.share * target.weight))?)
    }
}

impl Wsft {
    /// w of each advantage, or `None` where the advantages do not tell trajectories apart.
    fn weights(&self, advantages: &[f64]) -> Option<Vec<f64>> {
        let clamp = |weight: f64| weight.clamp(WEIGHTS.0, WEIGHTS.1);
        if let [only] = advantages {
            static SAID: Once = Once::new();
            SAID.call_once(|| tracing::warn!("`wsft` on a batch of one weighs by 1 + A/β instead of z + 1"));
            return (only.abs() >= EPSILON).then(|| vec![clamp(1.0 + only / self.beta)]);
        }
        let (center, deviation) = self.center_and_deviation(advantages);
        if deviation < EPSILON {
            return None;
        }
        let weight = |&advantage: &f64| match self.center {
            Center::Prompt if advantage.abs() < EPSILON => 0.0,
            _ => {
                let z = (advantage - center) / (deviation + EPSILON);
                clamp(z.clamp(-self.advantage_clip, self.advantage_clip) + 1.0)
            }
        };
        Some(advantages.iter().map(weight).collect())
    }

    fn center_and_deviation(&self, advantages: &[f64]) -> (f64, f64) {
        let n = advantages.len() as f64;
        let squares = |center: f64| advantages.iter().map(|a| (a - center).powi(2)).sum::<f64>();
        match self.center {
            Center::Batch => {
                let mean = advantages.iter().sum::<f64>() / n;
                (mean, (squares(mean) / (n - 1.0)).sqrt())
            }
            Center::Prompt => (0.0, (squares(0.0) / n).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{differentiate, scored, targets};
    use super::*;

    const FOUNDED: Wsft =
        Wsft { kl_coefficient: 0.02, advantage_clip: 3.0, beta: 0.5, center: Center::Batch };
    const BY_PROMPT: Wsft = Wsft { center: Center::Prompt, ..FOUNDED };

    #[track_caller]
    fn check(learner: Wsft, pairs: &[(f64, f64)], expected: &[f64]) {
        let weights: Vec<f64> = targets(&learner, pairs).iter().map(|target| target.weight).collect();
        let close = weights.iter().zip(expected).all(|(a, b)| (a - b).abs() < 5e-4);
        assert!(close && weights.len() == expected.len(), "{weights:?}");
    }

    #[track_caller]
    fn check_no_signal(learner: Wsft, pairs: &[(f64, f64)]) {
        assert_eq!(learner.prepare(&scored(pairs)).unwrap(), Prepared::NoSignal);
    }

    #[test]
    fn weights_follow_the_normalized_advantage() {
        // A = .6, −.4, 0, −.2: mean 0, squares .36 + .16 + 0 + .04 = .56, std = √(.56/3) = .43205.
        // z = 1.3887, −.9258, 0, −.4629.
        check(FOUNDED, &[(1.0, 0.4), (0.0, 0.4), (0.4, 0.4), (0.2, 0.4)], &[2.3887, 0.1, 1.0, 0.5371]);
    }

    #[test]
    fn one_trajectory_is_weighed_by_its_raw_advantage() {
        // 1 + .25/.5; 1 − .9/.5 is clamped.
        check(FOUNDED, &[(1.0, 0.75)], &[1.5]);
        check(FOUNDED, &[(0.0, 0.9)], &[0.1]);
        check(BY_PROMPT, &[(1.0, 0.75)], &[1.5]);
        check_no_signal(FOUNDED, &[(0.5, 0.5)]);
    }

    #[test]
    fn two_trajectories_get_the_same_weights_whatever_their_gap() {
        // ± half the gap over a deviation of half the gap times √2.
        for gap in [0.01, 1.0] {
            check(FOUNDED, &[(gap, 0.0), (0.0, 0.0)], &[1.7071, 0.2929]);
        }
    }

    #[test]
    fn equal_advantages_are_no_signal() {
        check_no_signal(FOUNDED, &[(1.0, 0.3); 8]);
        check_no_signal(FOUNDED, &[(0.0, 0.0); 8]);
        check_no_signal(BY_PROMPT, &[(0.5, 0.5); 8]);
        // All better than their goals' values: by prompt that is evidence, z = 1.
        check(BY_PROMPT, &[(1.0, 0.3); 2], &[2.0, 2.0]);
    }

    #[test]
    fn a_deviation_below_epsilon_is_never_divided_by() {
        check_no_signal(FOUNDED, &[(0.5, 0.0), (0.5 + 1e-7, 0.0), (0.5, 0.0)]);
    }

    #[test]
    fn the_hopeless_goals_failure_counts_more_unless_centred_by_prompt() {
        let failures = [(0.0, 0.29), (0.0, 0.0)];
        check(FOUNDED, &failures, &[0.2929, 1.7071]);
        assert!((1.7071_f64 / 0.2929 - 5.8).abs() < 0.05);
        check(BY_PROMPT, &failures, &[0.1, 0.0]);
    }

    #[test]
    fn one_failure_among_wins_is_clamped() {
        let mut pairs = [(1.0, 0.5); 8];
        pairs[7] = (0.0, 0.5);
        // mean A = .375, deviations .125 and −.875, std = √((7 · .015625 + .765625)/7) = .35355: z = .35355, −2.4749.
        let mut expected = [1.3536; 8];
        expected[7] = 0.1;
        check(FOUNDED, &pairs, &expected);
    }

    #[test]
    fn far_advantages_are_clipped() {
        let clipped = Wsft { advantage_clip: 0.5, ..FOUNDED };
        check(clipped, &[(1.0, 0.0), (0.0, 0.0)], &[1.5, 0.5]);
    }

    #[test]
    fn the_loss_is_weighted_cross_entropy_with_kl() {
        let learner = Wsft { kl_coefficient: 0.5, ..FOUNDED };
        let target = Target { advantage: 0.6, weight: 2.0, share: 0.25 };
        let (loss, gradient) = differentiate(&learner, &[target], &[2], &[-1.0, -2.0], &[-1.2, -2.6]);
        // CE = 1.5; KL = (.04 + .36)/2/2 = .1; .25 · 2 · (1.5 + .05) = .775.
        assert!((loss - 0.775).abs() < 1e-12, "{loss}");
        // d/dlp₁ = .5 · (−1/2 + .5 · .2/2) = −.225; d/dlp₂ = .5 · (−1/2 + .5 · .6/2) = −.175
        assert!((gradient[0] + 0.225).abs() < 1e-12 && (gradient[1] + 0.175).abs() < 1e-12, "{gradient:?}");
    }
}
