//! The optimizers with f32 state, clipping by global norm, and the learning rate of each step.
//!
//! [`Optimizer`] owns the moments of every named parameter and updates the parameters in place; [`Schedule`]
//! gives the learning rate. Its [`Method`] is AdamW for all of them, or [`muon`] for the weight matrices
//! between hidden layers and AdamW for the rest. AdamW: "Decoupled Weight Decay Regularization", arXiv
//! 1711.05101, algorithm 2:
//!
//! ```text
//! g ← g · min(1, c/‖g‖)                    global norm over all parameters; c — `UpdateConfig::grad_clip`, 0 for no clipping
//! m ← b₁ m + (1 − b₁) g                    m — `first`,  b₁ — `betas[0]`
//! v ← b₂ v + (1 − b₂) g²                   v — `second`, b₂ — `betas[1]`
//! w ← w − lr · λ w                         λ — `weight_decay`
//! w ← w − lr · (m / (1 − b₁ᵗ)) / (√(v / (1 − b₂ᵗ)) + ε)
//! ```
//!
//! Deviations from the paper: none in the equations; decay skips norms and biases ([`is_decayed`]), as is
//! usual for transformers. A gradient with a NaN or an infinity changes nothing at all, neither parameters
//! nor moments nor t. Parameters are names and candle variables. [`DeviceOptimizer`] is the optimizer of the
//! gpu backend.

mod device;
mod file;
mod muon;

pub(crate) use crate::optimizer::device::DeviceOptimizer;

use std::path::Path;

use candle_core::{Device, Tensor, Var};
use rayon::prelude::*;

use crate::config::{Decay, Method, OptimizerConfig};
use crate::error::{Result, TrainingError};
use crate::math::power;

/// The learning rate as a function of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Schedule {
    /// The highest rate.
    pub(crate) peak: f64,
    /// Steps of linear rise; step `warmup − 1` is the first at `peak`.
    pub(crate) warmup: u64,
    /// Steps in all; a linear decay would reach 0 at step `total`.
    pub(crate) total: u64,
    /// The schedule after the warm-up.
    pub(crate) decay: Decay,
}

impl Schedule {
    /// The learning rate of step `step`, from 0. `spent`, 0 to 1, is the used share of another budget
    /// (tokens); a linear decay follows the larger of both shares. Positive for `step < total` and `spent <
    /// 1`.
    pub(crate) fn lr(&self, step: u64, spent: f64) -> f64 {
        if step < self.warmup {
            return self.peak * (step + 1) as f64 / self.warmup as f64;
        }
        match self.decay {
            Decay::None => self.peak,
            Decay::Linear => {
                let left = self.total.saturating_sub(step) as f64;
                let whole = self.total.saturating_sub(self.warmup).max(1) as f64;
                self.peak * (left / whole).min(1.0 - spent)
            }
        }
    }
}

/// Whether weight decay applies to the parameter of this name: not to biases and normalization gains.
pub(crate) fn is_decayed(name: &str) -> bool {
    !name.ends_with("bias") && !name.contains("norm")
}

/// The size of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UpdateConfig {
    /// Learning rate.
    pub(crate) lr: f64,
    /// c, the largest global gradient norm; 0 for no clipping.
    pub(crate) grad_clip: f64,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepOutcome {
    /// The parameters were updated.
    Stepped {
        /// Global gradient norm before clipping.
        grad_norm: f64,
    },
    /// Nothing changed, because the gradient has a NaN or an infinity.
    NonFinite {
        /// The first parameter, in order, with a NaN or an infinity in its gradient.
        parameter: String,
    },
}

/// Bytes of the state of [`Optimizer::new`] for these parameters.
pub(crate) fn bytes_of_moments(method: Method, parameters: &[(String, Var)]) -> u64 {
    let averages = |(name, var): &(String, Var)| {
        let is_muon = method == Method::Muon && muon::is_hidden_matrix(name, var.dims());
        var.elem_count() * if is_muon { 1 } else { 2 }
    };
    parameters.iter().map(averages).sum::<usize>() as u64 * size_of::<f32>() as u64
}

/// The optimizer of a set of parameters, with its state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Optimizer {
    config: OptimizerConfig,
    step: u64,
    moments: Vec<Moments>,
}

#[derive(Debug, Clone, PartialEq)]
struct Moments {
    name: String,
    method: Method,
    first: Vec<f32>,
    /// Empty for a parameter updated by Muon.
    second: Vec<f32>,
}

impl Optimizer {
    /// Zero moments for `parameters`, whose order and sizes every later call must keep.
    pub(crate) fn new(method: Method, config: &OptimizerConfig, parameters: &[(String, Var)]) -> Self {
        let moments = parameters
            .iter()
            .map(|(name, var)| {
                let size = var.elem_count();
                let is_muon = method == Method::Muon && muon::is_hidden_matrix(name, var.dims());
                let (method, second) = if is_muon { (method, 0) } else { (Method::Adamw, size) };
                Moments { name: name.clone(), method, first: vec![0.0; size], second: vec![0.0; second] }
            })
            .collect();
        Self { config: config.clone(), step: 0, moments }
    }

