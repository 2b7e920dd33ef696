//! Gradients of a batch, on both backends.
//!
//! [`accumulate`] adds up the gradients of micro-batches, whose split is fixed by the batch alone
//! ([`MicroBatch::pack`]), in their order. On the CPU micro-batches are independent: each is computed on one
//! thread, forward and backward, so the result does not depend on the number of threads. A wide model splits
//! its matrix products among the threads instead, one micro-batch after another, and adds each parameter's
//! gradient as soon as it is finished: memory holds the sum and one gradient, and the sums have the same
//! bits. On a device the sum stays there, and each pass adds to it.
//!
//! The loss is computed on the host from log-probabilities on both backends, a few numbers per token, and from
//! the hidden states that it asks for.

use candle_core::Tensor;
use rayon::prelude::*;
use webshop_kernels::cpu::rows::add_rows;
use webshop_lm::device::{DeviceModel, DevicePass, Parameters};
use webshop_lm::{OutputGradients, Pass, Qwen2, Sampler, TokenStats};

use crate::data::trajectory::MicroBatch;
use crate::error::{Result, TrainingError};
use crate::model::network::Network;

/// The gradient of all trained parameters, on the device of the weights.
#[derive(Debug)]
pub(crate) enum Gradients {
    /// One flat f32 gradient per trained parameter, in the order of [`Qwen2::learnable`].
    Cpu(Vec<Vec<f32>>),
    /// f32, joined as the weights are.
    Device(Parameters),
}

impl Gradients {
    /// self ← (1 − share) · self + share · other. Fails for gradients of different backends.
    pub(crate) fn mix(&mut self, share: f64, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Cpu(own), Self::Cpu(other)) => {
                for (own, other) in own.iter_mut().flatten().zip(other.iter().flatten()) {
                    *own = (1.0 - share) as f32 * *own + share as f32 * other;
                }
            }
            (Self::Device(own), Self::Device(other)) => {
                for ((_, own), (_, other)) in own.named().zip(other.named()) {
                    own.slice_set(&((own * (1.0 - share))? + (other * share)?)?, 0, 0)?;
                }
            }
            _ => {
                let problem = "the two gradients are of different backends".into();
                return Err(TrainingError::ParameterMismatch { name: "*".into(), problem });
            }
        }
        Ok(())
    }
}

/// Number of micro-batches of a small model whose gradients are in memory at once; does not change the
/// result.
pub(crate) const WAVE: usize = 8;

/// Number of values that one thread adds at a time.
const PIECE: usize = 1 << 18;

/// A recorded pass over a micro-batch.
pub(crate) enum Recorded<'p> {
    Cpu(&'p Pass<'p>),
    Device(&'p DevicePass<'p>, &'p TokenStats),
}

impl Recorded<'_> {
    /// The log-probabilities of its targets.
    pub(crate) fn stats(&self) -> &TokenStats {
        match self {
            Self::Cpu(pass) => pass.stats(),
            Self::Device(_, stats) => stats,
        }
    }

    /// The final hidden states that predict the targets of these numbers, concatenated. `[R, D]`
    pub(crate) fn hidden_states(&self, targets: &[u32]) -> Result<Vec<f32>> {
        Ok(match self {
            Self::Cpu(pass) => pass.hidden_states(targets)?,
            Self::Device(pass, _) => pass.hidden_states(targets)?,
        })
    }
}

/// The gradient of `loss` summed over all micro-batches, with its report for each of them, in order.
///
/// `loss` gets a micro-batch and the log-probabilities of its targets `[N]` under the distribution of
/// `sampler`. It returns its share of the batch's loss as a scalar tensor, and a report of any type.
/// Parameters that the loss does not depend on have a zero gradient.
pub(crate) fn accumulate<F, R>(
    network: &Network,
    micro_batches: &[MicroBatch],
    sampler: Sampler,
    loss: F,
) -> Result<(Gradients, Vec<R>)>
where
    F: Fn(&MicroBatch, &TokenStats) -> Result<(Tensor, R)> + Sync,
    R: Send,
{
    accumulate_outputs(network, micro_batches, sampler, of_log_probs(loss))
}

