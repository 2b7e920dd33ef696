//! The losses: from rewards and values to something that can be differentiated.
//!
//! A [`Learner`] sees a batch twice. [`Learner::prepare`] reads all rewards and values at once and gives every
//! trajectory a [`Target`], or says that the batch teaches nothing. [`Learner::loss`] then turns one trajectory's
//! token log-probabilities and its target into its share of the loss. A share already holds the 1/B of the mean, so
//! shares add up to the batch's loss however the batch is split: 1 × 8 = 8 × 1. All that depends on the whole batch is
//! settled in `prepare`, from numbers known before the first forward pass.
//!
//! Symbols: lp — log π(y) of each sampled token `[T]`, differentiable; ref — the same under the frozen reference;
//! A = r − V* — `Target::advantage`; w — `Target::weight`; B — batch size. No file here steps, samples or logs.

mod apo;
mod wsft;

pub use apo::Apo;
pub use wsft::Wsft;

use candle_core::Tensor;

use crate::config::{LearnerConfig, LossName};
use crate::error::{Result, TrainingError};

/// What a learner must know of a trajectory before the first forward pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Its reward.
    pub reward: f64,
    /// V* of its goal.
    pub v_star: f64,
}

/// What a trajectory is to teach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// A = r − V*, positive where the trip went better than the reference could be expected to.
    pub advantage: f64,
    /// Factor of its term; 1 in losses that do not weigh.
    pub weight: f64,
    /// 1/B.
    pub share: f64,
}

/// A batch after its rewards were read.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// One target for each trajectory, in order.
    Learn(Vec<Target>),
    /// The rewards do not tell one trajectory from another; the step is to be skipped and counted.
    NoSignal,
}

/// A loss. Implementations hold their coefficients and no state.
pub trait Learner: Send + Sync {
    /// The name used in configurations and logs.
    fn name(&self) -> &'static str;

    /// Targets for a whole batch. Fails for an empty batch and for rewards or values that are not finite.
    fn prepare(&self, batch: &[Scored]) -> Result<Prepared>;

    /// One trajectory's share of the batch's loss, a scalar: `log_probs` and `reference` are `[T]` over its sampled
    /// tokens, T ≥ 1, under the policy (differentiable) and under the frozen reference (constant).
    fn loss(&self, target: &Target, log_probs: &Tensor, reference: &Tensor) -> Result<Tensor>;
}

/// The learner a configuration asks for.
pub fn learner(config: &LearnerConfig) -> Box<dyn Learner> {
    match config.loss {
        LossName::Apo => Box::new(Apo { beta2: config.beta2 }),
        LossName::Wsft => Box::new(Wsft {
            kl_coefficient: config.kl_coefficient,
            advantage_clip: config.advantage_clip,
            beta: config.beta,
            center: config.center,
        }),
    }
}

/// The summed shares of trajectories whose tokens lie end to end: `n_tokens` holds each one's number of sampled
/// tokens, `log_probs` and `reference` are `[N]` with N their sum.
///
/// Fails if a trajectory has no sampled token or the counts do not add up to N.
pub fn summed_loss(
    learner: &dyn Learner,
    targets: &[Target],
    n_tokens: &[usize],
    log_probs: &Tensor,
    reference: &Tensor,
) -> Result<Tensor> {
    let (n, counted) = (log_probs.dim(0)?, n_tokens.iter().sum::<usize>());
    if targets.len() != n_tokens.len() || counted != n || reference.dim(0)? != n {
        let problem =
            format!("{} targets and {counted} counted tokens for {n} log-probabilities", targets.len());
        return Err(TrainingError::InvalidBatch { loss: learner.name(), problem });
    }
    let mut total: Option<Tensor> = None;
    let mut start = 0;
    for (target, &length) in targets.iter().zip(n_tokens) {
        if length == 0 {
            let problem = "a trajectory without a sampled token teaches nothing".into();
            return Err(TrainingError::InvalidBatch { loss: learner.name(), problem });
        }
        let share = learner.loss(
            target,
            &log_probs.narrow(0, start, length)?,
            &reference.narrow(0, start, length)?,
        )?;
        total = Some(match total {
            Some(sum) => (sum + share)?,
            None => share,
        });
        start += length;
    }
    total.ok_or_else(|| empty(learner.name()))
}

/// What a batch's targets look like, for the log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetStatistics {
    /// Mean advantage.
    pub adv_mean: f64,
    /// Standard deviation of advantages about that mean, over B; 0 for one.
    pub adv_std: f64,
    /// (Σw)²/Σw²: how many equally weighted trajectories would teach as much; 0 if all weights are 0.
    pub effective_samples: f64,
}

impl TargetStatistics {
    /// Over a batch that is not empty.
    pub fn of(targets: &[Target]) -> Self {
        let n = targets.len() as f64;
        let adv_mean = targets.iter().map(|t| t.advantage).sum::<f64>() / n;
        let variance = targets.iter().map(|t| (t.advantage - adv_mean).powi(2)).sum::<f64>() / n;
        let weights: f64 = targets.iter().map(|t| t.weight).sum();
        let squares: f64 = targets.iter().map(|t| t.weight * t.weight).sum();
        let effective_samples = if squares > 0.0 { weights * weights / squares } else { 0.0 };
        Self { adv_mean, adv_std: variance.sqrt(), effective_samples }
    }
}

fn empty(loss: &'static str) -> TrainingError {
    TrainingError::InvalidBatch { loss, problem: "a batch without trajectories has no mean".into() }
}

