//! Operations over the vocabulary: logits, log-probabilities of targets and their gradient, sampling.
//!
//! `log p(target) = z_target − log Σ exp z` with `z = W h / T` over the tokens of the sampler's nucleus, as
//! in [`crate::ops::cpu::log_prob`]. Logits are f32. They are computed for a chunk of rows of at most
//! [`LIMIT_BYTES`] at a time, and once more in the backward pass.

use candle_core::{DType, Result, Tensor};

use crate::generation::sampler::Sampler;
use crate::ops::gpu::linear::product;
use crate::ops::gpu::nucleus::shaped;
pub(crate) use crate::ops::gpu::operands::{Draws, TargetStats};
use crate::ops::gpu::{floats, launch, launch_grid, reference};
use webshop_kernels::cpu::matmul::Store;
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// Maximum size of the logits of a chunk, in bytes.
const LIMIT_BYTES: usize = 512 << 20;
/// Maximum number of rows of a chunk; a grid has at most 65,535 blocks in its second dimension.
const LIMIT_ROWS: usize = 32_768;
const THREADS: usize = 512;
/// Threads of a block of `draw_tokens`, as in its source.
const DRAW_THREADS: usize = 1024;
/// Largest vocabulary that `draw_tokens` supports.
const DRAW_LIMIT: usize = 512 * DRAW_THREADS;

/// Scores of targets under the distribution of a sampler.
#[derive(Clone, Debug)]
pub(crate) struct Scored {
    /// Statistics under that distribution.
    pub(crate) stats: TargetStats,
    /// 1 for a target outside the nucleus, which is added to it, else 0. `[N]`
    pub(crate) outside: Tensor,
    sampler: Sampler,
}

/// h `[N, H]`, W `[V, H]` → `[N, V]`, f32.
pub(crate) fn logits(kernels: &Kernels, hidden: &Tensor, head: &Tensor) -> Result<Tensor> {
    let shape = (hidden.dim(0)?, head.dim(0)?);
    let out = match kernels.launcher() {
        Some(launcher) => floats(launcher, shape)?,
        None => Tensor::zeros(shape, DType::F32, hidden.device())?,
    };
    logits_into(kernels, hidden, head, &out)?;
    Ok(out)
}

/// The same into `out` `[N, V]`, f32.
pub(crate) fn logits_into(kernels: &Kernels, hidden: &Tensor, head: &Tensor, out: &Tensor) -> Result<()> {
    product(kernels, hidden, &head.t()?, out, Store::Set)
}

/// Number of rows in a chunk.
pub(crate) fn rows_at_once(vocab_size: usize) -> usize {
    (LIMIT_BYTES / (vocab_size * DType::F32.size_in_bytes())).clamp(1, LIMIT_ROWS)
}

/// Scores `targets[i]` (u32, `[N]`) as the token after row i of `hidden` `[N, H]`, under the head `[V, H]`
/// and the distribution of `sampler`, whose temperature must not be 0.
pub(crate) fn forward(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    sampler: Sampler,
) -> Result<Scored> {
    in_chunks(kernels, (hidden, head), targets, sampler, rows_at_once(head.dim(0)?))
}

fn in_chunks(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    sampler: Sampler,
    rows: usize,
) -> Result<Scored> {
    let n = hidden.dim(0)?;
    if n == 0 {
        let nothing = Tensor::zeros(0, DType::F32, hidden.device())?;
        let [log_prob, entropy, log_sum] = std::array::from_fn(|_| nothing.clone());
        return Ok(Scored { stats: TargetStats { log_prob, entropy, log_sum }, outside: nothing, sampler });
    }
    let chunks = (0..n).step_by(rows).map(|start| {
        let len = rows.min(n - start);
        let targets = targets.narrow(0, start, len)?;
        let logits = logits(kernels, &hidden.narrow(0, start, len)?, head)?;
        let (logits, outside) = shaped(kernels, logits, &targets, sampler)?;
        Ok((stats(kernels, &logits, &targets)?, outside))
    });
    let (chunks, outside): (Vec<_>, Vec<_>) = chunks.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let joined =
        |field: fn(&TargetStats) -> &Tensor| Tensor::cat(&chunks.iter().map(field).collect::<Vec<_>>(), 0);
    let stats = TargetStats {
        log_prob: joined(|stats| &stats.log_prob)?,
        entropy: joined(|stats| &stats.entropy)?,
        log_sum: joined(|stats| &stats.log_sum)?,
    };
    Ok(Scored { stats, outside: Tensor::cat(&outside, 0)?, sampler })
}

fn stats(kernels: &Kernels, logits: &Tensor, targets: &Tensor) -> Result<TargetStats> {
    let (n, vocab_size) = logits.dims2()?;
    let Some(launcher) = kernels.launcher() else {
        return reference::token_stats(logits, targets);
    };
    let [log_prob, entropy, log_sum] = [floats(launcher, n)?, floats(launcher, n)?, floats(launcher, n)?];
    launch(
        launcher,
        "token_stats",
        n,
        THREADS,
        &[
            Arg::In(logits),
            Arg::In(targets),
            Arg::Out(&log_prob),
            Arg::Out(&entropy),
            Arg::Out(&log_sum),
            count(vocab_size),
        ],
    )?;
    Ok(TargetStats { log_prob, entropy, log_sum })
}

