//! Gradients of a batch, the same bytes on any number of threads.
//!
//! Micro-batches are independent: each is computed on one thread, forward and backward, and their
//! gradients are added in the order of the micro-batches. The split of a batch into micro-batches is
//! fixed by the batch alone ([`MicroBatch::pack`]), so the thread count cannot show. A wide model divides its
//! products among the threads instead, one micro-batch after another, and adds each parameter's gradient as soon
//! as it is finished: what is held at once is the sum and one gradient, and the sums are the same.

use candle_core::Tensor;
use rayon::prelude::*;
use webshop_agent::{Qwen2, Sampler, TokenStats};

use crate::error::Result;
use crate::trajectory::MicroBatch;

/// One flat f32 gradient per parameter that learns, in the order of [`Qwen2::learnable`].
pub type Gradients = Vec<Vec<f32>>;

/// Micro-batches of a small model whose gradients are held at once; bounds memory, not the result.
pub(crate) const WAVE: usize = 8;

/// Values that one thread adds at a time.
const PIECE: usize = 1 << 18;

/// The summed gradient of `loss` over all micro-batches, with what it reports of each, in order.
///
/// `loss` is given a micro-batch and the log-probabilities of its targets `[N]` under the distribution of `sampler`,
/// and returns its share of the batch's loss as a scalar tensor with whatever should be kept of it. A parameter that
/// does not take part has a zero gradient.
pub fn accumulate<F, R>(
    model: &Qwen2,
    micro_batches: &[MicroBatch],
    sampler: Sampler,
    loss: F,
) -> Result<(Gradients, Vec<R>)>
where
    F: Fn(&MicroBatch, &TokenStats) -> Result<(Tensor, R)> + Sync,
    R: Send,
{
    let mut total: Gradients = model.learnable().iter().map(|(_, var)| vec![0.0; var.elem_count()]).collect();
    let mut reports = Vec::with_capacity(micro_batches.len());
    if model.is_wide() {
        for micro in micro_batches {
            let report = one(model, micro, sampler, &loss, |place, gradient| {
                let pieces = total[place].par_chunks_mut(PIECE).zip(gradient.par_chunks(PIECE));
                pieces.for_each(|(sum, gradient)| add(sum, gradient));
            })?;
            reports.push(report);
        }
        return Ok((total, reports));
    }
    for wave in micro_batches.chunks(WAVE) {
        let apart = |micro| {
            let mut gradients = vec![Vec::new(); total.len()];
            let report = one(model, micro, sampler, &loss, |place, gradient| gradients[place] = gradient)?;
            Ok((gradients, report))
        };
        let parts: Vec<Result<(Gradients, R)>> = wave.par_iter().map(apart).collect();
        for part in parts {
            let (gradients, report) = part?;
            for (sum, gradient) in total.iter_mut().zip(&gradients) {
                add(sum, gradient);
            }
            reports.push(report);
        }
    }
    Ok((total, reports))
}

fn add(sum: &mut [f32], gradient: &[f32]) {
    sum.iter_mut().zip(gradient).for_each(|(a, b)| *a += b);
}

/// Hands over the gradients of one micro-batch, parameter by parameter.
fn one<F, R>(
    model: &Qwen2,
    micro: &MicroBatch,
    sampler: Sampler,
    loss: &F,
    put: impl FnMut(usize, Vec<f32>),
) -> Result<R>
where
    F: Fn(&MicroBatch, &TokenStats) -> Result<(Tensor, R)>,
{
    let pass = model.record(&micro.tokens(), &micro.positions, &micro.targets, sampler)?;
    let (loss, report) = loss(micro, pass.stats())?;
    pass.backward_each(&loss, put)?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use webshop_agent::Qwen2Config;
    use webshop_products::Seed;

    use super::*;

    fn micro(salt: u32) -> MicroBatch {
        MicroBatch {
            members: vec![0],
            ids: (0..9).map(|i| (i * 7 + salt) % 50).collect(),
            lengths: vec![9],
            positions: (2..8).collect(),
            targets: (3..9).map(|i| (i * 7 + salt) % 50).collect(),
            n_targets: vec![6],
        }
    }

    fn loss(micro: &MicroBatch, stats: &TokenStats) -> Result<(Tensor, u32)> {
        Ok((stats.log_prob.sum_all()?, micro.ids[0]))
    }

    #[test]
    fn gradients_are_added_in_the_order_of_the_micro_batches() {
        let micro_batches: Vec<MicroBatch> = (0..11).map(micro).collect();
        for hidden_size in [64, 512] {
            let config = Qwen2Config { hidden_size, num_hidden_layers: 1, ..Qwen2Config::small(50) };
            let model = Qwen2::random(&config, Seed(2)).unwrap();
            assert_eq!(model.is_wide(), hidden_size == 512);
            let (total, reports) = accumulate(&model, &micro_batches, Sampler::PLAIN, loss).unwrap();
            assert_eq!(reports, (0..11).collect::<Vec<u32>>());
            let mut expected = vec![Vec::new(); total.len()];
            for micro in &micro_batches {
                let pass =
                    model.record(&micro.tokens(), &micro.positions, &micro.targets, Sampler::PLAIN).unwrap();
                let gradients = pass.backward(&loss(micro, pass.stats()).unwrap().0).unwrap();
                for (sum, gradient) in expected.iter_mut().zip(gradients) {
                    sum.resize(gradient.len(), 0.0_f32);
                    sum.iter_mut().zip(gradient).for_each(|(a, b)| *a += b);
                }
            }
            assert!(total == expected, "hidden size {hidden_size}");
        }
    }
}