    /// Number of steps applied; steps with a non-finite gradient do not count.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// One step on `parameters`, given one flat gradient for each in the same order. `gradients` are scaled
    /// in place when they are clipped.
    ///
    /// Fails, without changing anything, if names or sizes differ from those of the optimizer.
    pub(crate) fn step(
        &mut self,
        parameters: &[(String, Var)],
        gradients: &mut [Vec<f32>],
        UpdateConfig { lr, grad_clip }: UpdateConfig,
    ) -> Result<StepOutcome> {
        self.check(parameters, gradients)?;
        let outcome = self.clip(gradients, grad_clip);
        if let StepOutcome::NonFinite { .. } = outcome {
            return Ok(outcome);
        }
        self.step += 1;
        let (config, t) = (&self.config, self.step);
        let all = self.moments.par_iter_mut().zip(parameters).zip(gradients.par_iter());
        all.try_for_each(|((moments, (_, var)), gradient)| {
            let mut values = var.flatten_all()?.to_vec1::<f32>()?;
            moments.update(config, t, &mut values, gradient, (var.dims(), lr));
            var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu)?.to_device(var.device())?)
        })?;
        Ok(outcome)
    }

    fn check(&self, parameters: &[(String, Var)], gradients: &[Vec<f32>]) -> Result<()> {
        let mismatch =
            |name: &str, problem: String| TrainingError::ParameterMismatch { name: name.into(), problem };
        if parameters.len() != self.moments.len() || gradients.len() != self.moments.len() {
            let (n, given) = (self.moments.len(), (parameters.len(), gradients.len()));
            let problem = format!("expected {n} parameters and gradients, got {} and {}", given.0, given.1);
            return Err(mismatch("*", problem));
        }
        for ((moments, (name, var)), gradient) in self.moments.iter().zip(parameters).zip(gradients) {
            if moments.name != *name {
                return Err(mismatch(
                    name,
                    format!("does not match parameter `{}` of the optimizer", moments.name),
                ));
            }
            let (size, given) = (moments.first.len(), (var.elem_count(), gradient.len()));
            if given != (size, size) {
                let problem =
                    format!("has {} values and {} gradients, the optimizer {size}", given.0, given.1);
                return Err(mismatch(name, problem));
            }
        }
        Ok(())
    }

    /// Scales `gradients` to a global norm of at most `limit`. Sums in f64, in order.
    fn clip(&self, gradients: &mut [Vec<f32>], limit: f64) -> StepOutcome {
        let mut sum = 0.0;
        for (moments, gradient) in self.moments.iter().zip(gradients.iter()) {
            let square: f64 = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum();
            if !square.is_finite() {
                return StepOutcome::NonFinite { parameter: moments.name.clone() };
            }
            sum += square;
        }
        let grad_norm = f64::sqrt(sum);
        if limit > 0.0 && grad_norm > limit {
            let scale = (limit / grad_norm) as f32;
            gradients.iter_mut().flatten().for_each(|g| *g *= scale);
        }
        StepOutcome::Stepped { grad_norm }
    }

    /// Writes the moments and the step count to `path` as safetensors: `first.NAME` and `second.NAME`.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let named = self.moments.iter().map(|of| (of.name.as_str(), [&of.first[..], &of.second[..]]));
        file::save(path, self.step, named)
    }

    /// Reads the state that [`Optimizer::save`] wrote, for the same parameters in the same order.
    pub(crate) fn load(
        method: Method,
        config: &OptimizerConfig,
        parameters: &[(String, Var)],
        path: &Path,
    ) -> Result<Self> {
        let mut state = Self::new(method, config, parameters);
        let sizes = state.moments.iter().map(|of| (of.name.as_str(), [of.first.len(), of.second.len()]));
        let (step, moments) = file::load(path, sizes)?;
        state.step = step;
        for (of, [first, second]) in state.moments.iter_mut().zip(moments) {
            (of.first, of.second) = (first, second);
        }
        Ok(state)
    }
}

impl Moments {
    /// The equations of the module header, or of [`muon`], for the `t`-th step of one parameter of this
    /// `shape`.
    fn update(
        &mut self,
        config: &OptimizerConfig,
        t: u64,
        values: &mut [f32],
        gradient: &[f32],
        (shape, lr): (&[usize], f64),
    ) {
        let decay = if is_decayed(&self.name) { lr * config.weight_decay } else { 0.0 };
        let keep = (1.0 - decay) as f32;
        if self.method == Method::Muon {
            let direction = muon::direction(&mut self.first, gradient, shape[1]);
            for (w, d) in values.iter_mut().zip(direction) {
                *w = keep * *w - lr as f32 * d;
            }
            return;
        }
        let [b1, b2] = config.betas;
        let rate = (lr / (1.0 - power(b1, t))) as f32;
        let correction = (1.0 / (1.0 - power(b2, t)).sqrt()) as f32;
        let (b1, c1) = (b1 as f32, (1.0 - b1) as f32);
        let (b2, c2) = (b2 as f32, (1.0 - b2) as f32);
        let epsilon = config.epsilon as f32;
        for (((w, &g), m), v) in values.iter_mut().zip(gradient).zip(&mut self.first).zip(&mut self.second) {
            *m = b1 * *m + c1 * g;
            *v = b2 * *v + c2 * g * g;
            *w = keep * *w - rate * *m / (v.sqrt() * correction + epsilon);
        }
    }
}

#[cfg(test)]
mod tests;
