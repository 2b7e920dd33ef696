//! Properties of every loss.

mod by_hand;

use candle_core::{Device, Tensor, Var};

use super::*;
use crate::loss::reinforce::Baseline;
use crate::loss::terms::KlEstimator;
use crate::loss::wsft::{Center, Weighting};

pub(super) const CLIP: Clip = Clip { low: 0.2, high: 0.28 };
pub(super) const NO_CLIP: OptionalClip = OptionalClip(None);
pub(super) const NO_KL: KlTerm = KlTerm::NONE;

/// Episodes of one token, each for a goal of its own, with (reward, V*).
pub(super) fn scored(pairs: &[(f64, f64)]) -> Vec<Scored> {
    let whole =
        |(group, &(reward, v_star)): (usize, &(f64, f64))| Scored::single_turn(group, reward, v_star, 1);
    pairs.iter().enumerate().map(whole).collect()
}

/// Episodes of one token with (group, reward).
pub(super) fn scored_in_groups(pairs: &[(usize, f64)]) -> Vec<Scored> {
    pairs.iter().map(|&(group, reward)| Scored::single_turn(group, reward, 0.0, 1)).collect()
}

pub(super) fn targets_of(loss_fn: &dyn Loss, batch: &[Scored]) -> Vec<Target> {
    match loss_fn.prepare(batch).unwrap() {
        Prepared::Learn(targets) => targets,
        Prepared::NoSignal => panic!("{} found no signal", loss_fn.name()),
    }
}

pub(super) fn targets(loss_fn: &dyn Loss, pairs: &[(f64, f64)]) -> Vec<Target> {
    targets_of(loss_fn, &scored(pairs))
}

pub(super) fn weights(loss_fn: &dyn Loss, pairs: &[(f64, f64)]) -> Vec<f64> {
    targets(loss_fn, pairs).iter().map(Target::weight).collect()
}

fn tensor(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, values.len(), &Device::Cpu).unwrap()
}

/// The loss and its gradient with respect to every log-probability of the policy.
pub(super) fn differentiate(
    loss_fn: &dyn Loss,
    targets: &[Target],
    policy: &[f64],
    reference: &[f64],
    behaviour: &[f64],
) -> (f64, Vec<f64>) {
    let var = Var::from_tensor(&tensor(policy)).unwrap();
    let log_probs = LogProbs {
        policy: var.as_tensor().clone(),
        reference: tensor(reference),
        behaviour: tensor(behaviour),
    };
    let loss = summed_loss(loss_fn, targets, &log_probs).unwrap().value;
    // candle drops a factor of 0 from the graph, so the gradient can be missing.
    let gradient = loss.backward().unwrap().remove(var.as_tensor());
    let gradient = gradient.map_or(vec![0.0; policy.len()], |gradient| gradient.to_vec1().unwrap());
    (loss.to_scalar().unwrap(), gradient)
}

/// Every loss, with every term it can have.
fn all() -> Vec<Box<dyn Loss>> {
    let mut all = with_values();
    all.push(Box::new(Apo { beta2: 0.1, ratio_clip: OptionalClip(Some(CLIP)) }));
    all
}

/// The losses whose gradient is that of their value; A*-PO's clip changes the gradient alone.
fn with_values() -> Vec<Box<dyn Loss>> {
    let kl = |estimator| KlTerm { coefficient: 0.1, estimator };
    let (k2, k3) = (kl(KlEstimator::K2), kl(KlEstimator::K3));
    let wsft = |weighting, center| Wsft {
        weighting,
        kl_coefficient: 0.02,
        advantage_clip: 3.0,
        beta: 0.5,
        center,
        guarded: true,
    };
    vec![
        Box::new(Apo { beta2: 0.1, ratio_clip: NO_CLIP }),
        Box::new(ApoLagged { beta1: 0.5, beta2: 0.1 }),
        Box::new(wsft(Weighting::Normalized, Center::Batch)),
        Box::new(wsft(Weighting::Normalized, Center::Prompt)),
        Box::new(wsft(Weighting::Shifted, Center::Batch)),
        Box::new(wsft(Weighting::Exponential, Center::Batch)),
        Box::new(Awr { beta: 0.5 }),
        Box::new(Raft { threshold: 0.5 }),
        Box::new(Reinforce { baseline: Baseline::None }),
        Box::new(Reinforce { baseline: Baseline::Batch }),
        Box::new(Reinforce { baseline: Baseline::Value }),
        Box::new(Rloo { kl: k2 }),
        Box::new(Grpo { clip: CLIP, kl: k3, min_std: 0.0 }),
        Box::new(DrGrpo { clip: CLIP, kl: k2 }),
        Box::new(Gspo { clip: CLIP, kl: NO_KL, min_std: 0.0 }),
        Box::new(Gigpo { clip: CLIP, kl: k3, min_std: 0.0, discount: 0.95, step_weight: 1.0 }),
        Box::new(Ppo { clip: CLIP, kl: k2, ..Ppo::default() }),
    ]
}

