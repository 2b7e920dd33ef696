//! SwiGLU of rows `gate ‖ up`. The formula is in [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor};

use crate::ops::gpu::{launch, like, reference};
use webshop_kernels::gpu::launch::{Arg, Kernels, VECTOR_BYTES, count};

const THREADS: usize = 256;

/// Number of blocks, with one thread for each vector of `x`.
fn n_blocks(x: &Tensor) -> usize {
    (x.elem_count() * x.dtype().size_in_bytes() / VECTOR_BYTES).div_ceil(THREADS)
}

/// `[T, 2I]` → `[T, I]`.
pub(crate) fn forward(kernels: &Kernels, gate_up: &Tensor) -> Result<Tensor> {
    let (n_rows, width) = (gate_up.dim(0)?, gate_up.dim(1)? / 2);
    let Some(launcher) = kernels.launcher_for_widths(gate_up.dtype(), &[width]) else {
        return reference::swiglu(gate_up);
    };
    let out = launcher.empty((n_rows, width).into(), gate_up.dtype())?;
    launch(
        launcher,
        "swiglu",
        n_blocks(&out),
        THREADS,
        &[Arg::In(gate_up), Arg::Out(&out), count(n_rows), count(width)],
    )?;
    Ok(out)
}

/// d_out `[T, I]` → `[T, 2I]`.
pub(crate) fn backward(kernels: &Kernels, gate_up: &Tensor, d_out: &Tensor) -> Result<Tensor> {
    let (n_rows, width) = d_out.dims2()?;
    let Some(launcher) = kernels.launcher_for_widths(gate_up.dtype(), &[width]) else {
        return reference::swiglu_backward(gate_up, d_out);
    };
    let d_gate_up = like(launcher, gate_up)?;
    launch(
        launcher,
        "swiglu_backward",
        n_blocks(d_out),
        THREADS,
        &[Arg::In(gate_up), Arg::In(d_out), Arg::Out(&d_gate_up), count(n_rows), count(width)],
    )?;
    Ok(d_gate_up)
}
