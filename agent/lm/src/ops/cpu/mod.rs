//! The operations of the CPU backend on f32 tensors, each with its gradient written out.
//!
//! A file is one operation: [`linear`], [`rms_norm`], [`swiglu`], [`attention`], [`log_prob`] and [`gather`].
//! `forward` computes the output, `backward` the gradients of the inputs from that of the output. Both read
//! tensors in place and call the kernels of [`webshop_kernels::cpu`].
//!
//! candle's backward pass is used only for the loss: its fused `rms_norm`, `rope` and `softmax_last_dim`
//! detach silently, and it accumulates gradients on one process-wide thread pool, which would serialize
//! micro-batches.

pub(crate) mod attention;
pub(crate) mod gather;
pub(crate) mod linear;
pub(crate) mod log_prob;
pub(crate) mod rms_norm;
pub(crate) mod swiglu;

use candle_core::{CpuStorage, Device, Result, Shape, Storage, Tensor, bail};

/// Calls `compute` with the values of contiguous f32 tensors on the CPU.
pub(crate) fn read<const N: usize, R>(
    tensors: [&Tensor; N],
    compute: impl FnOnce([&[f32]; N]) -> R,
) -> Result<R> {
    let guards = tensors.map(Tensor::storage_and_layout);
    let mut values: [&[f32]; N] = [&[]; N];
    for (slot, (storage, layout)) in values.iter_mut().zip(&guards) {
        *slot = match (&**storage, layout.contiguous_offsets()) {
            (Storage::Cpu(CpuStorage::F32(all)), Some((start, end))) => &all[start..end],
            (storage, _) => bail!(
                "the model computes on contiguous f32 tensors on the CPU, got {:?} {layout:?} on {:?}",
                storage.dtype(),
                storage.device().location()
            ),
        };
    }
    Ok(compute(values))
}

/// A tensor with the given values.
fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::from_vec(values, shape.into(), &Device::Cpu)
}

#[cfg(test)]
mod checks {
    //! Gradients against central differences.

    use super::*;

    /// A tensor of reproducible values between -1 and 1.
    pub(crate) fn wave(salt: usize, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        let values = (0..shape.elem_count()).map(|i| ((i * 37 + salt * 101) as f32 * 0.7).sin()).collect();
        tensor(values, shape).unwrap()
    }

    /// Compares `gradients`, one for each of `inputs`, with central differences of Σ
    /// `forward(inputs) · weights`.
    pub(crate) fn gradients_match<const N: usize>(
        inputs: [Tensor; N],
        weights: &Tensor,
        forward: impl Fn(&[Tensor; N]) -> Result<Tensor>,
        gradients: [Tensor; N],
    ) {
        const STEP: f32 = 1e-2;
        let loss = |inputs: &[Tensor; N]| {
            let terms = (forward(inputs).unwrap() * weights).unwrap().flatten_all().unwrap().to_vec1::<f32>();
            terms.unwrap().into_iter().map(f64::from).sum::<f64>()
        };
        for which in 0..N {
            assert_eq!(gradients[which].dims(), inputs[which].dims());
            let gradient = gradients[which].flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let values = inputs[which].flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for i in 0..values.len() {
                let at = |delta: f32| {
                    let mut moved = values.clone();
                    moved[i] += delta;
                    let mut inputs = inputs.clone();
                    inputs[which] = tensor(moved, inputs[which].shape()).unwrap();
                    loss(&inputs)
                };
                // Two step widths cancel the third-order error (Richardson).
                let coarse = (at(2.0 * STEP) - at(-2.0 * STEP)) / (4.0 * f64::from(STEP));
                let fine = (at(STEP) - at(-STEP)) / (2.0 * f64::from(STEP));
                let numeric = (4.0 * fine - coarse) / 3.0;
                let error = (f64::from(gradient[i]) - numeric).abs();
                assert!(
                    error < 1e-3 * numeric.abs().max(1.0),
                    "input {which}, element {i}: gradient {} but differences give {numeric}",
                    gradient[i]
                );
            }
        }
    }
}
