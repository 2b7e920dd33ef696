//! Everything over the vocabulary: logits, log-probabilities of targets with their gradient, and drawing tokens.
//!
//! `log p(target) = z_target − log Σ exp z` with `z = W h / T` within the nucleus of what was sampled from, as in
//! [`crate::ops::cpu::log_prob`]. Logits are f32 and exist for some rows at a time, in the forward pass and again in the
//! backward pass ([`LIMIT_BYTES`]), whatever the number of tokens.

use candle_core::{D, DType, Result, Tensor};

use crate::ops::gpu::floats;
use crate::ops::gpu::linear::product;
use crate::ops::gpu::nucleus::shaped;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};
use webshop_kernels::Store;
use crate::generation::sampler::Sampler;

/// Memory that logits may take at a time.
const LIMIT_BYTES: usize = 512 << 20;
/// Rows that a grid counts in its second dimension, with room to spare.
const LIMIT_ROWS: usize = 32_768;
const THREADS: usize = 512;
/// Threads of `draw_tokens`, as its source has it.
const DRAW_THREADS: usize = 1024;
/// Tokens that `draw_tokens` can tell apart.
const DRAW_LIMIT: usize = 512 * DRAW_THREADS;

/// What is known of each target. All `[N]`, f32, on the device.
#[derive(Clone, Debug)]
pub struct TargetStats {
    /// log p(target).
    pub log_prob: Tensor,
    /// −Σ p log p in nats.
    pub entropy: Tensor,
    /// log Σ exp(logit).
    log_sum: Tensor,
}

/// What is known of targets under the distribution that was sampled from.
#[derive(Clone, Debug)]
pub struct Scored {
    /// Their softmax.
    pub stats: TargetStats,
    /// 1 for a target that the nucleus leaves out and that was counted in, else 0. `[N]`
    pub outside: Tensor,
    sampler: Sampler,
}

/// h `[N, H]`, W `[V, H]` → `[N, V]`, f32.
pub fn logits(kernels: &Kernels, hidden: &Tensor, head: &Tensor) -> Result<Tensor> {
    let shape = (hidden.dim(0)?, head.dim(0)?);
    let out = match kernels.own() {
        Some(launcher) => floats(launcher, shape)?,
        None => Tensor::zeros(shape, DType::F32, hidden.device())?,
    };
    product(kernels, hidden, &head.t()?, &out, Store::Set)?;
    Ok(out)
}

/// Rows whose logits fit into the limit.
fn rows_at_once(head: &Tensor) -> Result<usize> {
    Ok((LIMIT_BYTES / (head.dim(0)? * DType::F32.size_in_bytes())).clamp(1, LIMIT_ROWS))
}

/// Scores `targets[i]` (u32, `[N]`) after row i of `hidden` `[N, H]` under the head `[V, H]` and the distribution of
/// `sampler`, whose temperature is not 0.
pub fn forward(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    sampler: Sampler,
) -> Result<Scored> {
    in_chunks(kernels, (hidden, head), targets, sampler, rows_at_once(head)?)
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
    let Some(launcher) = kernels.own() else {
        return plain_stats(logits, targets);
    };
    let [log_prob, entropy, log_sum] = [floats(launcher, n)?, floats(launcher, n)?, floats(launcher, n)?];
    launcher.launch(&Launch {
        kernel: "token_stats",
        grid: [n, 1, 1],
        threads: THREADS,
        args: &[
            Arg::In(logits),
            Arg::In(targets),
            Arg::Out(&log_prob),
            Arg::Out(&entropy),
            Arg::Out(&log_sum),
            count(vocab_size),
        ],
    })?;
    Ok(TargetStats { log_prob, entropy, log_sum })
}

fn plain_stats(logits: &Tensor, targets: &Tensor) -> Result<TargetStats> {
    let relative = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?)?;
    let weights = relative.exp()?;
    let mass = weights.sum_keepdim(D::Minus1)?; // [N, 1]
    let log_mass = mass.log()?;
    let at_target = relative.gather(&targets.unsqueeze(1)?, 1)?; // [N, 1]
    let moment = (&weights * &relative)?.sum_keepdim(D::Minus1)?;
    Ok(TargetStats {
        log_prob: (at_target - &log_mass)?.squeeze(1)?,
        entropy: (&log_mass - (moment / &mass)?)?.squeeze(1)?,
        log_sum: (logits.max_keepdim(D::Minus1)? + log_mass)?.squeeze(1)?,
    })
}

