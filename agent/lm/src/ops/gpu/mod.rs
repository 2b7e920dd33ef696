//! The model's building blocks on any device, each in two ways.
//!
//! A file is one block, as in [`crate::ops::cpu`]. Where the model's [`Kernels`] are our own, an operation is one or two
//! launches of kernels in `kernels/cuda/`; otherwise it is its plain twin, made of candle's operations, which runs
//! anywhere. Both compute in f32 whatever they read and write, and no function here waits for the GPU.
//!
//! `x` and everything of its size are in the compute dtype (f32 or bf16); gradients of weights, log-probabilities and
//! reductions are f32. candle's history is not used: every gradient is written out.

pub mod adamw;
pub mod attention;
pub mod decode_attention;
pub mod linear;
pub mod log_prob;
pub mod nucleus;
pub mod reference_check;
pub mod rms_norm;
pub mod rope;
pub mod rows;
pub mod swiglu;


use candle_core::{DType, Result, Shape, Tensor};

use webshop_kernels::gpu::launch::Launcher;

/// Threads that share a row of `width` values, a vector each at a time.
fn threads_for(width: usize, dtype: DType) -> usize {
    let vectors = width * dtype.size_in_bytes() / webshop_kernels::gpu::launch::VECTOR_BYTES;
    vectors.next_multiple_of(32).clamp(32, 256)
}

/// A tensor like `x` for a kernel to fill.
fn like(launcher: &dyn Launcher, x: &Tensor) -> Result<Tensor> {
    launcher.empty(x.shape().clone(), x.dtype())
}

/// A tensor of f32 for a kernel to fill.
fn floats(launcher: &dyn Launcher, shape: impl Into<Shape>) -> Result<Tensor> {
    launcher.empty(shape.into(), DType::F32)
}

/// `x` in f32.
fn wide(x: &Tensor) -> Result<Tensor> {
    x.to_dtype(DType::F32)
}
