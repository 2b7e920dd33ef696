//! The gradient of a loss on one batch of rollouts, and the statistics of an update.
//!
//! Targets → log-probabilities under policy and reference → loss → gradient. The squared error of a critic's values
//! adds its gradient at the hidden states.

use candle_core::Tensor;
use webshop_lm::{HiddenGradient, OutputGradients, Sampler};

use crate::data::trajectory::Trajectory;
use crate::error::Result;
use crate::loss::{LogProbs, Loss, Target, Term, summed_loss};
use crate::model::critic::{HeadGradient, ValueHead, ValueTarget, first_tokens};
use crate::model::gradient::{Gradients, Recorded, accumulate_outputs};
use crate::model::network::Network;

/// Measurements of an optimizer step on the episodes that it trains on, before the step, or their mean over the
/// optimizer steps of an RL step; see the metrics of the same names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateStatistics {
    /// The loss.
    pub(crate) loss: f64,
    /// Mean over the trained episodes, those whose target has a weight, of Σₜ (log π − log π_ref), nats.
    pub(crate) kl: f64,
    /// Mean over tokens of the k3 estimate, nats.
    pub(crate) kl_k3: f64,
    /// Share of tokens whose gradient is 0 because of the clip.
    pub(crate) clipfrac: f64,
    /// Largest difference between a token's log-probability in training and in sampling, nats.
    pub(crate) log_prob_gap: f64,
    /// Mean of those differences, nats.
    pub(crate) log_prob_gap_mean: f64,
    /// Share of sampled tokens outside the nucleus of the policy in training, and outside that of the
    /// reference. They are trained on all the same.
    pub(crate) outside_nucleus: [f64; 2],
}

impl UpdateStatistics {
    /// Mean of the measurements of several optimizer steps, at least one; `log_prob_gap` is the maximum.
    pub(crate) fn mean(all: &[Self]) -> Self {
        let mean = |field: fn(&Self) -> f64| all.iter().map(field).sum::<f64>() / all.len() as f64;
        Self {
            loss: mean(|terms| terms.loss),
            kl: mean(|terms| terms.kl),
            kl_k3: mean(|terms| terms.kl_k3),
            clipfrac: mean(|terms| terms.clipfrac),
            log_prob_gap: all.iter().map(|terms| terms.log_prob_gap).fold(0.0, f64::max),
            log_prob_gap_mean: mean(|terms| terms.log_prob_gap_mean),
            outside_nucleus: [mean(|terms| terms.outside_nucleus[0]), mean(|terms| terms.outside_nucleus[1])],
        }
    }
}

/// How log-probabilities are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scoring {
    /// The distribution that sampled the tokens; policy and reference are scored under its temperature and
    /// nucleus.
    pub(crate) sampler: Sampler,
    /// Tokens of a micro-batch.
    pub(crate) limit_tokens: usize,
}

/// A critic that learns beside the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CriticLoss<'c> {
    /// Its weights.
    pub(crate) head: &'c ValueHead,
    /// Weight of its squared error in the gradient of the policy's weights.
    pub(crate) coefficient: f64,
}

/// The gradient of one minibatch.
#[derive(Debug)]
pub(crate) struct LossGradient {
    /// Of the policy's weights.
    pub(crate) gradients: Gradients,
    /// Of the critic's weights, if there is a critic.
    pub(crate) critic: Option<CriticGradient>,
    /// What was measured on the way; `None` if it is the gradient of demonstrations alone.
    pub(crate) statistics: Option<UpdateStatistics>,
    /// Tokens of the prompts and completions that it was computed from; those left out are not counted.
    pub(crate) n_tokens: usize,
}

