//! Comparison of every kernel with its reference implementation, on the same inputs and device.
//!
//! [`compare`] runs each operation of [`crate::ops::gpu`] with both and returns the relative distances. Tests
//! call it with the emulated kernels, the GPU benchmark with the compiled ones.

use std::ops::Range;

use candle_core::{DType, Device, Result, Shape, Tensor};

use crate::generation::sampler::Sampler;
use crate::ops::gpu::adamw;
use crate::ops::gpu::adamw::{Coefficients, State};
use crate::ops::gpu::attention;
use crate::ops::gpu::attention::Sequence;
use crate::ops::gpu::decode_attention;
use crate::ops::gpu::decode_attention::{LayerCache, NewTokens};
use crate::ops::gpu::rope;
use crate::ops::gpu::rope::RopeTable;
use crate::ops::gpu::rows;
use crate::ops::gpu::rows::Placement;
use crate::ops::gpu::{linear, log_prob, rms_norm, swiglu};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::cpu::rope::Rope;
use webshop_kernels::gpu::launch::Kernels;

/// The distance of a kernel from its reference implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceCheck {
    /// The operation.
    pub name: &'static str,
    /// ‖kernel − reference‖ / ‖reference‖, the largest over the operation's results; infinite if one is not
    /// finite.
    pub error: f64,
}

/// The sizes used for the comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckSizes {
    pub(crate) heads: Heads,
    pub(crate) hidden: usize,
    pub(crate) inner: usize,
    pub(crate) vocab_size: usize,
    pub(crate) tokens: usize,
    pub(crate) capacity: usize,
}

const EPS: f32 = 1e-6;

/// A tensor of reproducible values between −1 and 1.
pub(crate) fn wave(salt: usize, shape: impl Into<Shape>, dtype: DType) -> Tensor {
    let shape = shape.into();
    let values = (0..shape.elem_count()).map(|i| ((i % 65_521 * 37 + salt * 101) as f32 * 0.7).sin());
    Tensor::from_iter(values, &Device::Cpu)
        .and_then(|values| values.reshape(shape)?.to_dtype(dtype))
        .expect("as many values as the shape has")
}

/// The inputs of all operations, on the device.
struct Inputs {
    device: Device,
    dtype: DType,
    sizes: CheckSizes,
    rope: RopeTable,
}

impl Inputs {
    fn wave(&self, salt: usize, shape: impl Into<Shape>) -> Result<Tensor> {
        wave(salt, shape, self.dtype).to_device(&self.device)
    }

    fn floats(&self, salt: usize, shape: impl Into<Shape>) -> Result<Tensor> {
        wave(salt, shape, DType::F32).to_device(&self.device)
    }

    fn zeros(&self, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::zeros(shape.into(), DType::F32, &self.device)
    }

    fn ids(&self, n: usize, below: usize) -> Vec<u32> {
        (0..n).map(|i| ((i * i + 7 * i) % below) as u32).collect()
    }

    fn id_tensor(&self, n: usize, below: usize) -> Result<Tensor> {
        Tensor::from_vec(self.ids(n, below), n, &self.device)
    }
}

/// The results of an operation on the inputs, with the given kernels.
type Operation = fn(&Kernels, &Inputs) -> Result<Vec<Tensor>>;

const OPERATIONS: [(&str, Operation); 13] = [
    ("residual and RMSNorm", norm_forward),
    ("RMSNorm backward", norm_backward),
    ("bias backward", bias_backward),
    ("RoPE forward and backward", rotated),
    ("RoPE and append to the cache", appended),
    ("attention of single tokens to the cache", attended),
    ("attention in blocks, forward", attention_forward),
    ("attention in blocks, backward", attention_backward),
    ("SwiGLU forward and backward", activated),
    ("rows gathered and scattered", moved),
    ("log-probabilities of targets", scored),
    ("drawing a token", drawn),
    ("AdamW and the gradient's norm", stepped),
];

/// Runs every operation with `kernels` and with its reference implementation.
pub(crate) fn compare(
    kernels: &Kernels,
    dtype: DType,
    device: &Device,
    sizes: CheckSizes,
) -> Result<Vec<ReferenceCheck>> {
    let rope = RopeTable::new(&Rope::new(sizes.heads.head_dim, 10_000.0, sizes.capacity), device)?;
    let inputs = Inputs { device: device.clone(), dtype, sizes, rope };
    let check = |(name, operation): (&'static str, Operation)| {
        let (custom, reference) = (operation(kernels, &inputs)?, operation(&Kernels::Reference, &inputs)?);
        let errors =
            custom.iter().zip(&reference).map(|(a, b)| distance(a, b)).collect::<Result<Vec<_>>>()?;
        Ok(ReferenceCheck { name, error: errors.into_iter().fold(0.0, f64::max) })
    };
    OPERATIONS.into_iter().map(check).collect()
}

