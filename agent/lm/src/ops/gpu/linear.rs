//! Matrix products: cuBLAS on a GPU, candle's `gemm` on the CPU.
//!
//! `y = x Wᵀ` keeps the compute dtype. Logits and gradients of weights need f32 results from bf16 operands:
//! [`product`] accumulates in f32 and stores in the dtype of the result.

use candle_core::{Result, Tensor};

use crate::ops::gpu::{floats, launch_grid, reference};
use webshop_kernels::cpu::matmul::Store;
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// Number of rows that one thread sums.
const ROWS_EACH: usize = 256;
/// Threads of a block of `column_sums`.
const THREADS: usize = 128;

/// x `[T, in]`, weight `[out, in]` → `[T, out]`.
pub(crate) fn forward(kernels: &Kernels, x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let Some(launcher) = kernels.launcher() else {
        return x.matmul(&weight.t()?);
    };
    let y = launcher.empty((x.dim(0)?, weight.dim(0)?).into(), x.dtype())?;
    launcher.product(x, &weight.t()?, &y, Store::Set)?;
    Ok(y)
}

/// Returns dx for dy `[T, out]`; adds dW to `d_weight`, f32.
pub(crate) fn backward(
    kernels: &Kernels,
    x: &Tensor,
    weight: &Tensor,
    d_y: &Tensor,
    d_weight: &Tensor,
) -> Result<Tensor> {
    product(kernels, &d_y.t()?, x, d_weight, Store::Add)?;
    d_y.matmul(weight)
}

/// `out = a · b` or `out += a · b`, where `out` is f32. `[m, k] · [k, n] → [m, n]`
pub(crate) fn product(kernels: &Kernels, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
    match kernels.launcher() {
        Some(launcher) => launcher.product(a, b, out, store),
        None => reference::product(a, b, out, store),
    }
}

/// The gradient of a bias: adds the column sums of `d_y` `[T, out]` to `sums` `[out]`.
pub(crate) fn bias_backward(kernels: &Kernels, d_y: &Tensor, sums: &Tensor) -> Result<()> {
    column_sums(kernels, d_y, None, sums)
}

/// Adds to `sums` the column sums of `d_y`, weighted by x · inverse if these are given.
pub(super) fn column_sums(
    kernels: &Kernels,
    d_y: &Tensor,
    weights: Option<(&Tensor, &Tensor)>,
    sums: &Tensor,
) -> Result<()> {
    let (n_rows, width) = d_y.dims2()?;
    let partial = match kernels.launcher() {
        Some(launcher) => {
            let n_parts = n_rows.div_ceil(ROWS_EACH);
            let partial = floats(launcher, (n_parts, width))?;
            let (x, inverses) =
                weights.map_or((Arg::Nothing, Arg::Nothing), |(x, inverses)| (Arg::In(x), Arg::In(inverses)));
            launch_grid(
                launcher,
                "column_sums",
                [width.div_ceil(THREADS), n_parts, 1],
                THREADS,
                &[
                    Arg::In(d_y),
                    x,
                    inverses,
                    Arg::Out(&partial),
                    count(n_rows),
                    count(width),
                    count(ROWS_EACH),
                ],
            )?;
            partial
        }
        None => reference::column_addends(d_y, weights)?,
    };
    sums.slice_set(&(sums + partial.sum(0)?)?, 0, 0)
}
