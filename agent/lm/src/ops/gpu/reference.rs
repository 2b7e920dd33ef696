//! Reference implementations: every GPU operation composed of candle's operations.
//!
//! They run on any candle device. Models with
//! [`Kernels::Reference`](webshop_kernels::gpu::launch::Kernels::Reference) use them, and
//! [`reference_check`](super::reference_check) compares the custom kernels with them. Each computes in f32
//! and rounds its result to the dtype of its input, as the kernels do. Functions that accumulate change their
//! last argument in place.

use candle_core::{D, DType, Result, Tensor};

use super::operands::{Coefficients, Direction, Draws, LayerCache, NewTokens, RopeTable, State, TargetStats};
use super::wide;
use crate::generation::sampler::Sampler;
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::cpu::matmul::Store;

/// `out = a · b` or `out += a · b` in f32. `[m, k] · [k, n] → [m, n]`
pub(crate) fn product(a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
    let product = wide(a)?.matmul(&wide(b)?)?;
    match store {
        Store::Set => out.slice_set(&product, 0, 0),
        Store::Add => out.slice_set(&(out + product)?, 0, 0),
    }
}

/// The addends of [`column_sums`](super::linear::column_sums): `d_y`, multiplied by x · inverse if these are
/// given.
pub(crate) fn column_addends(d_y: &Tensor, weights: Option<(&Tensor, &Tensor)>) -> Result<Tensor> {
    match weights {
        Some((x, inverses)) => (wide(d_y)? * wide(x)?)?.broadcast_mul(&inverses.unsqueeze(1)?),
        None => wide(d_y),
    }
}

/// Causal softmax of scores `[K, G b, c]`: row i of a head is the query at position `first + i`.
pub(crate) fn causal_softmax(
    scores: &Tensor,
    n_queries: usize,
    first: usize,
    heads: Heads,
) -> Result<Tensor> {
    let (context, device) = (scores.dim(2)?, scores.device());
    let row = |i: usize| (0..context).map(move |key| if key > first + i { f32::NEG_INFINITY } else { 0.0 });
    let mask: Vec<f32> = (0..heads.group()).flat_map(|_| (0..n_queries).flat_map(row)).collect();
    let mask = Tensor::from_vec(mask, (heads.group() * n_queries, context), device)?;
    let scaled = (wide(scores)? * f64::from(heads.scale()))?.broadcast_add(&mask)?;
    let weights = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?.exp()?;
    weights.broadcast_div(&weights.sum_keepdim(D::Minus1)?)?.to_dtype(scores.dtype())
}

/// The gradient of the scores from that of the probabilities `p`.
pub(crate) fn softmax_backward(p: &Tensor, d_p: &Tensor, scale: f32) -> Result<Tensor> {
    let dtype = p.dtype();
    let (p, d_p) = (wide(p)?, wide(d_p)?);
    let along = (&p * &d_p)?.sum_keepdim(D::Minus1)?;
    let d_scores = (d_p.broadcast_sub(&along)? * p)? * f64::from(scale);
    d_scores?.to_dtype(dtype)
}

/// Applies bias and rotary positions to rows of `q ‖ k ‖ v`, writes k and v to the cache and returns q.
/// `[M, H D]`
pub(crate) fn append(
    qkv: &Tensor,
    bias: &Tensor,
    new: &NewTokens,
    table: &RopeTable,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let rotated = rope(qkv, Some(bias), &new.positions, table, heads, Direction::Forward)?;
    let mut row = 0;
    for (lane, at) in &new.runs {
        let rows = rotated.narrow(0, row, at.len())?;
        row += at.len();
        for head in 0..heads.n_kv_heads {
            for (cache, offset) in
                [(&cache.keys, heads.n_heads), (&cache.values, heads.n_heads + heads.n_kv_heads)]
            {
                let values =
                    rows.narrow(1, (offset + head) * heads.head_dim, heads.head_dim)?.contiguous()?;
                let of_head = cache.narrow(0, *lane, 1)?.narrow(1, head, 1)?; // [1, 1, capacity, D]
                of_head.slice_set(&values.unsqueeze(0)?.unsqueeze(0)?, 2, at.start)?;
            }
        }
    }
    rotated.narrow(1, 0, heads.out_width())?.contiguous()
}