/// As [`accumulate`], for a loss of log-probabilities and hidden states, whose gradient with respect to both
/// `gradient` returns.
pub(crate) fn accumulate_outputs<F, R>(
    network: &Network,
    micro_batches: &[MicroBatch],
    sampler: Sampler,
    gradient: F,
) -> Result<(Gradients, Vec<R>)>
where
    F: Fn(&MicroBatch, &Recorded<'_>) -> Result<(OutputGradients, R)> + Sync,
    R: Send,
{
    match network {
        Network::Cpu(model) => {
            let (total, reports) = on_cpu(model, micro_batches, sampler, gradient)?;
            Ok((Gradients::Cpu(total), reports))
        }
        Network::Device(model) => {
            let (total, reports) = on_device(model, micro_batches, sampler, gradient)?;
            Ok((Gradients::Device(total), reports))
        }
    }
}

/// The gradient of a loss of log-probabilities.
fn of_log_probs<F, R>(loss: F) -> impl Fn(&MicroBatch, &Recorded<'_>) -> Result<(OutputGradients, R)> + Sync
where
    F: Fn(&MicroBatch, &TokenStats) -> Result<(Tensor, R)> + Sync,
{
    move |micro, pass| {
        let (loss, report) = loss(micro, pass.stats())?;
        Ok((pass.stats().d_log_prob(&loss)?.into(), report))
    }
}

fn on_device<F, R>(
    model: &DeviceModel,
    micro_batches: &[MicroBatch],
    sampler: Sampler,
    gradient: F,
) -> Result<(Parameters, Vec<R>)>
where
    F: Fn(&MicroBatch, &Recorded<'_>) -> Result<(OutputGradients, R)>,
{
    let total = model.weights().zeros_like()?;
    let reports = micro_batches.iter().map(|micro| {
        let pass = model.record(&micro.tokens(), &micro.positions, &micro.targets, sampler)?;
        let stats = pass.stats()?;
        let (outputs, report) = gradient(micro, &Recorded::Device(&pass, &stats))?;
        pass.backward_from(&outputs, &total)?;
        Ok(report)
    });
    let reports = reports.collect::<Result<_>>()?;
    Ok((total, reports))
}

fn on_cpu<F, R>(
    model: &Qwen2,
    micro_batches: &[MicroBatch],
    sampler: Sampler,
    gradient: F,
) -> Result<(Vec<Vec<f32>>, Vec<R>)>
where
    F: Fn(&MicroBatch, &Recorded<'_>) -> Result<(OutputGradients, R)> + Sync,
    R: Send,
{
    let mut total: Vec<Vec<f32>> =
        model.learnable().iter().map(|(_, var)| vec![0.0; var.elem_count()]).collect();
    let mut reports = Vec::with_capacity(micro_batches.len());
    if model.is_wide() {
        for micro in micro_batches {
            let report = one(model, micro, sampler, &gradient, |place, gradient| {
                let pieces = total[place].par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE));
                pieces.for_each(|(sum, gradient)| add_rows(gradient, sum));
            })?;
            reports.push(report);
        }
        return Ok((total, reports));
    }
    for wave in micro_batches.chunks(WAVE) {
        let apart = |micro| {
            let mut gradients = vec![Vec::new(); total.len()];
            let report = one(model, micro, sampler, &gradient, |place, of| gradients[place] = of)?;
            Ok((gradients, report))
        };
        let parts: Vec<Result<(Vec<Vec<f32>>, R)>> = wave.par_iter().map(apart).collect();
        for part in parts {
            let (gradients, report) = part?;
            for (sum, gradient) in total.iter_mut().zip(&gradients) {
                add_rows(gradient, sum);
            }
            reports.push(report);
        }
    }
    Ok((total, reports))
}

/// Computes the gradients of one micro-batch, parameter by parameter.
fn one<F, R>(
    model: &Qwen2,
    micro: &MicroBatch,
    sampler: Sampler,
    gradient: &F,
    put: impl FnMut(usize, Vec<f32>),
) -> Result<R>
where
    F: Fn(&MicroBatch, &Recorded<'_>) -> Result<(OutputGradients, R)>,
{
    let pass = model.record(&micro.tokens(), &micro.positions, &micro.targets, sampler)?;
    let (outputs, report) = gradient(micro, &Recorded::Cpu(&pass))?;
    pass.backward_from(&outputs, put)?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use webshop_lm::Qwen2Config;
    use webshop_lm::device::{Compute, ComputeDtype, DeviceRequest, KernelChoice};
    use webshop_products::Seed;

    use super::*;
    use crate::data::trajectory::Trajectory;
    use crate::math::sum_all;

    fn micro(salt: u32) -> MicroBatch {
        MicroBatch {
            members: vec![0],
            ids: (0..9).map(|i| (i * 7 + salt) % 50).collect(),
            lengths: vec![9],
            prefixes: vec![],
            positions: (2..8).collect(),
            targets: (3..9).map(|i| (i * 7 + salt) % 50).collect(),
            n_targets: vec![6],
        }
    }

    fn loss(micro: &MicroBatch, stats: &TokenStats) -> Result<(Tensor, u32)> {
        Ok((sum_all(&stats.log_prob)?, micro.ids[0]))
    }

    #[test]
    fn gradients_are_added_in_the_order_of_the_micro_batches() {
        let micro_batches: Vec<MicroBatch> = (0..11).map(micro).collect();
        for hidden_size in [64, 512] {
            let config = Qwen2Config { hidden_size, num_hidden_layers: 1, ..Qwen2Config::small(50) };
            let model = Qwen2::random(&config, Seed(2)).unwrap();
            assert_eq!(model.is_wide(), hidden_size == 512);
            let (total, reports) =
                on_cpu(&model, &micro_batches, Sampler::UNTEMPERED, of_log_probs(loss)).unwrap();
            assert_eq!(reports, (0..11).collect::<Vec<u32>>());
            let mut expected = vec![Vec::new(); total.len()];
            for micro in &micro_batches {
                let pass = model
                    .record(&micro.tokens(), &micro.positions, &micro.targets, Sampler::UNTEMPERED)
                    .unwrap();
                let gradients = pass.backward(&loss(micro, pass.stats()).unwrap().0).unwrap();
                for (sum, gradient) in expected.iter_mut().zip(gradients) {
                    sum.resize(gradient.len(), 0.0_f32);
                    sum.iter_mut().zip(gradient).for_each(|(a, b)| *a += b);
                }
            }
            assert!(total == expected, "hidden size {hidden_size}");
        }
    }

    #[test]
    fn a_shared_prompt_is_computed_once_to_the_same_gradient() {
        let completion = |salt: u32| {
            let prompt: Vec<u32> = (0..70).map(|i| (i * 11 + 3) % 50).collect();
            let ids: Vec<u32> = (0..9 + salt).map(|i| (i * 7 + salt) % 50).collect();
            Trajectory::completion(&prompt, &ids, &vec![0.0; ids.len()])
        };
        let batch: Vec<Trajectory> = (0..4).map(completion).collect();
        let (apart, together) = (MicroBatch::pack(&batch, 1000), MicroBatch::pack_sharing(&batch, 1000));
        assert_eq!((apart[0].ids.len(), together[0].ids.len()), (4 * 70 + 42, 70 + 42));
        // The second model is wide: threads share its heads.
        for hidden_size in [64, 512] {
            let config = Qwen2Config { hidden_size, num_hidden_layers: 2, ..Qwen2Config::small(50) };
            let model = Qwen2::random(&config, Seed(2)).unwrap();
            let loss = |_: &MicroBatch, stats: &TokenStats| {
                let log_probs = stats.log_prob.to_vec1::<f32>()?;
                Ok((sum_all(&stats.log_prob.sqr()?)?, log_probs))
            };
            let [(apart, log_probs_apart), (together, log_probs_together)] = [&apart, &together]
                .map(|micros| on_cpu(&model, micros, Sampler::UNTEMPERED, of_log_probs(loss)).unwrap());
            for (a, b) in log_probs_apart[0].iter().zip(&log_probs_together[0]) {
                assert!((a - b).abs() < 1e-4, "{a} and {b}");
            }
            for ((name, _), (a, b)) in model.learnable().iter().zip(apart.iter().zip(&together)) {
                let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>().sqrt();
                let error = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
                let size = norm(&mut a.iter().copied());
                // The same sums in another order.
                assert!(size > 0.0 && error < 1e-4 * size, "`{name}`: {error:e} of {size:e}");
            }
        }
    }

    /// The network on the cpu backend and, in f32, on the gpu backend.
    fn both() -> (Qwen2, [Network; 2]) {
        let config = Qwen2Config { hidden_size: 32, num_hidden_layers: 2, ..Qwen2Config::small(50) };
        let model = Qwen2::random(&config, Seed(2)).unwrap();
        let networks = [KernelChoice::Custom, KernelChoice::Reference].map(|choice| {
            let compute = Compute::choose(DeviceRequest::Cpu, Some(ComputeDtype::F32), choice).unwrap();
            Network::new(&model, &compute).unwrap()
        });
        (model, networks)
    }

    fn of_device(gradients: &Gradients) -> &Parameters {
        let Gradients::Device(gradients) = gradients else { panic!("a gradient of the cpu backend") };
        gradients
    }

    #[test]
    fn the_gpu_backend_has_the_gradients_of_the_cpu_backend() {
        let micro_batches: Vec<MicroBatch> = (0..3).map(micro).collect();
        let (model, [cpu, device]) = both();
        let (expected, _) = accumulate(&cpu, &micro_batches, Sampler::UNTEMPERED, loss).unwrap();
        let Gradients::Cpu(expected) = expected else { panic!("taken on a device") };
        let (found, reports) = accumulate(&device, &micro_batches, Sampler::UNTEMPERED, loss).unwrap();
        assert_eq!(reports, [0, 1, 2]);
        let apart = of_device(&found).split(model.config()).unwrap();
        assert_eq!(apart.len(), expected.len());
        for ((name, found), expected) in apart.iter().zip(&expected) {
            let found = found.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
            let error = square(&mut found.iter().zip(expected).map(|(a, b)| a - b));
            let size = square(&mut expected.iter().copied());
            // Sums of some hundred products in another order: relative errors of 1e-6, with room for
            // cancellation.
            assert!(size > 0.0 && error.sqrt() < 1e-4 * size.sqrt(), "`{name}`: {error:e} of {size:e}");
        }
    }

    #[test]
    fn gradients_of_the_same_backend_can_be_mixed() {
        let (_, networks) = both();
        let of = |network: &Network, salt| {
            accumulate(network, &[micro(salt)], Sampler::UNTEMPERED, loss).unwrap().0
        };
        let first = |gradients: &Gradients| match gradients {
            Gradients::Cpu(values) => values[0][..3].to_vec(),
            Gradients::Device(values) => {
                let (_, tensor) = values.named().next().unwrap();
                tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()[..3].to_vec()
            }
        };
        for network in &networks {
            let (mut own, other) = (of(network, 1), of(network, 2));
            let (a, b) = (first(&own), first(&other));
            own.mix(0.25, &other).unwrap();
            for ((mixed, a), b) in first(&own).iter().zip(a).zip(b) {
                assert!((mixed - (0.75 * a + 0.25 * b)).abs() < 1e-6, "{mixed}");
            }
        }
        let error = of(&networks[0], 1).mix(0.5, &of(&networks[1], 1)).unwrap_err().to_string();
        assert!(error.contains("different backends"), "{error}");
    }
}
