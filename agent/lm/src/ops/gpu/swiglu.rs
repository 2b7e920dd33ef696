//! SwiGLU on rows of `gate ‖ up`; the formula is in [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor};

use crate::ops::gpu::{like, wide};
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, VECTOR_BYTES, count};

const THREADS: usize = 256;

fn grid(n_values: usize, x: &Tensor) -> [usize; 3] {
    [(n_values * x.dtype().size_in_bytes() / VECTOR_BYTES).div_ceil(THREADS), 1, 1]
}

/// `[T, 2I]` → `[T, I]`.
pub fn forward(kernels: &Kernels, gate_up: &Tensor) -> Result<Tensor> {
    let (n_rows, width) = (gate_up.dim(0)?, gate_up.dim(1)? / 2);
    let Some(launcher) = kernels.for_widths(gate_up.dtype(), &[width]) else {
        let (gate, up) = halves(gate_up)?;
        return ((&gate * sigmoid(&gate)?)? * up)?.to_dtype(gate_up.dtype());
    };
    let out = launcher.empty((n_rows, width).into(), gate_up.dtype())?;
    launcher.launch(&Launch {
        kernel: "swiglu",
        grid: grid(out.elem_count(), &out),
        threads: THREADS,
        args: &[Arg::In(gate_up), Arg::Out(&out), count(n_rows), count(width)],
    })?;
    Ok(out)
}

/// d_out `[T, I]` → `[T, 2I]`.
pub fn backward(kernels: &Kernels, gate_up: &Tensor, d_out: &Tensor) -> Result<Tensor> {
    let (n_rows, width) = d_out.dims2()?;
    let Some(launcher) = kernels.for_widths(gate_up.dtype(), &[width]) else {
        return plain_backward(gate_up, d_out);
    };
    let d_gate_up = like(launcher, gate_up)?;
    launcher.launch(&Launch {
        kernel: "swiglu_backward",
        grid: grid(d_out.elem_count(), d_out),
        threads: THREADS,
        args: &[Arg::In(gate_up), Arg::In(d_out), Arg::Out(&d_gate_up), count(n_rows), count(width)],
    })?;
    Ok(d_gate_up)
}

fn halves(gate_up: &Tensor) -> Result<(Tensor, Tensor)> {
    let width = gate_up.dim(1)? / 2;
    let half = |start| wide(&gate_up.narrow(1, start, width)?.contiguous()?);
    Ok((half(0)?, half(width)?))
}

fn sigmoid(x: &Tensor) -> Result<Tensor> {
    (x.neg()?.exp()? + 1.0)?.recip()
}

fn plain_backward(gate_up: &Tensor, d_out: &Tensor) -> Result<Tensor> {
    let (gate, up) = halves(gate_up)?;
    let (s, d_out) = (sigmoid(&gate)?, wide(d_out)?);
    let d_up = ((&d_out * &gate)? * &s)?;
    let slope = ((&gate * (1.0 - &s)?)? + 1.0)?;
    let d_gate = (((d_out * up)? * s)? * slope)?;
    Tensor::cat(&[d_gate, d_up], 1)?.to_dtype(gate_up.dtype())
}
