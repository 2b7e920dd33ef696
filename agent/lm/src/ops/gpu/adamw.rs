//! One step of AdamW on a device, as arithmetic: who steps, when and how far is the trainer's business.
//!
//! ```text
//! g = scale · gradient      m ← b₁ m + (1 − b₁) g      v ← b₂ v + (1 − b₂) g²
//! w ← keep · w − rate · m / (√v · correction + ε)
//! ```

use candle_core::{Result, Tensor};

use crate::ops::gpu::floats;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, count};

const THREADS: usize = 256;
/// Blocks of a pass over all values of a parameter.
const BLOCKS: usize = 1024;

/// The numbers of a step, the same for all values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// What the gradient is multiplied by: less than 1 where it is clipped.
    pub scale: f32,
    /// 1 − learning rate · weight decay.
    pub keep: f32,
    /// Learning rate / (1 − b₁ᵗ).
    pub rate: f32,
    /// 1 / √(1 − b₂ᵗ).
    pub correction: f32,
    /// b₁ and b₂.
    pub betas: [f32; 2],
    /// 1 − b₁ and 1 − b₂, rounded from double precision.
    pub complements: [f32; 2],
    /// ε.
    pub epsilon: f32,
}

/// A parameter with its moments, all f32 of one shape, and what the model computes with.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The master weight.
    pub parameter: &'a Tensor,
    /// m.
    pub first: &'a Tensor,
    /// v.
    pub second: &'a Tensor,
    /// The weight in the compute dtype, if that is not f32.
    pub copy: Option<&'a Tensor>,
}

/// Changes `state` in place.
pub fn update(kernels: &Kernels, state: State<'_>, gradient: &Tensor, by: Coefficients) -> Result<()> {
    let Some(launcher) = kernels.own() else {
        return plain(state, gradient, by);
    };
    let n = gradient.elem_count();
    launcher.launch(&Launch {
        kernel: "adamw",
        grid: [n.div_ceil(THREADS).min(BLOCKS), 1, 1],
        threads: THREADS,
        args: &[
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
    })
}

fn plain(state: State<'_>, gradient: &Tensor, by: Coefficients) -> Result<()> {
    let g = (gradient * f64::from(by.scale))?;
    let mix = |moment: &Tensor, term: Tensor, i: usize| {
        (moment * f64::from(by.betas[i]))? + (term * f64::from(by.complements[i]))?
    };
    let first = mix(state.first, g.clone(), 0)?;
    let second = mix(state.second, g.sqr()?, 1)?;
    let below = ((second.sqrt()? * f64::from(by.correction))? + f64::from(by.epsilon))?;
    let step = ((&first * f64::from(by.rate))? / below)?;
    let moved = ((state.parameter * f64::from(by.keep))? - step)?;
    state.first.slice_set(&first, 0, 0)?;
    state.second.slice_set(&second, 0, 0)?;
    state.parameter.slice_set(&moved, 0, 0)?;
    match state.copy {
        Some(copy) => copy.slice_set(&moved.to_dtype(copy.dtype())?, 0, 0),
        None => Ok(()),
    }
}

/// Σ x² of f32 values, the last additions in f64. Waits for the device.
pub fn sum_of_squares(kernels: &Kernels, x: &Tensor) -> Result<f64> {
    let Some(launcher) = kernels.own() else {
        return Ok(f64::from(x.sqr()?.sum_all()?.to_scalar::<f32>()?));
    };
    let blocks = x.elem_count().div_ceil(THREADS).min(BLOCKS);
    let partial = floats(launcher, blocks)?;
    launcher.launch(&Launch {
        kernel: "squares",
        grid: [blocks, 1, 1],
        threads: THREADS,
        args: &[Arg::In(x), Arg::Out(&partial), count(x.elem_count())],
    })?;
    Ok(partial.to_vec1::<f32>()?.into_iter().map(f64::from).sum())
}
