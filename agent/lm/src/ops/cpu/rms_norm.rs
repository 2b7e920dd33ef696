//! RMSNorm with a gain; the formula is in [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor, bail};

use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::rows;
use webshop_kernels::cpu::threads::Threads;

fn check(x: &Tensor, weight: &Tensor) -> Result<()> {
    match (x.dims(), weight.dims()) {
        (&[_, width], &[gain]) if width == gain => Ok(()),
        (x, weight) => bail!("a gain of shape {weight:?} does not fit rows of {x:?}"),
    }
}

/// x `[T, H]`, gain `[H]` → `[T, H]`.
pub(crate) fn forward(x: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    check(x, weight)?;
    let mut y = vec![0.0; x.elem_count()];
    read([x, weight], |[x, weight]| {
        let width = weight.len();
        let threads = Threads::for_width(width);
        threads.each_part([(x, width)], (&mut y, width), |[x], y| rows::rms_norm(x, weight, eps, y));
    })?;
    tensor(y, x.shape())
}

/// (dx, d_gain) from dy `[T, H]`.
///
/// If x also feeds a residual connection, `d_residual` is the gradient from there; it is added to dx.
pub(crate) fn backward(
    x: &Tensor,
    weight: &Tensor,
    eps: f32,
    d_y: &Tensor,
    d_residual: Option<&Tensor>,
) -> Result<(Tensor, Vec<f32>)> {
    check(x, weight)?;
    let mut d_x = match d_residual {
        Some(residual) => read([residual], |[residual]| residual.to_vec())?,
        None => vec![0.0; x.elem_count()],
    };
    let mut d_weight = vec![0.0; weight.elem_count()];
    read([x, weight, d_y], |[x, weight, d_y]| {
        rows::rms_norm_backward(x, weight, eps, d_y, &mut d_x, &mut d_weight);
    })?;
    Ok((tensor(d_x, x.shape())?, d_weight))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    #[test]
    fn gradients_match_finite_differences() {
        let (x, w, d_y) = (wave(1, (3, 20)), wave(2, 20), wave(3, (3, 20)));
        let (d_x, d_w) = backward(&x, &w, 1e-6, &d_y, None).unwrap();
        let d_w = tensor(d_w, 20).unwrap();
        gradients_match([x, w], &d_y, |[x, w]| forward(x, w, 1e-6), [d_x, d_w]);
    }

    #[test]
    fn gradients_match_finite_differences_with_a_residual() {
        let (x, w, d_y) = (wave(1, (3, 20)), wave(2, 20), wave(3, (3, 20)));
        let (d_x, d_w) = backward(&x, &w, 1e-6, &d_y, Some(&d_y)).unwrap();
        let d_w = tensor(d_w, 20).unwrap();
        gradients_match([x, w], &d_y, |[x, w]| forward(x, w, 1e-6)? + x, [d_x, d_w]);
    }
}