/// r − V* of every trajectory of a batch that is not empty and finite throughout.
fn advantages(loss: &'static str, batch: &[Scored]) -> Result<Vec<f64>> {
    if batch.is_empty() {
        return Err(empty(loss));
    }
    let advantage = |(index, scored): (usize, &Scored)| {
        let advantage = scored.reward - scored.v_star;
        if advantage.is_finite() {
            return Ok(advantage);
        }
        let problem = format!("trajectory {index} has reward {} and V* {}", scored.reward, scored.v_star);
        Err(TrainingError::InvalidBatch { loss, problem })
    };
    batch.iter().enumerate().map(advantage).collect()
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::config::Center;

    pub(super) fn scored(pairs: &[(f64, f64)]) -> Vec<Scored> {
        pairs.iter().map(|&(reward, v_star)| Scored { reward, v_star }).collect()
    }

    pub(super) fn targets(learner: &dyn Learner, pairs: &[(f64, f64)]) -> Vec<Target> {
        match learner.prepare(&scored(pairs)).unwrap() {
            Prepared::Learn(targets) => targets,
            Prepared::NoSignal => panic!("{} found no signal", learner.name()),
        }
    }

    pub(super) fn tensor(values: &[f64]) -> Tensor {
        Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap()
    }

    /// The loss and its gradient with respect to every log-probability.
    pub(super) fn differentiate(
        learner: &dyn Learner,
        targets: &[Target],
        n_tokens: &[usize],
        log_probs: &[f64],
        reference: &[f64],
    ) -> (f64, Vec<f64>) {
        let var = Var::from_tensor(&tensor(log_probs)).unwrap();
        let loss = summed_loss(learner, targets, n_tokens, var.as_tensor(), &tensor(reference)).unwrap();
        // A factor of 0 ends the graph in candle, and leaves no gradient where there is none.
        let gradient = loss.backward().unwrap().remove(var.as_tensor());
        let gradient = gradient.map_or(vec![0.0; log_probs.len()], |gradient| gradient.to_vec1().unwrap());
        (loss.to_scalar().unwrap(), gradient)
    }

    fn all() -> [Box<dyn Learner>; 3] {
        let wsft = |center| Wsft { kl_coefficient: 0.02, advantage_clip: 3.0, beta: 0.5, center };
        [Box::new(Apo { beta2: 0.1 }), Box::new(wsft(Center::Batch)), Box::new(wsft(Center::Prompt))]
    }

    const PAIRS: [(f64, f64); 8] =
        [(1.0, 0.4), (0.0, 0.4), (0.5, 0.1), (1.0, 0.9), (0.25, 0.7), (0.0, 0.0), (1.0, 0.2), (0.75, 0.75)];
    const LENGTHS: [usize; 8] = [1, 3, 2, 4, 1, 2, 5, 2];

    fn numbers(offset: f64) -> Vec<f64> {
        (0..20).map(|i| -0.05 - 0.1 * f64::from((i * 7) % 11) - offset).collect()
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        let (lp, reference) = (numbers(0.0), numbers(0.3));
        for learner in all() {
            let targets = targets(&*learner, &PAIRS);
            let (_, gradient) = differentiate(&*learner, &targets, &LENGTHS, &lp, &reference);
            for (i, &exact) in gradient.iter().enumerate() {
                const H: f64 = 1e-5;
                let at = |shift: f64| {
                    let mut moved = lp.clone();
                    moved[i] += shift;
                    differentiate(&*learner, &targets, &LENGTHS, &moved, &reference).0
                };
                let slope = (at(H) - at(-H)) / (2.0 * H);
                assert!((slope - exact).abs() < 1e-7, "{} token {i}: {slope} {exact}", learner.name());
            }
        }
    }

    #[test]
    fn one_pass_of_eight_equals_eight_passes_of_one() {
        let (lp, reference) = (numbers(0.0), numbers(0.3));
        for learner in all() {
            let targets = targets(&*learner, &PAIRS);
            let (whole, together) = differentiate(&*learner, &targets, &LENGTHS, &lp, &reference);
            let (mut sum, mut apart, mut start) = (0.0, Vec::new(), 0);
            for (target, length) in targets.iter().zip(LENGTHS) {
                let tokens = start..start + length;
                let (share, gradient) =
                    differentiate(&*learner, &[*target], &[length], &lp[tokens.clone()], &reference[tokens]);
                sum += share;
                apart.extend(gradient);
                start += length;
            }
            assert_eq!(together, apart, "{}", learner.name());
            assert!((whole - sum).abs() < 1e-12, "{}", learner.name());
        }
    }

    #[test]
    fn batches_that_cannot_be_learned_from_are_refused_with_a_reason() {
        for learner in all() {
            assert!(learner.prepare(&[]).is_err());
            let error = learner.prepare(&scored(&[(1.0, 0.5), (f64::NAN, 0.5)])).unwrap_err().to_string();
            let expected = format!("loss `{}`: trajectory 1 has reward NaN and V* 0.5", learner.name());
            assert_eq!(error, expected);
            let target = Target { advantage: 1.0, weight: 1.0, share: 1.0 };
            let one = tensor(&[-1.0]);
            assert!(summed_loss(&*learner, &[target, target], &[1, 0], &one, &one).is_err());
            assert!(summed_loss(&*learner, &[target], &[2], &one, &one).is_err());
        }
    }

    #[test]
    fn statistics_describe_advantages_and_weights() {
        let target = |advantage, weight| Target { advantage, weight, share: 0.5 };
        // Mean (1 − .5)/2, deviation .75; (3 + 1)²/(9 + 1).
        let statistics = TargetStatistics::of(&[target(1.0, 3.0), target(-0.5, 1.0)]);
        let expected = TargetStatistics { adv_mean: 0.25, adv_std: 0.75, effective_samples: 1.6 };
        assert_eq!(statistics, expected);
    }
}
