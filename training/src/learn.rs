//! One learner step on trips that were just made.
//!
//! targets → current and reference log-probabilities → loss → gradient. What the log shows of a step is measured here,
//! once.

use candle_core::Tensor;
use webshop_agent::{Qwen2, Sampler};

use crate::error::Result;
use crate::gradient::{Gradients, accumulate};
use crate::loss::{Learner, LogProbs, Target, TargetStatistics, Term, summed_loss};
use crate::trajectory::{MicroBatch, Trajectory};

/// Measurements of a learner step; see the metrics of the same names.
#[derive(Clone, Copy, Debug)]
pub struct LearnTerms {
    /// The loss.
    pub loss: f64,
    /// Mean over trips of Σₜ (log π − log π_ref), nats.
    pub kl: f64,
    /// Mean over tokens of the k3 estimate, nats.
    pub kl_k3: f64,
    /// Share of tokens whose gradient a clip took.
    pub clip_frac: f64,
    /// Largest difference between a token's log-probability in training and in sampling, nats.
    pub log_prob_gap: f64,
    /// Mean of those differences, nats.
    pub log_prob_gap_mean: f64,
    /// Share of tokens that the nucleus of the policy leaves out in training, and that of the reference; counted in.
    pub outside_nucleus: [f64; 2],
    /// The batch's advantages and weights.
    pub targets: TargetStatistics,
}

impl LearnTerms {
    /// The mean of the measurements of several optimizer steps, at least one; of the gaps the largest and the mean.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |field: fn(&Self) -> f64| all.iter().map(field).sum::<f64>() / all.len() as f64;
        Self {
            loss: mean(|terms| terms.loss),
            kl: mean(|terms| terms.kl),
            kl_k3: mean(|terms| terms.kl_k3),
            clip_frac: mean(|terms| terms.clip_frac),
            log_prob_gap: all.iter().map(|terms| terms.log_prob_gap).fold(0.0, f64::max),
            log_prob_gap_mean: mean(|terms| terms.log_prob_gap_mean),
            outside_nucleus: [mean(|terms| terms.outside_nucleus[0]), mean(|terms| terms.outside_nucleus[1])],
            targets: TargetStatistics {
                adv_mean: mean(|terms| terms.targets.adv_mean),
                adv_std: mean(|terms| terms.targets.adv_std),
                effective_samples: mean(|terms| terms.targets.effective_samples),
            },
        }
    }
}

/// Sums over one micro-batch.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    loss: f64,
    kl: f64,
    k3: f64,
    clipped: f64,
    gap: f64,
    gap_max: f64,
    outside: [usize; 2],
}

/// The gradient of `learner`'s loss on the trips of `batch`, of which each is to teach what stands at its place in
/// `targets`; `None` if none of them teaches anything. Their tokens were drawn by `sampler`: policy and reference are
/// scored under the same temperature and nucleus.
///
/// Trips whose target weighs nothing are left out of the passes and of what is measured in them.
pub fn learn_step(
    model: &Qwen2,
    reference: &Qwen2,
    learner: &dyn Learner,
    batch: &[Trajectory],
    targets: &[Target],
    (sampler, limit_tokens): (Sampler, usize),
) -> Result<Option<(Gradients, LearnTerms)>> {
    let pairs = batch.iter().zip(targets).filter(|(_, target)| target.is_taught());
    let (taught, of_taught): (Vec<Trajectory>, Vec<Target>) =
        pairs.map(|(trip, target)| (trip.clone(), target.clone())).unzip();
    if taught.is_empty() {
        return Ok(None);
    }
    let packed = MicroBatch::pack(&taught, limit_tokens);
    let (gradients, sums) = accumulate(model, &packed, sampler, |micro, stats| {
        let scored = reference.score(&micro.tokens(), &micro.positions, &micro.targets, sampler)?;
        let reference = scored.log_prob.detach();
        let of_members: Vec<_> = micro.members.iter().map(|&member| of_taught[member].clone()).collect();
        let behaviour = micro.members.iter().flat_map(|&member| &taught[member].behaviour_log_probs);
        let behaviour: Vec<f32> = behaviour.copied().collect();
        let behaviour = Tensor::from_vec(behaviour, micro.targets.len(), reference.device())?;
        let log_probs = LogProbs { policy: stats.log_prob.clone(), reference, behaviour };
        let loss = summed_loss(learner, &of_members, &log_probs)?;
        let outside = [stats.n_outside, scored.n_outside];
        let sums = Sums { outside, ..measure(&loss, &log_probs)? };
        Ok((loss.value, sums))
    })?;
    let n_tokens: usize = taught.iter().map(Trajectory::n_sampled).sum();
    let total = |field: fn(&Sums) -> f64| sums.iter().map(field).sum::<f64>();
    let terms = LearnTerms {
        loss: total(|sums| sums.loss),
        kl: total(|sums| sums.kl) / taught.len() as f64,
        kl_k3: total(|sums| sums.k3) / n_tokens as f64,
        clip_frac: total(|sums| sums.clipped) / n_tokens as f64,
        log_prob_gap: sums.iter().map(|sums| sums.gap_max).fold(0.0, f64::max),
        log_prob_gap_mean: total(|sums| sums.gap) / n_tokens as f64,
        outside_nucleus: [total(|sums| sums.outside[0] as f64), total(|sums| sums.outside[1] as f64)]
            .map(|count| count / n_tokens as f64),
        targets: TargetStatistics::of(targets),
    };
    Ok(Some((gradients, terms)))
}

fn measure(loss: &Term, log_probs: &LogProbs) -> Result<Sums> {
    let mut sums = Sums {
        loss: f64::from(loss.value.to_scalar::<f32>()?),
        clipped: loss.n_clipped as f64,
        ..Sums::default()
    };
    let read = |tensor: &Tensor| tensor.to_vec1::<f32>();
    let (policy, reference) = (read(&log_probs.policy)?, read(&log_probs.reference)?);
    for ((log_prob, reference), sampled) in policy.iter().zip(&reference).zip(read(&log_probs.behaviour)?) {
        let ratio = f64::from(*log_prob) - f64::from(*reference);
        let gap = (f64::from(*log_prob) - f64::from(sampled)).abs();
        sums.kl += ratio;
        sums.k3 += (-ratio).exp() - 1.0 + ratio;
        sums.gap += gap;
        sums.gap_max = sums.gap_max.max(gap);
    }
    Ok(sums)
}
