//! One learner step on trips that were just made.
//!
//! rewards and V* → targets; current and reference log-probabilities → loss → gradient. What the log shows
//! of a step is measured here, once.

use candle_core::Tensor;
use webshop_agent::{Qwen2, Sampler};

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
    /// Share of tokens that the nucleus left out, and which were counted in: of the policy and of the reference.
    pub outside_nucleus: [f64; 2],
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
    outside: [usize; 2],
}

/// The gradient of `learner`'s loss on `batch`, whose rewards and values are `scored`, in the same order, and whose
/// tokens were drawn by `sampler`: policy and reference are scored under the same temperature and nucleus.
///
/// Trips whose target weighs nothing are left out of the passes and of what is measured in them.
pub fn learn_step(
    model: &Qwen2,
    reference: &Qwen2,
    learner: &dyn Learner,
    batch: &[Trajectory],
    scored: &[Scored],
    (sampler, limit_tokens): (Sampler, usize),
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
    let (gradients, sums) = accumulate(model, &packed, sampler, |micro, stats| {
        let scored = reference.score(&micro.tokens(), &micro.positions, &micro.targets, sampler)?;
        let reference = scored.log_prob.detach();
        let of_members: Vec<_> = micro.members.iter().map(|&member| of_taught[member]).collect();
        let loss = summed_loss(learner, &of_members, &micro.n_targets, &stats.log_prob, &reference)?;
        let behaviour = micro.members.iter().flat_map(|&member| &taught[member].behaviour_log_probs);
        let sums = measure(&loss, &stats.log_prob, &reference, behaviour)?;
        let outside = [stats.n_outside, scored.n_outside];
        Ok((loss, Sums { outside, ..sums }))
    })?;
    let n_tokens: usize = taught.iter().map(Trajectory::n_sampled).sum();
    let total = |field: fn(&Sums) -> f64| sums.iter().map(field).sum::<f64>();
    let terms = LearnTerms {
        loss: total(|sums| sums.loss),
        kl: total(|sums| sums.kl) / taught.len() as f64,
        kl_k3: total(|sums| sums.k3) / n_tokens as f64,
        log_prob_gap: sums.iter().map(|sums| sums.gap_max).fold(0.0, f64::max),
        log_prob_gap_mean: total(|sums| sums.gap) / n_tokens as f64,
        outside_nucleus: [total(|sums| sums.outside[0] as f64), total(|sums| sums.outside[1] as f64)]
            .map(|count| count / n_tokens as f64),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webshop_agent::{LmConfig, LmPolicy, Task, rollout};
    use webshop_products::Seed;

    use super::*;
    use crate::config::Config;
    use crate::loss::learner;
    use crate::setup::{lm_config, qwen2_config, rollout_config, train_tokenizer};
    use crate::{ground::Ground, setup::open_shop};

    /// Four trips of a random model, drawn by `sampler`.
    fn trips(sampler: Sampler) -> (Qwen2, Vec<Trajectory>) {
        let config = Config::default();
        let ground = Ground::new(open_shop(&config.catalog).unwrap(), 0, 0).unwrap();
        let tokenizer = train_tokenizer(&ground, &config).unwrap();
        let shape = qwen2_config(&config.model, tokenizer.vocab_size(), config.prompt.max_context);
        // As decided as a trained model is: at the end of a nucleus stands no crowd of tokens that rounding may tip.
        let model = Qwen2::random(&webshop_agent::Qwen2Config { initializer_range: 0.6, ..shape }, Seed(3));
        let model = model.unwrap();
        let lm = LmConfig { sampler, ..lm_config(&config, 1.0, 1.0).unwrap() };
        let decoder = Arc::new(model.decoder().unwrap());
        let mut policy = LmPolicy::new(decoder, &tokenizer, lm, Seed(5)).unwrap();
        let tasks: Vec<Task> = ground
            .sample(Seed(1), 4)
            .iter()
            .map(|goal| Task { shop: ground.shop_of(*goal).clone(), coordinates: goal.at(0, 0) })
            .collect();
        let episodes = rollout(&mut policy, &tasks, rollout_config(&config), &mut |_, _| ()).unwrap();
        (model, episodes.iter().filter_map(Trajectory::from_episode).collect())
    }

    fn terms(model: &Qwen2, batch: &[Trajectory], sampler: Sampler) -> LearnTerms {
        let scored: Vec<Scored> =
            (0..batch.len()).map(|i| Scored { reward: (i % 2) as f64, v_star: 0.5 }).collect();
        let learner = learner(&Config::default().learner);
        let step = learn_step(model, model, learner.as_ref(), batch, &scored, (sampler, 1024)).unwrap();
        match step {
            LearnStep::Learned(_, terms) => terms,
            LearnStep::NoSignal => panic!("rewards differ"),
        }
    }

    #[test]
    fn trips_are_scored_under_the_distribution_that_sampled_them() {
        for (temperature, top_p) in [(1.0, 1.0), (0.9, 0.95), (0.6, 0.5)] {
            let sampler = Sampler::new(temperature, top_p).unwrap();
            let (model, batch) = trips(sampler);
            assert!(batch.iter().map(Trajectory::n_sampled).sum::<usize>() > 500);
            let honest = terms(&model, &batch, sampler);
            assert!(honest.log_prob_gap < 1e-4, "{temperature} {top_p}: {}", honest.log_prob_gap);
            assert_eq!((honest.outside_nucleus, honest.kl), ([0.0; 2], 0.0));
            let plain = terms(&model, &batch, Sampler::PLAIN);
            assert_eq!(plain.log_prob_gap > 0.05, sampler != Sampler::PLAIN);
        }
    }
}
