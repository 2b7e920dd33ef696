//! RMSNorm with a gain, fused with the addition to the residual stream before it; the formula is in
//! [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor};

use crate::ops::gpu::linear::column_sums;
use crate::ops::gpu::{floats, like, threads_for, wide};
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};

/// The stream after adding `delta` to `x`, and its norm. All `[T, H]`, gain `[H]`.
///
/// The sum is rounded to the compute dtype before it is normalized, as it is when it is read later.
pub fn add_forward(
    kernels: &Kernels,
    x: &Tensor,
    delta: &Tensor,
    gain: &Tensor,
    eps: f32,
) -> Result<(Tensor, Tensor)> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.for_widths(x.dtype(), &[width]) else {
        let sum = (x + delta)?;
        let normed = plain(&sum, gain, eps)?;
        return Ok((sum, normed));
    };
    let (sum, out) = (like(launcher, x)?, like(launcher, x)?);
    launcher.launch(&Launch {
        kernel: "add_rms_norm",
        grid: [n_rows, 1, 1],
        threads: threads_for(width, x.dtype()),
        args: &[
            Arg::In(x),
            Arg::In(delta),
            Arg::In(gain),
            Arg::Out(&sum),
            Arg::Out(&out),
            count(width),
            Arg::F32(eps),
        ],
    })?;
    Ok((sum, out))
}

/// x `[T, H]`, gain `[H]` → `[T, H]`.
pub fn forward(kernels: &Kernels, x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.for_widths(x.dtype(), &[width]) else {
        return plain(x, gain, eps);
    };
    let out = like(launcher, x)?;
    launcher.launch(&Launch {
        kernel: "add_rms_norm",
        grid: [n_rows, 1, 1],
        threads: threads_for(width, x.dtype()),
        args: &[
            Arg::In(x),
            Arg::Nothing,
            Arg::In(gain),
            Arg::Nothing,
            Arg::Out(&out),
            count(width),
            Arg::F32(eps),
        ],
    })?;
    Ok(out)
}

fn inverse_rms(x: &Tensor, eps: f32) -> Result<Tensor> {
    (x.sqr()?.mean_keepdim(1)? + f64::from(eps))?.sqrt()?.recip() // [T, 1]
}

fn plain(x: &Tensor, gain: &Tensor, eps: f32) -> Result<Tensor> {
    let dtype = x.dtype();
    let x = wide(x)?;
    x.broadcast_mul(&inverse_rms(&x, eps)?)?.broadcast_mul(&wide(gain)?)?.to_dtype(dtype)
}

/// The gradient with respect to x of a norm and of the stream that passes it by (`d_residual`); that of the gain is
/// added to `d_gain` `[H]`, f32.
pub fn backward(
    kernels: &Kernels,
    x: &Tensor,
    gain: &Tensor,
    eps: f32,
    (d_out, d_residual): (&Tensor, &Tensor),
    d_gain: &Tensor,
) -> Result<Tensor> {
    let (n_rows, width) = x.dims2()?;
    let Some(launcher) = kernels.for_widths(x.dtype(), &[width]) else {
        return plain_backward(kernels, x, gain, eps, (d_out, d_residual), d_gain);
    };
    let (d_x, inverses) = (like(launcher, x)?, floats(launcher, n_rows)?);
    launcher.launch(&Launch {
        kernel: "rms_norm_backward",
        grid: [n_rows, 1, 1],
        threads: threads_for(width, x.dtype()),
        args: &[
            Arg::In(x),
            Arg::In(gain),
            Arg::In(d_out),
            Arg::In(d_residual),
            Arg::Out(&d_x),
            Arg::Out(&inverses),
            count(width),
            Arg::F32(eps),
        ],
    })?;
    column_sums(kernels, d_out, Some((x, &inverses)), d_gain)?;
    Ok(d_x)
}

fn plain_backward(
    kernels: &Kernels,
    x: &Tensor,
    gain: &Tensor,
    eps: f32,
    (d_out, d_residual): (&Tensor, &Tensor),
    d_gain: &Tensor,
) -> Result<Tensor> {
    let (values, width) = (wide(x)?, x.dim(1)?);
    let inverse = inverse_rms(&values, eps)?; // [T, 1]
    let g = wide(d_out)?.broadcast_mul(&wide(gain)?)?;
    let along = ((&g * &values)?.sum_keepdim(1)? / width as f64)?; // [T, 1]
    let pull = (along * inverse.powf(3.0)?)?;
    let d_x = (g.broadcast_mul(&inverse)? - values.broadcast_mul(&pull)?)?;
    column_sums(kernels, d_out, Some((x, &inverse.squeeze(1)?)), d_gain)?;
    (wide(d_residual)? + d_x)?.to_dtype(x.dtype())
}