/// Returns dh for the gradients `d_log_prob` `[N]`; adds dW to `d_head` `[V, H]`, f32.
pub(crate) fn backward(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    scored: &Scored,
    d_log_prob: &Tensor,
    d_head: &Tensor,
) -> Result<Tensor> {
    let rows = rows_at_once(head.dim(0)?);
    backward_in_chunks(kernels, (hidden, head), targets, scored, d_log_prob, d_head, rows)
}

fn backward_in_chunks(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    scored: &Scored,
    d_log_prob: &Tensor,
    d_head: &Tensor,
    rows: usize,
) -> Result<Tensor> {
    let n = hidden.dim(0)?;
    if n == 0 {
        return hidden.zeros_like();
    }
    let d_relative = match scored.sampler.temperature() {
        1.0 => d_log_prob.clone(),
        temperature => (d_log_prob / f64::from(temperature))?,
    };
    let chunks = (0..n).step_by(rows).map(|start| {
        let part = |x: &Tensor| x.narrow(0, start, rows.min(n - start));
        let (hidden, targets) = (part(hidden)?, part(targets)?);
        let (logits, _) = shaped(kernels, logits(kernels, &hidden, head)?, &targets, scored.sampler)?;
        let of_rows = (&targets, &part(&scored.stats.log_sum)?, &part(&d_relative)?);
        let d_logits = logits_backward(kernels, &logits, of_rows, hidden.dtype())?;
        product(kernels, &d_logits.t()?, &hidden, d_head, Store::Add)?;
        d_logits.matmul(head)
    });
    Tensor::cat(&chunks.collect::<Result<Vec<_>>>()?, 0)
}

fn logits_backward(
    kernels: &Kernels,
    logits: &Tensor,
    (targets, log_sum, d_log_prob): (&Tensor, &Tensor, &Tensor),
    dtype: DType,
) -> Result<Tensor> {
    let (n, vocab_size) = logits.dims2()?;
    let Some(launcher) = kernels.launcher() else {
        return reference::logits_backward(logits, targets, log_sum, d_log_prob, dtype);
    };
    let out = launcher.empty((n, vocab_size).into(), dtype)?;
    launch_grid(
        launcher,
        "logits_backward",
        [vocab_size.div_ceil(THREADS), n, 1],
        THREADS,
        &[
            Arg::In(logits),
            Arg::In(targets),
            Arg::In(log_sum),
            Arg::In(d_log_prob),
            Arg::Out(&out),
            count(vocab_size),
        ],
    )?;
    Ok(out)
}

/// Samples from softmax(logits / temperature): the first token in id order whose cumulative mass exceeds
/// `uniform · total mass`. At temperature 0 the most probable token, ties by the lower id. Writes the ids to
/// `ids`.
pub(crate) fn draw(
    kernels: &Kernels,
    logits: &Tensor,
    uniforms: &Tensor,
    temperature: f32,
    ids: &Tensor,
) -> Result<Draws> {
    let (n, vocab_size) = logits.dims2()?;
    let Some(launcher) = kernels.launcher().filter(|_| vocab_size <= DRAW_LIMIT) else {
        return reference::draw(logits, uniforms, temperature, ids);
    };
    let (log_prob, entropy) = (floats(launcher, n)?, floats(launcher, n)?);
    launch(
        launcher,
        "draw_tokens",
        n,
        DRAW_THREADS,
        &[
            Arg::In(logits),
            Arg::In(uniforms),
            Arg::Out(ids),
            Arg::Out(&log_prob),
            Arg::Out(&entropy),
            count(vocab_size),
            Arg::F32(temperature),
        ],
    )?;
    Ok(Draws { ids: ids.clone(), log_prob, entropy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::gpu::reference_check::{close, wave};

    #[test]
    fn the_chunk_size_does_not_change_results() {
        let (h, w) = (wave(1, (7, 8), DType::F32), wave(2, (11, 8), DType::F32));
        let targets = Tensor::new(&[0_u32, 10, 3, 3, 7, 1, 9], h.device()).unwrap();
        let d = wave(3, 7, DType::F32);
        for sampler in [Sampler::UNTEMPERED, Sampler::new(0.8, 0.7).unwrap()] {
            let results = [7, 3].map(|rows| {
                let stats = in_chunks(&Kernels::Reference, (&h, &w), &targets, sampler, rows).unwrap();
                let d_w = w.zeros_like().unwrap();
                let d_h = backward_in_chunks(&Kernels::Reference, (&h, &w), &targets, &stats, &d, &d_w, rows)
                    .unwrap();
                (stats, d_h, d_w)
            });
            close(&results[0].0.stats.log_prob, &results[1].0.stats.log_prob, 1e-6);
            close(&results[0].0.stats.entropy, &results[1].0.stats.entropy, 1e-6);
            close(&results[0].0.outside, &results[1].0.outside, 0.0);
            close(&results[0].1, &results[1].1, 1e-6);
            close(&results[0].2, &results[1].2, 1e-6);
        }
    }
}
