//! Applies temperature and nucleus to logits, by the rule of [`crate::generation::sampler`].
//!
//! The kernel finds the smallest weight of the nucleus by bisection over its bits instead of sorting:
//! positive floats have the same order as their bit patterns.

use candle_core::{DType, Result, Tensor};

use crate::generation::sampler::Sampler;
use crate::ops::gpu::{floats, launch, reference};
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

const THREADS: usize = 512;

/// Returns logits `[N, V]` whose softmax is the distribution of `sampler`, with the target of each row added
/// to the nucleus, and a vector `[N]` that is 1 for each target outside the nucleus, else 0. The custom
/// kernel overwrites `logits`.
pub(crate) fn shaped(
    kernels: &Kernels,
    logits: Tensor,
    targets: &Tensor,
    sampler: Sampler,
) -> Result<(Tensor, Tensor)> {
    let (n, vocab_size) = logits.dims2()?;
    if sampler.is_untempered() {
        let none = Tensor::zeros(n, DType::F32, logits.device())?;
        return Ok((logits, none));
    }
    let Some(launcher) = kernels.launcher() else {
        return reference::shape_logits(&logits, targets, sampler);
    };
    let outside = floats(launcher, n)?;
    launch(
        launcher,
        "shape_logits",
        n,
        THREADS,
        &[
            Arg::Out(&logits),
            Arg::In(targets),
            Arg::Out(&outside),
            count(vocab_size),
            Arg::F32(sampler.temperature()),
            Arg::F32(sampler.top_p()),
        ],
    )?;
    Ok((logits, outside))
}
