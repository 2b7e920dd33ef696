//! From logits to those of the distribution that was sampled from; the rule is [`crate::generation::sampler`]'s.
//!
//! Our kernel finds the end of a nucleus bit by bit instead of sorting: weights are positive floats, which are ordered
//! as their bits are.

use candle_core::{DType, Result, Tensor};

use crate::ops::gpu::floats;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};
use crate::generation::sampler::Sampler;

const THREADS: usize = 512;

/// Logits `[N, V]` whose softmax `sampler` draws from, the targets counted in, and which of those its nucleus leaves out.
/// `[N]`. With kernels of our own they take the place of the given ones.
pub fn shaped(
    kernels: &Kernels,
    logits: Tensor,
    targets: &Tensor,
    sampler: Sampler,
) -> Result<(Tensor, Tensor)> {
    let (n, vocab_size) = logits.dims2()?;
    if sampler.is_plain() {
        let none = Tensor::zeros(n, DType::F32, logits.device())?;
        return Ok((logits, none));
    }
    let Some(launcher) = kernels.own() else {
        let mut values = logits.flatten_all()?.to_vec1::<f32>()?;
        let rows = values.chunks_exact_mut(vocab_size).zip(targets.to_vec1::<u32>()?);
        let outside = rows.map(|(row, target)| f32::from(u8::from(sampler.shape(row, target as usize))));
        let outside = Tensor::from_iter(outside, logits.device())?;
        return Ok((Tensor::from_vec(values, (n, vocab_size), logits.device())?, outside));
    };
    let outside = floats(launcher, n)?;
    launcher.launch(&Launch {
        kernel: "shape_logits",
        grid: [n, 1, 1],
        threads: THREADS,
        args: &[
            Arg::Out(&logits),
            Arg::In(targets),
            Arg::Out(&outside),
            count(vocab_size),
            Arg::F32(sampler.temperature()),
            Arg::F32(sampler.top_p()),
        ],
    })?;
    Ok((logits, outside))
}
