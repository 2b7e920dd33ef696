//! Without rewards there is no gradient: no loss moves the policy when the reward of every episode is 0, but for the
//! unguarded formula of weighted imitation, which imitates the policy's own episodes, and for a policy that is sampled
//! under one distribution and scored under another, which sharpens.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::common::cases;
use crate::common::experiment::{WARM_START, toy};
use webshop_lm::{Qwen2, Qwen2Config, Sampler};
use webshop_products::Seed;
use webshop_training::{
    Gradients, Metric, MicroBatch, Network, Silent, Trajectory, accumulate, branch_run, config::LossKind,
    read_records, train,
};

/// A loss with a group size and a refresh of V* that it accepts.
pub(crate) fn settings_of(loss: LossKind) -> [String; 3] {
    use LossKind::{ApoLagged, DrGrpo, Gigpo, Grpo, Gspo, Rloo};
    let is_by_group = matches!(loss, ApoLagged | Rloo | Grpo | DrGrpo | Gspo | Gigpo);
    let (group_size, refresh) = (if is_by_group { 4 } else { 1 }, if loss == ApoLagged { 2 } else { 0 });
    [
        format!("rl.loss.kind={loss}"),
        format!("value.refresh={refresh}"),
        format!("rl.group_size={group_size}"),
    ]
}

/// The weights before and after four batches under `settings`, all rewards 0, and the number of skipped steps.
fn learned(settings: &[String]) -> (Vec<u8>, Vec<u8>, f64) {
    let mut all = vec!["rl.reward=zero"];
    all.extend(settings.iter().map(String::as_str));
    let config = toy(&all);
    let keep = tempfile::tempdir().expect("a temporary folder");
    let run = branch_run(&WARM_START.1, &keep.path().join("run"), &config).expect("a branch");
    train(&config, &run, &Silent, &AtomicBool::new(false)).expect("a run to the end");
    let weights = |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights");
    let records = read_records(run.root(), "test").expect("metrics that read back");
    let skipped = records.iter().rev().find_map(|record| record.get(Metric::TrainSkippedNoSignal));
    (
        weights(&run.root().join("reference")),
        weights(&run.root().join("checkpoints/last/model")),
        skipped.unwrap_or_default(),
    )
}

#[test]
fn no_guarded_loss_moves_the_policy_without_a_reward() {
    // A loss by V*, a weighted imitation, a loss by groups, and one with ratios.
    let representative = [0, 2, 7, 11];
    for loss in cases(&LossKind::ALL, &representative) {
        let (before, after, skipped) = learned(&settings_of(loss));
        assert!(before == after, "`{loss}` moved");
        assert_eq!(skipped, 4.0, "`{loss}` counts the batches without a signal");
    }
}

#[test]
fn the_unguarded_formula_moves_the_policy_without_a_reward() {
    for weighting in cases(&["normalized", "exponential", "shifted"], &[0]) {
        let bare = ["rl.loss.kind=wsft".into(), "rl.loss.guarded=false".into()];
        let (before, after, skipped) =
            learned(&[&bare[..], &[format!("rl.loss.weighting={weighting}")]].concat());
        assert!(before != after, "{weighting}: the policy did not move");
        assert_eq!(skipped, 0.0, "{weighting}");
    }
}

const VOCABULARY: u32 = 50;
const PROMPT: [u32; 3] = [3, 1, 4];

/// A policy whose distribution is not uniform.
fn policy() -> Qwen2 {
    let model = Qwen2::random(&Qwen2Config::small(VOCABULARY as usize), Seed(0)).expect("a small shape");
    for (_, parameter) in model.learnable().iter().filter(|(name, _)| name.contains("embed")) {
        parameter.set(&(parameter.as_tensor() * 2.5).expect("values")).expect("values of the same shape");
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

/// The probability of each completion under `sampler`; those that it never draws have 0.
fn probabilities(model: &Qwen2, sampler: Sampler) -> Vec<f64> {
    let micro = &completions()[0];
    let scored = model
        .score(&micro.tokens(), &micro.positions, &micro.targets, sampler)
        .expect("scores of one prompt")
        .log_prob
        .to_vec1::<f32>()
        .expect("a vector");
    let p: Vec<f64> = scored.iter().map(|log_prob| f64::from(*log_prob).exp()).collect();
    // A nucleus is the likeliest tokens, whose probabilities are renormalized: what is beyond their sum of 1 is outside.
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

/// Imitates what `drawn` would draw, each completion as often as it would, scored under `scored`; returns the gradient's norm.
fn imitate(model: &Qwen2, drawn: Sampler, scored: Sampler, lr: f32) -> f64 {
    let often = probabilities(model, drawn);
    let network = Network::Cpu(Arc::new(model.clone()));
    let (gradients, _) = accumulate(&network, &completions(), scored, |_, stats| {
        let often: Vec<f32> = often.iter().map(|p| -*p as f32).collect();
        let often = candle_core::Tensor::new(often, stats.log_prob.device())?;
        Ok(((&stats.log_prob * often)?.sum_all()?, ()))
    })
    .expect("a gradient");
    let Gradients::Cpu(gradients) = gradients else { panic!("the gradient is on a device") };
    for ((_, parameter), gradient) in model.learnable().iter().zip(&gradients) {
        let step: Vec<f32> = gradient.iter().map(|g| -lr * g).collect();
        let step =
            candle_core::Tensor::from_vec(step, parameter.shape(), parameter.device()).expect("a shape");
        parameter.set(&(parameter.as_tensor() + step).expect("equal shapes")).expect("equal shapes");
    }
    gradients.iter().flatten().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn scoring_under_another_distribution_than_the_sampling_one_sharpens_the_policy() {
    let nucleus = Sampler::new(0.9, 0.95).expect("a sampler");
    // Scored as it was drawn, imitation of the policy itself has no gradient: E_q[∇ log q] = 0.
    let consistent = imitate(&policy(), nucleus, nucleus, 0.0);
    let inconsistent = imitate(&policy(), nucleus, Sampler::UNTEMPERED, 0.0);
    assert!(consistent < 1e-4 && inconsistent > 0.1, "{consistent} and {inconsistent}");

    let (sharpened, kept) = (policy(), policy());
    let before = entropy(&probabilities(&kept, Sampler::UNTEMPERED));
    for _ in 0..100 {
        imitate(&sharpened, nucleus, Sampler::UNTEMPERED, 1e-3);
        imitate(&kept, nucleus, nucleus, 1e-3);
    }
    let after = [&sharpened, &kept].map(|model| entropy(&probabilities(model, Sampler::UNTEMPERED)));
    assert!(before > 0.8 && after[0] < 0.7 * before, "{before} fell to {}", after[0]);
    assert!((after[1] - before).abs() < 0.01 * before, "{before} became {}", after[1]);
}
