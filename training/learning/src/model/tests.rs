//! A policy that is sampled under one distribution and scored under another sharpens without any reward.

use std::sync::Arc;

use candle_core::Tensor;
use webshop_lm::{Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;

use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::model::gradient::{Gradients, accumulate};
use crate::model::network::Network;

const VOCABULARY: u32 = 50;
const PROMPT: [u32; 3] = [3, 1, 4];

/// A policy whose distribution is not uniform.
fn policy() -> Qwen2 {
    let model = Qwen2::random(&Qwen2Config::small(VOCABULARY as usize), Seed(0)).unwrap();
    for (_, parameter) in model.learnable().iter().filter(|(name, _)| name.contains("embed")) {
        parameter.set(&(parameter.as_tensor() * 2.5).unwrap()).unwrap();
    }
    model
}

/// One completion of each token to the same prompt.
fn completions() -> Vec<MicroBatch> {
    let completion = |id| {
        let mut trajectory = Trajectory::new();
        trajectory.push_observation(&PROMPT);
        trajectory.push_completion(&[id], &[0.0]);
        trajectory
    };
    MicroBatch::pack(&(0..VOCABULARY).map(completion).collect::<Vec<_>>(), usize::MAX)
}

/// The probability of each completion under `sampler`; 0 for those that it never draws.
fn probabilities(model: &Qwen2, sampler: Sampler) -> Vec<f64> {
    let micro = &completions()[0];
    let scored = model
        .score(&micro.tokens(), &micro.positions, &micro.targets, sampler)
        .unwrap()
        .log_prob
        .to_vec1::<f32>()
        .unwrap();
    let p: Vec<f64> = scored.iter().map(|log_prob| f64::from(*log_prob).exp()).collect();
    // The tokens of a nucleus are the most probable ones, renormalized to a sum of 1; the others are outside.
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
    let mut sum = 0.0;
    let mut inside = vec![0.0; p.len()];
    for id in order {
        if sum < 1.0 - 1e-4 {
            inside[id] = p[id];
            sum += p[id];
        }
    }
    inside
}

fn entropy(p: &[f64]) -> f64 {
    -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
}

/// One step of imitation of the completions that `drawn` draws, each weighted by its probability and scored
/// under `scored`. Returns the norm of the gradient.
fn imitate(model: &Qwen2, drawn: Sampler, scored: Sampler, lr: f32) -> f64 {
    let weights = probabilities(model, drawn);
    let network = Network::Cpu(Arc::new(model.clone()));
    let (gradients, _) = accumulate(&network, &completions(), scored, |_, stats| {
        let weights: Vec<f32> = weights.iter().map(|p| -*p as f32).collect();
        let weights = Tensor::new(weights, stats.log_prob.device())?;
        Ok(((&stats.log_prob * weights)?.sum_all()?, ()))
    })
    .unwrap();
    let Gradients::Cpu(gradients) = gradients else { panic!("the gradient is on a device") };
    for ((_, parameter), gradient) in model.learnable().iter().zip(&gradients) {
        let step: Vec<f32> = gradient.iter().map(|g| -lr * g).collect();
        let step = Tensor::from_vec(step, parameter.shape(), parameter.device()).unwrap();
        parameter.set(&(parameter.as_tensor() + step).unwrap()).unwrap();
    }
    gradients.iter().flatten().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn scoring_under_another_distribution_than_the_sampling_one_sharpens_the_policy() {
    let nucleus = Sampler::new(0.9, 0.95).unwrap();
    // Scored as it was drawn, imitation of the policy itself has no gradient: E_q[∇ log q] = 0.
    let consistent = imitate(&policy(), nucleus, nucleus, 0.0);
    let inconsistent = imitate(&policy(), nucleus, Sampler::UNTEMPERED, 0.0);
    assert!(consistent < 1e-4 && inconsistent > 0.1, "{consistent} and {inconsistent}");

    let (sharpened, kept) = (policy(), policy());
    let before = entropy(&probabilities(&kept, Sampler::UNTEMPERED));
    for _ in 0..25 {
        imitate(&sharpened, nucleus, Sampler::UNTEMPERED, 4e-3);
        imitate(&kept, nucleus, nucleus, 4e-3);
    }
    let after = [&sharpened, &kept].map(|model| entropy(&probabilities(model, Sampler::UNTEMPERED)));
    assert!(before > 0.8 && after[0] < 0.7 * before, "{before} fell to {}", after[0]);
    assert!((after[1] - before).abs() < 0.01 * before, "{before} became {}", after[1]);
}
