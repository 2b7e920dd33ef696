//! The model's building blocks as candle operations that differentiate.
//!
//! Each file is one `CustomOp`: [`linear`], [`rms_norm`], [`swiglu`], [`attention`],
//! [`log_prob`]. A forward pass reads f32 values of the tensors and calls a kernel of
//! [`crate::kernels`]; a backward pass recomputes what it cheaply can instead of keeping it.
//!
//! candle's own fused `rms_norm`, `rope` and `softmax_last_dim` return tensors without a history,
//! and the gradient silently ends there; that is why these exist. Only f32 on the CPU so far.

pub mod attention;
pub mod linear;
pub mod log_prob;
pub mod rms_norm;
pub mod swiglu;

use candle_core::{CpuStorage, Device, Layout, Result, Shape, Storage, Tensor, bail};

/// The values of a contiguous f32 argument of a CPU operation.
fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("an operation of the model needs a contiguous tensor, got {layout:?}"),
    }
}

/// As [`floats`] for the storage of a tensor.
fn tensor_floats<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        Storage::Cpu(storage) => floats(storage, layout),
        _ => bail!("this operation of the model runs on the CPU only"),
    }
}

/// A tensor with the given values, for gradients.
fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> Result<Tensor> {
    Tensor::from_vec(values, shape, &Device::Cpu)
}

/// Checks a gradient by central differences; `loss` must be a scalar made from the variables.
#[cfg(test)]
fn check_gradients(variables: &[&candle_core::Var], loss: impl Fn() -> Result<Tensor>) {
    const STEP: f32 = 1e-2;
    let gradients = loss().unwrap().backward().unwrap();
    for (which, variable) in variables.iter().enumerate() {
        let gradient = gradients
            .get(variable)
            .unwrap_or_else(|| panic!("no gradient for {which}"));
        let gradient = gradient.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let values = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for i in 0..values.len() {
            let at = |delta: f32| {
                let mut moved = values.clone();
                moved[i] += delta;
                variable.set(&tensor(moved, variable.shape()).unwrap()).unwrap();
                f64::from(loss().unwrap().to_scalar::<f32>().unwrap())
            };
            // Two step widths cancel the third-order error (Richardson).
            let coarse = (at(2.0 * STEP) - at(-2.0 * STEP)) / (4.0 * f64::from(STEP));
            let fine = (at(STEP) - at(-STEP)) / (2.0 * f64::from(STEP));
            let numeric = (4.0 * fine - coarse) / 3.0;
            variable
                .set(&tensor(values.clone(), variable.shape()).unwrap())
                .unwrap();
            let error = (f64::from(gradient[i]) - numeric).abs();
            assert!(
                error < 1e-3 * numeric.abs().max(1.0),
                "variable {which}, element {i}: gradient {} but differences give {numeric}",
                gradient[i]
            );
        }
    }
}

/// A variable of reproducible values between -1 and 1, for tests.
#[cfg(test)]
fn variable(salt: usize, shape: impl Into<Shape>) -> candle_core::Var {
    let shape = shape.into();
    let values = (0..shape.elem_count())
        .map(|i| ((i * 37 + salt * 101) as f32 * 0.7).sin())
        .collect();
    candle_core::Var::from_tensor(&tensor(values, shape).unwrap()).unwrap()
}

/// Σ of the tensor's elements, each with a weight of its own, so that no gradient is symmetric.
#[cfg(test)]
fn weighted_sum(x: &Tensor) -> Result<Tensor> {
    let weights = variable(99, x.shape().clone());
    (x * weights.as_detached_tensor())?.sum_all()
}