/// (group, reward, V*, tokens of each turn).
type Made = (usize, f64, f64, &'static [usize]);
const EPISODES: [Made; 8] = [
    (0, 1.0, 0.4, &[1]),
    (0, 0.0, 0.4, &[1, 2]),
    (1, 0.5, 0.1, &[2]),
    (1, 1.0, 0.1, &[2, 1, 1]),
    (2, 0.25, 0.7, &[1]),
    (2, 0.0, 0.7, &[1, 1]),
    (2, 1.0, 0.7, &[3, 2]),
    (1, 0.75, 0.1, &[1, 1]),
];

fn batch() -> Vec<Scored> {
    let episode = |&(group, reward, v_star, turns): &Made| {
        let turn = |(at, &n_tokens)| {
            let value = 0.1 * at as f64;
            ScoredTurn { v_next: Some(value), value, ..ScoredTurn::new(n_tokens, at as u64 % 2) }
        };
        Scored { group, reward, v_star, turns: turns.iter().enumerate().map(turn).collect() }
    };
    EPISODES.iter().map(episode).collect()
}

/// Log-probabilities of all 23 tokens under the policy, the reference, and the policy that sampled, which is so far from the first
/// that some tokens are clipped.
fn log_probs() -> [Vec<f64>; 3] {
    [numbers(0.0, 7), numbers(0.3, 7), numbers(0.0, 5).iter().map(|log_prob| 2.0 * log_prob).collect()]
}

fn numbers(offset: f64, stride: usize) -> Vec<f64> {
    let n: usize = batch().iter().map(Scored::n_tokens).sum();
    (0..n).map(|i| -0.05 - 0.03 * ((i * stride) % 11) as f64 - offset).collect()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let [policy, reference, behaviour] = log_probs();
    for loss_fn in with_values() {
        let targets = targets_of(&*loss_fn, &batch());
        let (_, gradient) = differentiate(&*loss_fn, &targets, &policy, &reference, &behaviour);
        assert!(gradient.iter().any(|slope| *slope != 0.0), "{}", loss_fn.name());
        for (i, &exact) in gradient.iter().enumerate() {
            const H: f64 = 1e-5;
            let at = |shift: f64| {
                let mut moved = policy.clone();
                moved[i] += shift;
                differentiate(&*loss_fn, &targets, &moved, &reference, &behaviour).0
            };
            let slope = (at(H) - at(-H)) / (2.0 * H);
            assert!((slope - exact).abs() < 1e-7, "{} token {i}: {slope} {exact}", loss_fn.name());
        }
    }
}

#[test]
fn every_clip_acts_on_some_of_these_tokens() {
    let [policy, reference, behaviour] = log_probs();
    let mut clipped = Vec::new();
    for loss_fn in all() {
        let log_probs = LogProbs {
            policy: tensor(&policy),
            reference: tensor(&reference),
            behaviour: tensor(&behaviour),
        };
        let term = summed_loss(&*loss_fn, &targets_of(&*loss_fn, &batch()), &log_probs).unwrap();
        if term.n_clipped > 0 {
            assert!(term.n_clipped < policy.len(), "{}", loss_fn.name());
            clipped.push(loss_fn.name());
        }
    }
    assert_eq!(clipped, ["grpo", "dr-grpo", "gspo", "gigpo", "ppo", "apo"]);
}

#[test]
fn one_pass_of_eight_equals_eight_passes_of_one() {
    let [policy, reference, behaviour] = log_probs();
    for loss_fn in all() {
        let targets = targets_of(&*loss_fn, &batch());
        let (whole, together) = differentiate(&*loss_fn, &targets, &policy, &reference, &behaviour);
        let (mut sum, mut apart, mut start) = (0.0, Vec::new(), 0);
        for target in &targets {
            let tokens = start..start + target.n_tokens();
            start = tokens.end;
            let part = |values: &[f64]| values[tokens.clone()].to_vec();
            let one = std::slice::from_ref(target);
            let (share, gradient) =
                differentiate(&*loss_fn, one, &part(&policy), &part(&reference), &part(&behaviour));
            sum += share;
            apart.extend(gradient);
        }
        assert_eq!(together, apart, "{}", loss_fn.name());
        assert!((whole - sum).abs() < 1e-12, "{}", loss_fn.name());
    }
}

#[test]
fn the_gradient_does_not_depend_on_the_order_of_the_batch() {
    let [policy, reference, behaviour] = log_probs();
    for loss_fn in all() {
        let (forward, mut backward) = (batch(), batch());
        backward.reverse();
        let turned = |values: &[f64]| {
            let mut parts: Vec<&[f64]> = Vec::new();
            let mut rest = values;
            for episode in &forward {
                let (part, after) = rest.split_at(episode.n_tokens());
                parts.push(part);
                rest = after;
            }
            parts.reverse();
            parts.concat()
        };
        let (loss, gradient) =
            differentiate(&*loss_fn, &targets_of(&*loss_fn, &forward), &policy, &reference, &behaviour);
        let (other, other_gradient) = differentiate(
            &*loss_fn,
            &targets_of(&*loss_fn, &backward),
            &turned(&policy),
            &turned(&reference),
            &turned(&behaviour),
        );
        assert!((loss - other).abs() < 1e-12, "{}", loss_fn.name());
        for (a, b) in turned(&gradient).iter().zip(&other_gradient) {
            assert!((a - b).abs() < 1e-12, "{}", loss_fn.name());
        }
    }
}

#[test]
fn rewards_equal_to_the_baseline_are_no_signal() {
    // Every reward equals V*, the mean of its group and the critic's value.
    let mut same: Vec<Scored> = (0..4).map(|i| Scored::single_turn(i / 2, 0.5, 0.5, 1)).collect();
    same.iter_mut().for_each(|scored| scored.turns[0].value = 0.5);
    for loss_fn in all().iter().filter(|loss_fn| loss_fn.advantage_source() != AdvantageSource::Reward) {
        assert_eq!(loss_fn.prepare(&same).unwrap(), Prepared::NoSignal, "{}", loss_fn.name());
    }
}

#[test]
fn a_batch_of_failures_has_no_gradient() {
    let failures: Vec<Scored> = (0..8).map(|i| Scored::single_turn(i / 4, 0.0, 0.0, 1)).collect();
    for loss_fn in all() {
        assert_eq!(loss_fn.prepare(&failures).unwrap(), Prepared::NoSignal, "{}", loss_fn.name());
    }
}

#[test]
fn a_single_episode_has_a_signal_or_an_error() {
    let alone = [Scored::single_turn(0, 1.0, 0.5, 1)];
    let mut without_signal = Vec::new();
    for loss_fn in all() {
        match loss_fn.prepare(&alone) {
            Ok(Prepared::Learn(targets)) => {
                let (_, gradient) = differentiate(&*loss_fn, &targets, &[-1.0], &[-1.0], &[-1.0]);
                assert!(gradient[0] < 0.0, "{}: a success is made more likely", loss_fn.name());
            }
            // The mean of one value is that value.
            Ok(Prepared::NoSignal) => without_signal.push(loss_fn.name()),
            Err(error) => {
                assert_eq!(loss_fn.advantage_source(), AdvantageSource::Group);
                assert!(error.to_string().contains("rl.group_size"), "{error}");
            }
        }
    }
    // The exponential of `wsft` and the baseline of the batch for `reinforce`.
    assert_eq!(without_signal, ["wsft", "awr", "reinforce"]);
}

#[test]
fn unusable_batches_are_errors() {
    for loss_fn in all() {
        assert!(loss_fn.prepare(&[]).is_err());
        let error = loss_fn.prepare(&scored(&[(1.0, 0.5), (f64::NAN, 0.5)])).unwrap_err().to_string();
        let expected = format!("loss `{}`: episode 1: reward is NaN", loss_fn.name());
        assert_eq!(error, expected);
        let mut unknown = [scored(&[(1.0, f64::INFINITY)]), scored(&[(1.0, 0.5)])];
        unknown[1][0].turns[0].value = f64::NAN;
        let problems = ["V* is inf", "the critic's value of turn 1 is NaN"];
        for (batch, problem) in unknown.iter().zip(problems) {
            let error = loss_fn.prepare(batch).unwrap_err().to_string();
            assert_eq!(error, format!("loss `{}`: episode 0: {problem}", loss_fn.name()));
        }
        let one = tensor(&[-1.0]);
        let log_probs = LogProbs { policy: one.clone(), reference: one.clone(), behaviour: one };
        let target = |n_tokens| Target::whole(n_tokens, 1.0, 1.0, 1.0);
        assert!(summed_loss(&*loss_fn, &[target(1), target(0)], &log_probs).is_err());
        assert!(summed_loss(&*loss_fn, &[target(2)], &log_probs).is_err());
    }
}
