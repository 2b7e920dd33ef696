//! The arithmetic of one AdamW step ("Decoupled Weight Decay Regularization", arXiv 1711.05101) on a device.
//!
//! The caller computes the coefficients, including schedule, bias correction and clipping.
//!
//! ```text
//! g = scale · gradient      m ← b₁ m + (1 − b₁) g      v ← b₂ v + (1 − b₂) g²
//! w ← keep · w − rate · m / (√v · correction + ε)
//! ```

use candle_core::{Result, Tensor};

pub use crate::ops::gpu::operands::{Coefficients, State};
use crate::ops::gpu::{floats, launch, reference};
use webshop_kernels::gpu::launch::{Arg, Kernels, count};

const THREADS: usize = 256;
/// Maximum number of blocks of a pass over the values of a parameter.
const BLOCKS: usize = 1024;

/// Updates `state` in place.
pub fn update(kernels: &Kernels, state: State<'_>, gradient: &Tensor, by: Coefficients) -> Result<()> {
    let Some(launcher) = kernels.launcher() else {
        return reference::adamw(state, gradient, by);
    };
    let n = gradient.elem_count();
    launch(
        launcher,
        "adamw",
        n.div_ceil(THREADS).min(BLOCKS),
        THREADS,
        &[
            Arg::Out(state.parameter),
            Arg::Out(state.first),
            Arg::Out(state.second),
            Arg::In(gradient),
            state.copy.map_or(Arg::Nothing, Arg::Out),
            count(n),
            Arg::F32(by.scale),
            Arg::F32(by.keep),
            Arg::F32(by.rate),
            Arg::F32(by.correction),
            Arg::F32(by.betas[0]),
            Arg::F32(by.complements[0]),
            Arg::F32(by.betas[1]),
            Arg::F32(by.complements[1]),
            Arg::F32(by.epsilon),
        ],
    )
}

/// Σ x² of f32 values; the sum over blocks is in f64. Waits for the device.
pub fn sum_of_squares(kernels: &Kernels, x: &Tensor) -> Result<f64> {
    let Some(launcher) = kernels.launcher() else {
        return Ok(f64::from(x.sqr()?.sum_all()?.to_scalar::<f32>()?));
    };
    let blocks = x.elem_count().div_ceil(THREADS).min(BLOCKS);
    let partial = floats(launcher, blocks)?;
    launch(launcher, "squares", blocks, THREADS, &[Arg::In(x), Arg::Out(&partial), count(x.elem_count())])?;
    Ok(partial.to_vec1::<f32>()?.into_iter().map(f64::from).sum())
}