/// dh from the gradients of the log-probabilities `[N]`; dW is added to `d_head` `[V, H]`, f32.
pub fn backward(
    kernels: &Kernels,
    (hidden, head): (&Tensor, &Tensor),
    targets: &Tensor,
    scored: &Scored,
    d_log_prob: &Tensor,
    d_head: &Tensor,
) -> Result<Tensor> {
    let rows = rows_at_once(head)?;
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
    let Some(launcher) = kernels.own() else {
        let d = d_log_prob.unsqueeze(1)?; // [N, 1]
        let p = logits.broadcast_sub(&log_sum.unsqueeze(1)?)?.exp()?;
        let d_logits = p.broadcast_mul(&d)?.neg()?;
        return d_logits.scatter_add(&targets.unsqueeze(1)?, &d, 1)?.to_dtype(dtype);
    };
    let out = launcher.empty((n, vocab_size).into(), dtype)?;
    launcher.launch(&Launch {
        kernel: "logits_backward",
        grid: [vocab_size.div_ceil(THREADS), n, 1],
        threads: THREADS,
        args: &[
            Arg::In(logits),
            Arg::In(targets),
            Arg::In(log_sum),
            Arg::In(d_log_prob),
            Arg::Out(&out),
            count(vocab_size),
        ],
    })?;
    Ok(out)
}

/// One drawn token for each row. All `[B]`, on the device.
#[derive(Clone, Debug)]
pub struct Draws {
    /// The tokens, u32.
    pub ids: Tensor,
    /// Log-probability of each under the distribution it was drawn from; not a number if a logit was not finite.
    pub log_prob: Tensor,
    /// Entropy of that distribution in nats.
    pub entropy: Tensor,
}

/// Draws from softmax(logits / temperature) the first token whose running mass exceeds `uniform · mass`, in order of
/// id; at temperature 0 the most probable one, the lowest id among equals. The ids are written to `ids`.
pub fn draw(
    kernels: &Kernels,
    logits: &Tensor,
    uniforms: &Tensor,
    temperature: f32,
    ids: &Tensor,
) -> Result<Draws> {
    let (n, vocab_size) = logits.dims2()?;
    let Some(launcher) = kernels.own().filter(|_| vocab_size <= DRAW_LIMIT) else {
        return plain_draw(logits, uniforms, temperature, ids);
    };
    let (log_prob, entropy) = (floats(launcher, n)?, floats(launcher, n)?);
    launcher.launch(&Launch {
        kernel: "draw_tokens",
        grid: [n, 1, 1],
        threads: DRAW_THREADS,
        args: &[
            Arg::In(logits),
            Arg::In(uniforms),
            Arg::Out(ids),
            Arg::Out(&log_prob),
            Arg::Out(&entropy),
            count(vocab_size),
            Arg::F32(temperature),
        ],
    })?;
    Ok(Draws { ids: ids.clone(), log_prob, entropy })
}

fn plain_draw(logits: &Tensor, uniforms: &Tensor, temperature: f32, ids: &Tensor) -> Result<Draws> {
    let poison = (logits * 0.0)?.sum(D::Minus1)?; // [B]
    if temperature == 0.0 {
        ids.slice_set(&logits.argmax(D::Minus1)?, 0, 0)?;
        return Ok(Draws { ids: ids.clone(), log_prob: poison.clone(), entropy: poison.zeros_like()? });
    }
    let scaled = (logits / f64::from(temperature))?;
    let weights = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?.exp()?;
    let wanted = (uniforms * weights.sum(D::Minus1)?)?.unsqueeze(1)?; // [B, 1]
    // As many tokens as have a running mass up to the wanted one lie before the drawn one.
    let passed = weights.cumsum(D::Minus1)?.broadcast_le(&wanted)?.to_dtype(DType::F32)?.sum(D::Minus1)?;
    let last = (logits.dim(1)? - 1) as f64;
    ids.slice_set(&passed.clamp(0.0, last)?.to_dtype(DType::U32)?, 0, 0)?;
    let stats = plain_stats(&scaled, ids)?;
    Ok(Draws { ids: ids.clone(), log_prob: (stats.log_prob + poison)?, entropy: stats.entropy })
}

#[cfg(test)]
mod tests {
    use crate::ops::gpu::reference_check::{close, wave};
    use super::*;

    #[test]
    fn chunks_do_not_show() {
        let (h, w) = (wave(1, (7, 8), DType::F32), wave(2, (11, 8), DType::F32));
        let targets = Tensor::new(&[0_u32, 10, 3, 3, 7, 1, 9], h.device()).unwrap();
        let d = wave(3, 7, DType::F32);
        for sampler in [Sampler::PLAIN, Sampler::new(0.8, 0.7).unwrap()] {
            let answers = [7, 3].map(|rows| {
                let stats = in_chunks(&Kernels::Plain, (&h, &w), &targets, sampler, rows).unwrap();
                let d_w = w.zeros_like().unwrap();
                let d_h =
                    backward_in_chunks(&Kernels::Plain, (&h, &w), &targets, &stats, &d, &d_w, rows).unwrap();
                (stats, d_h, d_w)
            });
            close(&answers[0].0.stats.log_prob, &answers[1].0.stats.log_prob, 1e-6);
            close(&answers[0].0.stats.entropy, &answers[1].0.stats.entropy, 1e-6);
            close(&answers[0].0.outside, &answers[1].0.outside, 0.0);
            close(&answers[0].1, &answers[1].1, 1e-6);
            close(&answers[0].2, &answers[1].2, 1e-6);
        }
    }
}