/// The squared error of a critic's values on a minibatch, mean over turns, then over episodes.
#[derive(Debug)]
pub(crate) struct CriticGradient {
    /// The error.
    pub(crate) loss: f64,
    /// Its gradient.
    pub(crate) gradient: HeadGradient,
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

/// Gradient of `loss` over `batch`, where `targets[i]` belongs to `batch[i]`, and of the error of `critic` if there
/// is one. `None` if every target has weight 0.
///
/// Trajectories whose target has weight 0 are left out of the passes and of the statistics that passes
/// measure. On the CPU backend a prompt that several completions share is computed once per micro-batch.
pub(crate) fn loss_gradient(
    policy: &Network,
    reference: &Network,
    loss: &dyn Loss,
    batch: &[Trajectory],
    targets: &[Target],
    critic: Option<CriticLoss<'_>>,
    Scoring { sampler, limit_tokens }: Scoring,
) -> Result<Option<LossGradient>> {
    let pairs = batch.iter().zip(targets).filter(|(_, target)| target.has_weight());
    let (trained, of_trained): (Vec<Trajectory>, Vec<Target>) =
        pairs.map(|(trajectory, target)| (trajectory.clone(), target.clone())).unzip();
    if trained.is_empty() {
        return Ok(None);
    }
    let packed = policy.pack(&trained, limit_tokens);
    let (gradients, reports) = accumulate_outputs(policy, &packed, sampler, |micro, pass| {
        let stats = pass.stats();
        let scored = reference.score(micro, sampler)?;
        let reference = scored.log_prob.detach();
        let of_members: Vec<_> = micro.members.iter().map(|&member| of_trained[member].clone()).collect();
        let behaviour = micro.members.iter().flat_map(|&member| &trained[member].behaviour_log_probs);
        let behaviour: Vec<f32> = behaviour.copied().collect();
        let behaviour = Tensor::from_vec(behaviour, micro.targets.len(), reference.device())?;
        let log_probs = LogProbs { policy: stats.log_prob.clone(), reference, behaviour };
        let term = summed_loss(loss, &of_members, &log_probs)?;
        let outside = [stats.n_outside, scored.n_outside];
        let sums = Sums { outside, ..measure(&term, &log_probs)? };
        let mut outputs = OutputGradients::from(stats.d_log_prob(&term.value)?);
        let error = critic.map(|critic| value_error(critic, pass, &of_members, &mut outputs)).transpose()?;
        Ok((outputs, (sums, error)))
    })?;
    let (sums, errors): (Vec<Sums>, Vec<Option<CriticGradient>>) = reports.into_iter().unzip();
    let critic = errors.into_iter().flatten().reduce(|mut sum, error| {
        sum.loss += error.loss;
        sum.gradient.add(&error.gradient);
        sum
    });
    let n_tokens: usize = trained.iter().map(Trajectory::n_sampled).sum();
    let total = |field: fn(&Sums) -> f64| sums.iter().map(field).sum::<f64>();
    let statistics = Some(UpdateStatistics {
        loss: total(|sums| sums.loss),
        kl: total(|sums| sums.kl) / trained.len() as f64,
        kl_k3: total(|sums| sums.k3) / n_tokens as f64,
        clipfrac: total(|sums| sums.clipped) / n_tokens as f64,
        log_prob_gap: sums.iter().map(|sums| sums.gap_max).fold(0.0, f64::max),
        log_prob_gap_mean: total(|sums| sums.gap) / n_tokens as f64,
        outside_nucleus: [total(|sums| sums.outside[0] as f64), total(|sums| sums.outside[1] as f64)]
            .map(|count| count / n_tokens as f64),
    });
    let n_tokens = trained.iter().map(|trajectory| trajectory.ids.len()).sum();
    Ok(Some(LossGradient { gradients, critic, statistics, n_tokens }))
}

/// The squared error of a critic's values on a micro-batch; adds its gradient at the hidden states to `outputs`.
/// `targets` are those of the members, with returns.
fn value_error(
    CriticLoss { head, coefficient }: CriticLoss<'_>,
    pass: &Recorded<'_>,
    targets: &[Target],
    outputs: &mut OutputGradients,
) -> Result<CriticGradient> {
    let rows = first_tokens(targets.iter().flat_map(|target| target.segments.iter().map(|s| s.n_tokens)));
    let of_target = |target: &Target| {
        let share = target.share / target.returns.len() as f64;
        let returns = target.returns.clone();
        returns.into_iter().map(move |value_return| ValueTarget { value_return, share })
    };
    let turns: Vec<ValueTarget> = targets.iter().flat_map(of_target).collect();
    let error = head.squared_error(&pass.hidden_states(&rows)?, &turns);
    if coefficient > 0.0 {
        let values = error.d_hidden.iter().map(|slope| coefficient as f32 * slope).collect();
        outputs.d_hidden = Some(HiddenGradient { rows, values });
    }
    Ok(CriticGradient { loss: error.loss, gradient: error.gradient })
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
        sums.k3 += libm::exp(-ratio) - 1.0 + ratio;
        sums.gap += gap;
        sums.gap_max = sums.gap_max.max(gap);
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
    use webshop_lm::{Qwen2, Qwen2Config};
    use webshop_products::Seed;

    use super::*;
    use crate::config::{Method, OptimizerConfig};
    use crate::data::trajectory::MicroBatch;
    use crate::loss::terms::KlEstimator;
    use crate::loss::{Apo, Clip, Grpo, KlTerm, Ppo, Segment};
    use crate::model::critic::Critic;
    use crate::model::train_state::TrainState;
    use crate::optimizer::{StepOutcome, UpdateConfig};

    #[test]
    fn measurements_follow_their_formulas() {
        let row = |values: [f32; 2]| Tensor::from_slice(&values, 2, &candle_core::Device::Cpu).unwrap();
        let log_probs = LogProbs {
            policy: row([-1.0, -2.0]),
            reference: row([-1.5, -1.0]),
            behaviour: row([-1.0, -2.25]),
        };
        let loss = Term { value: row([0.75, 0.0]).get(0).unwrap(), n_clipped: 3 };
        let sums = measure(&loss, &log_probs).unwrap();
        assert_eq!((sums.loss, sums.clipped), (0.75, 3.0));
        // Policy minus reference: .5 and −1; policy minus sampled: 0 and .25.
        assert_eq!((sums.kl, sums.gap, sums.gap_max), (-0.5, 0.25, 0.25));
        let k3 = (-0.5_f64).exp() - 1.0 + 0.5 + 1.0_f64.exp() - 1.0 - 1.0;
        assert!((sums.k3 - k3).abs() < 1e-12, "{} instead of {k3}", sums.k3);
    }

    fn trajectory(salt: u32, log_prob: f32) -> Trajectory {
        let ids = |n: u32, by: u32| (0..n).map(|at| (at * by + salt) % 50).collect::<Vec<u32>>();
        let mut trajectory = Trajectory::new();
        for turn in 1..3 {
            trajectory.push_observation(&ids(5 * turn, 7));
            trajectory.push_completion(&ids(4, 11 * turn), &[log_prob; 4]);
        }
        trajectory
    }

    /// One loss gradient and one optimizer step on the backend of `choice`: the measurements, the gradient
    /// norm and the new weights.
    fn step(choice: KernelChoice, loss_fn: &dyn Loss) -> (UpdateStatistics, f64, Qwen2) {
        let config = Qwen2Config { hidden_size: 32, num_hidden_layers: 2, ..Qwen2Config::small(50) };
        let [model, reference] = [1, 2].map(|seed| Qwen2::random(&config, Seed(seed)).unwrap());
        let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
        let optimizer = OptimizerConfig { epsilon: 1e-4, ..OptimizerConfig::default() };
        let mut train_state = TrainState::new(&model, &compute, Method::Adamw, &optimizer).unwrap();
        let reference = Network::new(&reference, &compute).unwrap();
        let batch: Vec<Trajectory> = (0..4).map(|salt| trajectory(salt, -3.5 - salt as f32 * 0.3)).collect();
        let targets: Vec<Target> = [0.5, -0.4, 0.0, 1.0]
            .map(|advantage| Target::whole(8, advantage, f64::from(u8::from(advantage != 0.0)), 0.25))
            .into();
        let how = Scoring { sampler: Sampler::new(0.9, 0.7).unwrap(), limit_tokens: 60 };
        let LossGradient { gradients, statistics, n_tokens, .. } =
            loss_gradient(train_state.network(), &reference, loss_fn, &batch, &targets, None, how)
                .unwrap()
                .unwrap();
        // Of the four trajectories of 5 + 4 + 10 + 4 tokens, the third has no weight and is not trained on.
        assert_eq!(n_tokens, 3 * 23);
        let update = UpdateConfig { lr: 1e-2, grad_clip: 0.5 };
        let StepOutcome::Stepped { grad_norm } = train_state.step(gradients, update).unwrap() else {
            panic!("the gradient is not finite");
        };
        train_state.copy_to_host(&model).unwrap();
        (statistics.expect("the batch has weights"), grad_norm, model)
    }

    #[test]
    fn a_step_is_the_same_on_both_backends() {
        let kl = KlTerm { coefficient: 0.1, estimator: KlEstimator::K3 };
        let loss_fns: [&dyn Loss; 2] = [
            &Apo { beta2: 0.1, ..Apo::default() },
            &Grpo { clip: Clip { low: 0.2, high: 0.28 }, kl, min_std: 0.0 },
        ];
        for loss_fn in loss_fns {
            let (ours, our_norm, our_weights) = step(KernelChoice::Reference, loss_fn);
            let (theirs, their_norm, their_weights) = step(KernelChoice::Custom, loss_fn);
            // Log-probabilities of a few nats are accurate to 1e-6; sums of them to a relative error of 1e-4.
            for (name, ours, theirs) in [
                ("loss", ours.loss, theirs.loss),
                ("kl", ours.kl, theirs.kl),
                ("k3", ours.kl_k3, theirs.kl_k3),
                ("gap", ours.log_prob_gap, theirs.log_prob_gap),
                ("norm", our_norm, their_norm),
            ] {
                let name = format!("{}, {name}", loss_fn.name());
                assert!((ours - theirs).abs() < 1e-4 * theirs.abs(), "{name}: {ours} against {theirs}");
            }
            assert_eq!(ours.clipfrac, theirs.clipfrac);
            assert_eq!(ours.outside_nucleus, theirs.outside_nucleus);
            assert!(theirs.outside_nucleus[0] > 0.0, "some tokens are outside the nucleus");
            for ((name, a), (_, b)) in our_weights.parameters().iter().zip(their_weights.parameters()) {
                let apart = (a.as_tensor() - b.as_tensor()).unwrap().abs().unwrap().flatten_all().unwrap();
                let apart = apart.max(0).unwrap().to_scalar::<f32>().unwrap();
                // A step of .01 at most: an ε above the noise of the gradient keeps its sign from deciding.
                assert!(apart < 1e-4, "{}, `{name}`: {apart}", loss_fn.name());
            }
        }
    }

    /// A critic whose values are not 0.
    fn critic(width: usize) -> ValueHead {
        let mut critic = Critic::new(width, &OptimizerConfig::default()).unwrap();
        let states: Vec<f32> = (0..width).map(|i| (i as f32).sin()).collect();
        let target = ValueTarget { value_return: 1.0, share: 1.0 };
        let error = critic.head().unwrap().squared_error(&states, &[target]);
        critic.step(&error.gradient, 0.5).unwrap();
        critic.head().unwrap()
    }

    /// The critic's error before and after one step of the policy, which has no advantages, and the gradient norm.
    fn errors_around_a_step(choice: KernelChoice, coefficient: f64) -> ([f64; 2], f64) {
        let config = Qwen2Config { hidden_size: 32, num_hidden_layers: 2, ..Qwen2Config::small(50) };
        let model = Qwen2::random(&config, Seed(1)).unwrap();
        let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
        let (method, optimizer) = (Method::Adamw, OptimizerConfig::default());
        let mut train_state = TrainState::new(&model, &compute, method, &optimizer).unwrap();
        let reference = Network::new(&model.frozen_copy().unwrap(), &compute).unwrap();
        let batch: Vec<Trajectory> = (0..4).map(|salt| trajectory(salt, -3.5)).collect();
        let segment = Segment { n_tokens: 4, advantage: 0.0, weight: 1.0 };
        let target =
            |returns: [f64; 2]| Target { returns: returns.into(), ..Target::new(vec![segment; 2], 0.25) };
        let targets = [[0.0, 2.0], [1.0, 1.0], [3.0, 0.0], [0.5, 0.0]].map(target);
        let scoring = Scoring { sampler: Sampler::UNTEMPERED, limit_tokens: 60 };
        let (loss_fn, head) = (Ppo { kl: KlTerm::NONE, ..Ppo::default() }, critic(32));
        let measure = |policy: &Network| {
            let critic = Some(CriticLoss { head: &head, coefficient });
            loss_gradient(policy, &reference, &loss_fn, &batch, &targets, critic, scoring).unwrap().unwrap()
        };
        let LossGradient { gradients, critic: before, .. } = measure(train_state.network());
        let update = UpdateConfig { lr: 1e-3, grad_clip: 0.0 };
        let StepOutcome::Stepped { grad_norm } = train_state.step(gradients, update).unwrap() else {
            panic!("the gradient is not finite");
        };
        let after = measure(train_state.network()).critic;
        ([before, after].map(|error| error.unwrap().loss), grad_norm)
    }

    #[test]
    fn the_error_of_the_critic_moves_the_policy_by_its_coefficient_on_both_backends() {
        let both = [KernelChoice::Custom, KernelChoice::Reference];
        let [cpu, device] = both.map(|choice| errors_around_a_step(choice, 1.0));
        assert!(cpu.0[1] < cpu.0[0], "a step against the gradient reduces the error: {cpu:?}");
        for (ours, theirs) in [(cpu.0[0], device.0[0]), (cpu.0[1], device.0[1]), (cpu.1, device.1)] {
            assert!((ours - theirs).abs() < 1e-4 * theirs.abs(), "{cpu:?} against {device:?}");
        }
        let half = errors_around_a_step(KernelChoice::Custom, 0.5);
        assert!((half.1 - 0.5 * cpu.1).abs() < 1e-4 * cpu.1, "{} of {}", half.1, cpu.1);
        for choice in both {
            let (errors, norm) = errors_around_a_step(choice, 0.0);
            // Nothing else has a gradient; AdamW decays weights a little all the same.
            assert!(norm == 0.0 && (errors[0] - errors[1]).abs() < 1e-3, "{choice:?}: {errors:?}, {norm}");
        }
    }

    #[test]
    fn gradients_of_another_backend_are_refused() {
        let model = Qwen2::random(&Qwen2Config::small(50), Seed(1)).unwrap();
        let [mut cpu, device] = [KernelChoice::Custom, KernelChoice::Reference].map(|choice| {
            let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
            TrainState::new(&model, &compute, Method::Adamw, &OptimizerConfig::default()).unwrap()
        });
        let packed = MicroBatch::pack(&[trajectory(1, -1.0)], 100);
        let (gradients, _) = accumulate_outputs(device.network(), &packed, Sampler::UNTEMPERED, |_, pass| {
            Ok((vec![1.0; pass.stats().entropy.len()].into(), ()))
        })
        .unwrap();
        let error = cpu.step(gradients, UpdateConfig { lr: 0.1, grad_clip: 0.0 }).unwrap_err().to_string();
        assert!(error.contains("another backend"), "{error}");
    }
}