/// ‖a − b‖ / ‖b‖, infinite if anything is not finite.
pub(crate) fn distance(a: &Tensor, b: &Tensor) -> Result<f64> {
    let values = |x: &Tensor| x.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>();
    let (custom, reference) = (values(a)?, values(b)?);
    let (mut error, mut size) = (0.0, 0.0);
    for (a, b) in custom.into_iter().zip(reference) {
        error += (f64::from(a) - f64::from(b)).powi(2);
        size += f64::from(b).powi(2);
    }
    let relative = if error == 0.0 { 0.0 } else { (error / size).sqrt() };
    Ok(if relative.is_nan() { f64::INFINITY } else { relative })
}

fn norm_forward(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let shape = (on.sizes.tokens, on.sizes.hidden);
    let (x, delta, gain) = (on.wave(1, shape)?, on.wave(2, shape)?, on.wave(3, on.sizes.hidden)?);
    let (sum, normed) = rms_norm::add_forward(kernels, &x, &delta, &gain, EPS)?;
    Ok(vec![sum, normed, rms_norm::forward(kernels, &x, &gain, EPS)?])
}

fn norm_backward(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let shape = (on.sizes.tokens, on.sizes.hidden);
    let (x, gain) = (on.wave(1, shape)?, on.wave(3, on.sizes.hidden)?);
    let (d_out, d_residual) = (on.wave(4, shape)?, on.wave(5, shape)?);
    let d_gain = on.floats(6, on.sizes.hidden)?;
    let d_x = rms_norm::backward(kernels, &x, &gain, EPS, (&d_out, &d_residual), &d_gain)?;
    Ok(vec![d_x, d_gain])
}

fn bias_backward(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let sums = on.floats(2, on.sizes.inner)?;
    linear::bias_backward(kernels, &on.wave(1, (on.sizes.tokens, on.sizes.inner))?, &sums)?;
    Ok(vec![sums])
}

fn rotated(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let (heads, n) = (on.sizes.heads, on.sizes.tokens);
    let (qkv, bias) = (on.wave(1, (n, heads.qkv_width()))?, on.wave(2, heads.qkv_width())?);
    let positions = on.id_tensor(n, on.sizes.capacity)?;
    Ok(vec![
        rope::forward(kernels, &qkv, &bias, &positions, &on.rope, heads)?,
        rope::backward(kernels, &qkv, &positions, &on.rope, heads)?,
    ])
}

fn cache(on: &Inputs, lanes: usize) -> Result<LayerCache> {
    let shape = (lanes, on.sizes.heads.n_kv_heads, on.sizes.capacity, on.sizes.heads.head_dim);
    Ok(LayerCache { keys: on.wave(8, shape)?, values: on.wave(9, shape)? })
}

/// An empty lane, one that becomes full, and one in between, out of order.
fn runs(capacity: usize) -> Vec<(usize, Range<usize>)> {
    vec![(2, 0..1), (0, capacity - 3..capacity), (1, capacity / 2..capacity / 2 + 2)]
}

fn appended(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let heads = on.sizes.heads;
    let new = NewTokens::new(runs(on.sizes.capacity), &on.device)?;
    let (qkv, bias) = (on.wave(1, (6, heads.qkv_width()))?, on.wave(2, heads.qkv_width())?);
    let cache = cache(on, 3)?;
    let q = decode_attention::append(kernels, &qkv, &bias, &new, &on.rope, heads, &cache)?;
    Ok(vec![q, cache.keys, cache.values])
}

fn attended(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let new = NewTokens::new(runs(on.sizes.capacity), &on.device)?;
    let q = (on.wave(1, (6, on.sizes.heads.out_width()))? * 4.0)?;
    Ok(vec![decode_attention::attend(kernels, &q, &new, on.sizes.heads, &cache(on, 3)?)?])
}

fn sequence(on: &Inputs) -> Result<Sequence> {
    let (heads, n) = (on.sizes.heads, on.sizes.tokens);
    let keys = (heads.n_kv_heads, n, heads.head_dim);
    let q = on.wave(1, (n, heads.n_heads, heads.head_dim))?;
    Ok(Sequence { q, k: on.wave(2, keys)?, v: on.wave(3, keys)?, first: 0 })
}

fn attention_forward(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    Ok(vec![attention::forward(kernels, &sequence(on)?, on.sizes.heads)?])
}

fn attention_backward(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let (heads, sequence) = (on.sizes.heads, sequence(on)?);
    let d_out = on.wave(4, sequence.q.shape().clone())?;
    let (d_q, d_k, d_v) = attention::backward(kernels, &sequence, heads, &d_out)?;
    Ok(vec![d_q, d_k, d_v])
}

fn activated(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let (n, inner) = (on.sizes.tokens, on.sizes.inner);
    let gate_up = (on.wave(1, (n, 2 * inner))? * 5.0)?;
    let d_out = on.wave(2, (n, inner))?;
    Ok(vec![swiglu::forward(kernels, &gate_up)?, swiglu::backward(kernels, &gate_up, &d_out)?])
}

