//! RMSNorm with a gain, fused with the preceding addition to the residual stream. The formula is in
//! [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor};

use crate::ops::gpu::linear::column_sums;
use crate::ops::gpu::{floats, launch, like, reference, threads_for};
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

/// `x + delta` and its RMSNorm. All `[T, H]`, gain `[H]`.
///
/// The sum is rounded to the compute dtype before it is normalized, so that both results come from the same
/// values.
pub(crate) fn add_forward(
    kernels: &Kernels,
    x: &Tensor,
    delta: &Tensor,
    gain: &Tensor,
    eps: f32,
) -> Result<(Tensor, Tensor)> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.launcher_for_widths(x.dtype(), &[width]) else {
        let sum = (x + delta)?;
        let normed = reference::rms_norm(&sum, gain, eps)?;
        return Ok((sum, normed));
    };
    let (sum, out) = (like(launcher, x)?, like(launcher, x)?);
    launch(
        launcher,
        "add_rms_norm",
        n_rows,
        threads_for(width, x.dtype()),
        &[
            Arg::In(x),
            Arg::In(delta),
            Arg::In(gain),
            Arg::Out(&sum),
            Arg::Out(&out),
            count(width),
            Arg::F32(eps),
        ],
    )?;
    Ok((sum, out))
}

/// x `[T, H]`, gain `[H]` → `[T, H]`.
pub(crate) fn forward(kernels: &Kernels, x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.launcher_for_widths(x.dtype(), &[width]) else {
        return reference::rms_norm(x, gain, eps);
    };
    let out = like(launcher, x)?;
    launch(
        launcher,
        "add_rms_norm",
        n_rows,
        threads_for(width, x.dtype()),
        &[Arg::In(x), Arg::Nothing, Arg::In(gain), Arg::Nothing, Arg::Out(&out), count(width), Arg::F32(eps)],
    )?;
    Ok(out)
}

/// The gradient of x: through the norm (`d_out`) and through the residual connection (`d_residual`). Adds the
/// gradient of the gain to `d_gain` `[H]`, f32.
pub(crate) fn backward(
    kernels: &Kernels,
    x: &Tensor,
    gain: &Tensor,
    eps: f32,
    (d_out, d_residual): (&Tensor, &Tensor),
    d_gain: &Tensor,
) -> Result<Tensor> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.launcher_for_widths(x.dtype(), &[width]) else {
        let (d_x, inverses) = reference::rms_norm_backward(x, gain, eps, d_out, d_residual)?;
        column_sums(kernels, d_out, Some((x, &inverses)), d_gain)?;
        return Ok(d_x);
    };
    let (d_x, inverses) = (like(launcher, x)?, floats(launcher, n_rows)?);
    launch(
        launcher,
        "rms_norm_backward",
        n_rows,
        threads_for(width, x.dtype()),
        &[
            Arg::In(x),
            Arg::In(gain),
            Arg::In(d_out),
            Arg::In(d_residual),
            Arg::Out(&d_x),
            Arg::Out(&inverses),
            count(width),
            Arg::F32(eps),
        ],
    )?;
    column_sums(kernels, d_out, Some((x, &inverses)), d_gain)?;
    Ok(d_x)
}
