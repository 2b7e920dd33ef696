//! One learner step on trips that were just made.
//!
//! rewards and V* → targets; current and reference log-probabilities → loss → gradient. What the log shows
//! of a step is measured here, once.

use candle_core::Tensor;
use webshop_agent::Qwen2;

use crate::error::Result;
use crate::gradient::{Gradients, accumulate};
use crate::loss::{Learner, Prepared, Scored, Target, TargetStatistics, summed_loss};
use crate::trajectory::{MicroBatch, Trajectory};

/// What a learner step came to.
#[derive(Debug)]
pub enum LearnStep {
    /// A gradient to step along, and what was measured on the way.
    Learned(Gradients, LearnTerms),
    /// The rewards do not tell the trips apart.
    NoSignal,
}

/// Measurements of a learner step; see the metrics of the same names.
#[derive(Clone, Copy, Debug)]
pub struct LearnTerms {
    /// The loss.
    pub loss: f64,
    /// Mean over trips of Σₜ (log π − log π_ref), nats.
    pub kl: f64,
    /// Mean over tokens of the k3 estimate, nats.
    pub kl_k3: f64,
    /// Largest difference between a token's log-probability in training and in sampling, nats.
    pub log_prob_gap: f64,
    /// Mean of those differences, nats.
    pub log_prob_gap_mean: f64,
    /// The batch's advantages and weights.
    pub targets: TargetStatistics,
}

/// Sums over one micro-batch.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    loss: f64,
    kl: f64,
    k3: f64,
    gap: f64,
    gap_max: f64,
}

/// The gradient of `learner`'s loss on `batch`, whose rewards and values are `scored`, in the same order.
///
/// Trips whose target weighs nothing are left out of the passes and of what is measured in them.
pub fn learn_step(
    model: &Qwen2,
    reference: &Qwen2,
    learner: &dyn Learner,
    batch: &[Trajectory],
    scored: &[Scored],
    limit_tokens: usize,
) -> Result<LearnStep> {
    let Prepared::Learn(targets) = learner.prepare(scored)? else {
        return Ok(LearnStep::NoSignal);
    };
    let (taught, of_taught): (Vec<Trajectory>, Vec<Target>) = batch
        .iter()
        .zip(&targets)
        .filter(|(_, target)| target.weight > 0.0)
        .map(|(trip, target)| (trip.clone(), *target))
        .unzip();
    let packed = MicroBatch::pack(&taught, limit_tokens);
    let (gradients, sums) = accumulate(model, &packed, |micro, stats| {
        let reference = reference.score(&micro.tokens(), &micro.positions, &micro.targets)?.log_prob.detach();
        let of_members: Vec<_> = micro.members.iter().map(|&member| of_taught[member]).collect();
        let loss = summed_loss(learner, &of_members, &micro.n_targets, &stats.log_prob, &reference)?;
        let behaviour = micro.members.iter().flat_map(|&member| &taught[member].behaviour_log_probs);
        let sums = measure(&loss, &stats.log_prob, &reference, behaviour)?;
        Ok((loss, sums))
    })?;
    let n_tokens: usize = taught.iter().map(Trajectory::n_sampled).sum();
    let total = |field: fn(&Sums) -> f64| sums.iter().map(field).sum::<f64>();
    let terms = LearnTerms {
        loss: total(|sums| sums.loss),
        kl: total(|sums| sums.kl) / taught.len() as f64,
        kl_k3: total(|sums| sums.k3) / n_tokens as f64,
        log_prob_gap: sums.iter().map(|sums| sums.gap_max).fold(0.0, f64::max),
        log_prob_gap_mean: total(|sums| sums.gap) / n_tokens as f64,
        targets: TargetStatistics::of(&targets),
    };
    Ok(LearnStep::Learned(gradients, terms))
}

fn measure<'b>(
    loss: &Tensor,
    log_probs: &Tensor,
    reference: &Tensor,
    behaviour: impl Iterator<Item = &'b f32>,
) -> Result<Sums> {
    let log_probs = log_probs.to_vec1::<f32>()?;
    let reference = reference.to_vec1::<f32>()?;
    let mut sums = Sums { loss: f64::from(loss.to_scalar::<f32>()?), ..Sums::default() };
    for ((&log_prob, &reference), &sampled) in log_probs.iter().zip(&reference).zip(behaviour) {
        let ratio = f64::from(log_prob) - f64::from(reference);
        let gap = (f64::from(log_prob) - f64::from(sampled)).abs();
        sums.kl += ratio;
        sums.k3 += (-ratio).exp() - 1.0 + ratio;
        sums.gap += gap;
        sums.gap_max = sums.gap_max.max(gap);
    }
    Ok(sums)
}
