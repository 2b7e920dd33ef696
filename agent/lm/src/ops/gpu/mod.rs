//! The operations of the GPU backend, on any candle device.
//!
//! A file is one operation, as in [`crate::ops::cpu`], and contains the launches of its custom kernels
//! (`gpu/cuda/*.cu` in `webshop-kernels`). With
//! [`Kernels::Reference`](webshop_kernels::gpu::launch::Kernels::Reference), or if a kernel does not support
//! the sizes, an operation calls its [`reference`] implementation. [`operands`] holds the types of both, and
//! [`reference_check`] compares the two.
//!
//! Activations `x` are in the compute dtype (f32 or bf16); gradients of weights, log-probabilities and
//! reductions are f32. Both implementations compute in f32 internally. candle's autograd is not used: every
//! gradient is written out. Only [`adamw::sum_of_squares`] and the reference implementation of the nucleus
//! wait for the device.

pub mod adamw;
pub(crate) mod attention;
pub(crate) mod decode_attention;
pub(crate) mod linear;
pub(crate) mod log_prob;
pub(crate) mod nucleus;
mod operands;
mod reference;
pub(crate) mod reference_check;
pub(crate) mod rms_norm;
pub(crate) mod rope;
pub(crate) mod rows;
pub(crate) mod swiglu;

use candle_core::{DType, Result, Shape, Tensor};

use webshop_kernels::gpu::launch::{Arg, Launch, Launcher, VECTOR_BYTES};

/// Launches a kernel on `n_blocks` blocks in a row.
fn launch(
    launcher: &dyn Launcher,
    kernel: &'static str,
    n_blocks: usize,
    threads: usize,
    args: &[Arg<'_>],
) -> Result<()> {
    launch_grid(launcher, kernel, [n_blocks, 1, 1], threads, args)
}

/// Launches a kernel on a grid of blocks.
fn launch_grid(
    launcher: &dyn Launcher,
    kernel: &'static str,
    grid: [usize; 3],
    threads: usize,
    args: &[Arg<'_>],
) -> Result<()> {
    launcher.launch(&Launch { kernel, grid, threads, args })
}

/// Number of threads for a row of `width` values, one vector per thread.
fn threads_for(width: usize, dtype: DType) -> usize {
    let vectors = width * dtype.size_in_bytes() / VECTOR_BYTES;
    vectors.next_multiple_of(32).clamp(32, 256)
}

/// An uninitialized tensor of the shape and dtype of `x`.
fn like(launcher: &dyn Launcher, x: &Tensor) -> Result<Tensor> {
    launcher.empty(x.shape().clone(), x.dtype())
}

/// An uninitialized f32 tensor.
fn floats(launcher: &dyn Launcher, shape: impl Into<Shape>) -> Result<Tensor> {
    launcher.empty(shape.into(), DType::F32)
}

/// `x` in f32.
fn wide(x: &Tensor) -> Result<Tensor> {
    x.to_dtype(DType::F32)
}
