//! Matrix products, by cuBLAS on a GPU and by candle's `gemm` on the CPU.
//!
//! `y = x Wᵀ` keeps the compute dtype; what needs f32 results from bf16 operands (logits, gradients of weights) goes
//! through [`product`], which sums and stores in f32 and can add to what is there.

use candle_core::{Result, Tensor};

use crate::ops::gpu::{floats, wide};
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};
use webshop_kernels::Store;

/// Rows whose sum one thread makes.
const ROWS_EACH: usize = 256;
/// Threads that make sums of columns.
const THREADS: usize = 128;

/// x `[T, in]`, weight `[out, in]` → `[T, out]`.
pub fn forward(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    x.matmul(&weight.t()?)
}

/// dx from dy `[T, out]`, and dW added to `d_weight` in f32.
pub fn backward(
    kernels: &Kernels,
    x: &Tensor,
    weight: &Tensor,
    d_y: &Tensor,
    d_weight: &Tensor,
) -> Result<Tensor> {
    product(kernels, &d_y.t()?, x, d_weight, Store::Add)?;
    d_y.matmul(weight)
}

/// `out` = (or +=) `a · b` in f32. `[m, k] · [k, n] → [m, n]`
pub fn product(kernels: &Kernels, a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
    match kernels.own() {
        Some(launcher) => launcher.product(a, b, out, store),
        None => plain_product(a, b, out, store),
    }
}

/// The plain twin of [`Launcher::product`](webshop_kernels::gpu::launch::Launcher::product).
pub fn plain_product(a: &Tensor, b: &Tensor, out: &Tensor, store: Store) -> Result<()> {
    let product = wide(a)?.matmul(&wide(b)?)?;
    match store {
        Store::Set => out.slice_set(&product, 0, 0),
        Store::Add => out.slice_set(&(out + product)?, 0, 0),
    }
}

/// The sums of the columns of `d_y` `[T, out]` added to `sums` `[out]`: the gradient of a bias.
pub fn bias_backward(kernels: &Kernels, d_y: &Tensor, sums: &Tensor) -> Result<()> {
    column_sums(kernels, d_y, None, sums)
}

/// Adds to `sums` the sums over rows of `d_y`, weighted by x · inverse where these are given.
pub(super) fn column_sums(
    kernels: &Kernels,
    d_y: &Tensor,
    weights: Option<(&Tensor, &Tensor)>,
    sums: &Tensor,
) -> Result<()> {
    let (n_rows, width) = d_y.dims2()?;
    let partial = match kernels.own() {
        Some(launcher) => {
            let n_parts = n_rows.div_ceil(ROWS_EACH);
            let partial = floats(launcher, (n_parts, width))?;
            let (x, inverses) =
                weights.map_or((Arg::Nothing, Arg::Nothing), |(x, inverses)| (Arg::In(x), Arg::In(inverses)));
            launcher.launch(&Launch {
                kernel: "column_sums",
                grid: [width.div_ceil(THREADS), n_parts, 1],
                threads: THREADS,
                args: &[
                    Arg::In(d_y),
                    x,
                    inverses,
                    Arg::Out(&partial),
                    count(n_rows),
                    count(width),
                    count(ROWS_EACH),
                ],
            })?;
            partial
        }
        None => match weights {
            Some((x, inverses)) => (wide(d_y)? * wide(x)?)?.broadcast_mul(&inverses.unsqueeze(1)?)?,
            None => wide(d_y)?,
        },
    };
    sums.slice_set(&(sums + partial.sum(0)?)?, 0, 0)
}