fn moved(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let (n, hidden, vocab_size) = (on.sizes.tokens, on.sizes.hidden, on.sizes.vocab_size);
    let placement = Placement::new(&on.ids(n, vocab_size / 2), &on.device)?;
    let gathered = rows::gather(kernels, &on.wave(1, (vocab_size, hidden))?, placement.ids())?;
    let sums = on.floats(2, (vocab_size, hidden))?;
    rows::scatter(kernels, &on.wave(3, (n, hidden))?, &placement, &sums)?;
    Ok(vec![gathered, sums])
}

fn scored(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let (n, hidden, vocab_size) = (on.sizes.tokens, on.sizes.hidden, on.sizes.vocab_size);
    let (h, head) = (on.wave(1, (n, hidden))?, on.wave(2, (vocab_size, hidden))?);
    let (targets, d_log_prob) = (on.id_tensor(n, vocab_size)?, on.floats(3, n)?);
    let mut results = Vec::new();
    for (temperature, top_p) in [(1.0, 1.0), (0.7, 1.0), (0.9, 0.6)] {
        let sampler = Sampler::new(temperature, top_p).expect("in range");
        let scored = log_prob::forward(kernels, (&h, &head), &targets, sampler)?;
        let d_head = on.zeros((vocab_size, hidden))?;
        let d_h = log_prob::backward(kernels, (&h, &head), &targets, &scored, &d_log_prob, &d_head)?;
        results.extend([scored.stats.log_prob, scored.stats.entropy, d_h, d_head]);
        if top_p < 1.0 {
            results.push(scored.outside);
        }
    }
    Ok(results)
}

fn drawn(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let shape = (8, on.sizes.vocab_size);
    let logits = (on.floats(1, shape)? * 3.0)?;
    let uniforms = Tensor::new(&[0.0_f32, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 0.999], &on.device)?;
    let mut results = Vec::new();
    for temperature in [0.0, 0.7, 1.0] {
        let ids = Tensor::zeros(8, DType::U32, &on.device)?;
        let draws = log_prob::draw(kernels, &logits, &uniforms, temperature, &ids)?;
        results.extend([draws.ids, draws.log_prob, draws.entropy]);
    }
    Ok(results)
}

fn stepped(kernels: &Kernels, on: &Inputs) -> Result<Vec<Tensor>> {
    let shape = (on.sizes.vocab_size, on.sizes.hidden);
    let (parameter, first) = (on.floats(1, shape)?, on.floats(2, shape)?);
    let (second, gradient) = (on.floats(3, shape)?.sqr()?, on.floats(4, shape)?);
    let copy = on.wave(5, shape)?;
    let by = Coefficients {
        scale: 0.5,
        keep: 0.99,
        rate: 0.1,
        correction: 1.5,
        betas: [0.9, 0.98],
        complements: [0.1, 0.02],
        epsilon: 1e-8,
    };
    let state = State { parameter: &parameter, first: &first, second: &second, copy: Some(&copy) };
    adamw::update(kernels, state, &gradient, by)?;
    let norm = Tensor::new(adamw::sum_of_squares(kernels, &gradient)? as f32, &on.device)?;
    Ok(vec![parameter, first, second, copy, norm])
}

#[cfg(test)]
pub(crate) fn close(a: &Tensor, b: &Tensor, tolerance: f64) {
    assert_eq!(a.dims(), b.dims());
    let error = distance(a, b).unwrap();
    assert!(error <= tolerance, "{a} and {b} are {error:e} apart");
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_kernels::gpu::emulated;

    /// Compares emulated kernels with the reference implementations, at sizes that are not multiples of the
    /// blocks.
    fn check(dtype: DType, head_dim: usize, group: usize, tolerance: f64) {
        let heads = Heads { n_heads: 2 * group, n_kv_heads: 2, head_dim };
        let sizes = CheckSizes { heads, hidden: 40, inner: 72, vocab_size: 1050, tokens: 19, capacity: 150 };
        let kernels = emulated::kernels(dtype, head_dim, group);
        for check in compare(&kernels, dtype, &Device::Cpu, sizes).unwrap() {
            assert!(check.error <= tolerance, "{check:?} with {dtype:?}, {heads:?}");
        }
    }

    #[test]
    fn kernels_equal_their_references_in_f32() {
        check(DType::F32, 16, 3, 1e-5);
        check(DType::F32, 128, 1, 1e-5);
    }

    #[test]
    fn kernels_equal_their_references_in_bf16() {
        // A bf16 has 8 significant bits: one rounding changes a value by up to 2⁻⁹ = 0.002 of it.
        check(DType::BF16, 64, 7, 4e-3);
        check(DType::BF16, 8, 2, 4e-3);
    }

    #[test]
    fn the_distance_is_relative_and_infinite_for_nan() {
        let (a, b) = (wave(1, 10, DType::F32), (wave(1, 10, DType::F32) * 1.01).unwrap());
        assert!((distance(&b, &a).unwrap() - 0.01).abs() < 1e-6);
        assert_eq!(distance(&Tensor::new(f32::NAN, &Device::Cpu).unwrap(), &a).unwrap(), f64::INFINITY);
    }
}