/// Statistics of `targets` under the softmax of `logits` `[N, V]`.
pub(crate) fn token_stats(logits: &Tensor, targets: &Tensor) -> Result<TargetStats> {
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

/// Samples one token per row; see [`log_prob::draw`](super::log_prob::draw).
pub(crate) fn draw(logits: &Tensor, uniforms: &Tensor, temperature: f32, ids: &Tensor) -> Result<Draws> {
    // NaN for a row with a logit that is not finite, else 0.
    let poison = (logits * 0.0)?.sum(D::Minus1)?; // [B]
    if temperature == 0.0 {
        ids.slice_set(&logits.argmax(D::Minus1)?, 0, 0)?;
        return Ok(Draws { ids: ids.clone(), log_prob: poison.clone(), entropy: poison.zeros_like()? });
    }
    let scaled = (logits / f64::from(temperature))?;
    let weights = scaled.broadcast_sub(&scaled.max_keepdim(D::Minus1)?)?.exp()?;
    let wanted = (uniforms * weights.sum(D::Minus1)?)?.unsqueeze(1)?; // [B, 1]
    // The sampled token is the first whose cumulative mass exceeds `wanted`.
    let passed = weights.cumsum(D::Minus1)?.broadcast_le(&wanted)?.to_dtype(DType::F32)?.sum(D::Minus1)?;
    let last = (logits.dim(1)? - 1) as f64;
    ids.slice_set(&passed.clamp(0.0, last)?.to_dtype(DType::U32)?, 0, 0)?;
    let stats = token_stats(&scaled, ids)?;
    Ok(Draws { ids: ids.clone(), log_prob: (stats.log_prob + poison)?, entropy: stats.entropy })
}

/// `d · (1[target] − p)` for each row of `logits` `[N, V]`, in `dtype`.
pub(crate) fn logits_backward(
    logits: &Tensor,
    targets: &Tensor,
    log_sum: &Tensor,
    d_log_prob: &Tensor,
    dtype: DType,
) -> Result<Tensor> {
    let d = d_log_prob.unsqueeze(1)?; // [N, 1]
    let p = logits.broadcast_sub(&log_sum.unsqueeze(1)?)?.exp()?;
    let d_logits = p.broadcast_mul(&d)?.neg()?;
    d_logits.scatter_add(&targets.unsqueeze(1)?, &d, 1)?.to_dtype(dtype)
}

/// See [`nucleus::shaped`](super::nucleus::shaped); computed on the host by the sampler itself.
pub(crate) fn shape_logits(logits: &Tensor, targets: &Tensor, sampler: Sampler) -> Result<(Tensor, Tensor)> {
    let shape = logits.dims2()?;
    let mut values = logits.flatten_all()?.to_vec1::<f32>()?;
    let rows = values.chunks_exact_mut(shape.1).zip(targets.to_vec1::<u32>()?);
    let outside = rows.map(|(row, target)| f32::from(u8::from(sampler.shape(row, target as usize))));
    let outside = Tensor::from_iter(outside, logits.device())?;
    Ok((Tensor::from_vec(values, shape, logits.device())?, outside))
}

/// 1 / √(mean x² + ε) of each row. `[T, 1]`
fn inverse_rms(x: &Tensor, eps: f32) -> Result<Tensor> {
    (x.sqr()?.mean_keepdim(1)? + f64::from(eps))?.sqrt()?.recip()
}

/// RMSNorm of rows. x `[T, H]`, gain `[H]` → `[T, H]`
pub(crate) fn rms_norm(x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor> {
    let dtype = x.dtype();
    let x = wide(x)?;
    x.broadcast_mul(&inverse_rms(&x, eps)?)?.broadcast_mul(&wide(gain)?)?.to_dtype(dtype)
}

/// The gradient of x, plus `d_residual`, and 1 / rms of each row `[T]`.
pub(crate) fn rms_norm_backward(
    x: &Tensor,
    gain: &Tensor,
    eps: f32,
    d_out: &Tensor,
    d_residual: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (values, width) = (wide(x)?, x.dim(1)?);
    let inverse = inverse_rms(&values, eps)?; // [T, 1]
    let g = wide(d_out)?.broadcast_mul(&wide(gain)?)?;
    let along = ((&g * &values)?.sum_keepdim(1)? / width as f64)?; // [T, 1]
    let pull = (along * inverse.powf(3.0)?)?;
    let d_x = (g.broadcast_mul(&inverse)? - values.broadcast_mul(&pull)?)?;
    Ok(((wide(d_residual)? + d_x)?.to_dtype(x.dtype())?, inverse.squeeze(1)?))
}

/// Adds the bias to rows of `q ‖ k ‖ v` and rotates q and k by their positions. `[T, (H + 2K) D]`
pub(crate) fn rope(
    qkv: &Tensor,
    bias: Option<&Tensor>,
    positions: &Tensor,
    table: &RopeTable,
    heads: Heads,
    direction: Direction,
) -> Result<Tensor> {
    let biased = match bias {
        Some(bias) => qkv.broadcast_add(bias)?,
        None => qkv.clone(),
    };
    let qkv = &biased;
    let (n_rows, dim) = (qkv.dim(0)?, heads.head_dim);
    let width = (heads.n_heads + heads.n_kv_heads) * dim;
    let at = |angles: &Tensor| angles.index_select(positions, 0)?.unsqueeze(1); // [T, 1, D/2]
    let (cos, sin) = (at(&table.cos)?, at(&table.sin)?);
    let sin = if direction == Direction::Forward { sin } else { sin.neg()? };
    let x = wide(&qkv.narrow(1, 0, width)?)?.reshape((n_rows, width / dim, dim))?;
    let (a, b) = (x.narrow(D::Minus1, 0, dim / 2)?, x.narrow(D::Minus1, dim / 2, dim / 2)?);
    let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
    let second = (b.broadcast_mul(&cos)? + a.broadcast_mul(&sin)?)?;
    let rotated = Tensor::cat(&[first, second], D::Minus1)?.reshape((n_rows, width))?;
    let values = qkv.narrow(1, width, heads.n_kv_heads * dim)?;
    Tensor::cat(&[rotated.to_dtype(qkv.dtype())?, values], 1)
}

fn halves(gate_up: &Tensor) -> Result<(Tensor, Tensor)> {
    let width = gate_up.dim(1)? / 2;
    let half = |start| wide(&gate_up.narrow(1, start, width)?.contiguous()?);
    Ok((half(0)?, half(width)?))
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}

/// SwiGLU of rows `gate ‖ up`. `[T, 2I]` → `[T, I]`
pub(crate) fn swiglu(gate_up: &Tensor) -> Result<Tensor> {
    let (gate, up) = halves(gate_up)?;
    ((&gate * sigmoid(&gate)?)? * up)?.to_dtype(gate_up.dtype())
}

/// The gradient of `gate ‖ up`. d_out `[T, I]` → `[T, 2I]`
pub(crate) fn swiglu_backward(gate_up: &Tensor, d_out: &Tensor) -> Result<Tensor> {
    let (gate, up) = halves(gate_up)?;
    let (s, d_out) = (sigmoid(&gate)?, wide(d_out)?);
    let d_up = ((&d_out * &gate)? * &s)?;
    let slope = ((&gate * (1.0 - &s)?)? + 1.0)?;
    let d_gate = (((d_out * up)? * s)? * slope)?;
    Tensor::cat(&[d_gate, d_up], 1)?.to_dtype(gate_up.dtype())
}

/// Adds row i of `rows` to row `ids[i]` of `sums` `[V, H]`, f32.
pub(crate) fn scatter(rows: &Tensor, ids: &Tensor, sums: &Tensor) -> Result<()> {
    sums.slice_set(&sums.index_add(ids, &wide(rows)?, 0)?, 0, 0)
}

/// One step of AdamW in place; see [`adamw::update`](super::adamw::update).
pub(crate) fn adamw(state: State<'_>, gradient: &Tensor, by: Coefficients) -> Result<()> {
    let g = (gradient * f64::from(by.scale))?;
    let mix = |moment: &Tensor, term: Tensor, i: usize| {
        (moment * f64::from(by.betas[i]))? + (term * f64::from(by.complements[i]))?
    };
    let first = mix(state.first, g.clone(), 0)?;
    let second = mix(state.second, g.sqr()?, 1)?;
    let below = ((second.sqrt()? * f64::from(by.correction))? + f64::from(by.epsilon))?;
    let step = ((&first * f64::from(by.rate))? / below)?;
    let moved = ((state.parameter * f64::from(by.keep))? - step)?;
    state.first.slice_set(&first, 0, 0)?;
    state.second.slice_set(&second, 0, 0)?;
    state.parameter.slice_set(&moved, 0, 0)?;
    match state.copy {
        Some(copy) => copy.slice_set(&moved.to_dtype(copy.dtype())?, 0, 0),
        None => Ok(()),
    }
}
