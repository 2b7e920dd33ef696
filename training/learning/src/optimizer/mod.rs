//! The optimizers with f32 state, clipping by global norm, and the learning rate of each step.
//!
//! [`Optimizer`] owns the moments of every named parameter and updates the parameters in place; [`Schedule`]
//! gives the learning rate. Its [`Method`] is AdamW for all of them, or [`muon`] for the weight matrices
//! between hidden layers and AdamW for the rest. AdamW: "Decoupled Weight Decay Regularization", arXiv
//! 1711.05101, algorithm 2:
//!
//! ```text
//! g ← g · min(1, c/‖g‖)                    global norm over all parameters; c — `Stride::grad_clip`, 0 for no clipping
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


pub use crate::optimizer::device::DeviceOptimizer;

use std::path::Path;

use candle_core::{Device, Tensor, Var};
use rayon::prelude::*;

use crate::config::{Decay, Method, OptimizerConfig};
use crate::error::{Result, TrainingError};

/// The learning rate as a function of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The highest rate.
    pub peak: f64,
    /// Steps of linear rise; step `warmup − 1` is the first at `peak`.
    pub warmup: u64,
    /// Steps in all; a linear decay would reach 0 at step `total`.
    pub total: u64,
    /// The schedule after the warm-up.
    pub decay: Decay,
}

impl Schedule {
    /// The learning rate of step `step`, from 0. `spent`, 0 to 1, is the used share of another budget
    /// (tokens); a linear decay follows the larger of both shares. Positive for `step < total` and `spent <
    /// 1`.
    pub fn lr(&self, step: u64, spent: f64) -> f64 {
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
pub fn is_decayed(name: &str) -> bool {
    !name.ends_with("bias") && !name.contains("norm")
}

/// The size of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stride {
    /// Learning rate.
    pub lr: f64,
    /// c, the largest global gradient norm; 0 for no clipping.
    pub grad_clip: f64,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
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
pub fn bytes_of_moments(method: Method, parameters: &[(String, Var)]) -> u64 {
    let averages = |(name, var): &(String, Var)| {
        let is_muon = method == Method::Muon && muon::is_hidden_matrix(name, var.dims());
        var.elem_count() * if is_muon { 1 } else { 2 }
    };
    parameters.iter().map(averages).sum::<usize>() as u64 * size_of::<f32>() as u64
}

/// The optimizer of a set of parameters, with its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
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
    pub fn new(method: Method, config: &OptimizerConfig, parameters: &[(String, Var)]) -> Self {
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
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// One step on `parameters`, given one flat gradient for each in the same order. `gradients` are scaled
    /// in place when they are clipped.
    ///
    /// Fails, without changing anything, if names or sizes differ from those of the optimizer.
    pub fn step(
        &mut self,
        parameters: &[(String, Var)],
        gradients: &mut [Vec<f32>],
        Stride { lr, grad_clip }: Stride,
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
                return Err(mismatch(name, format!("does not match parameter `{}` of the optimizer", moments.name)));
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
    pub fn save(&self, path: &Path) -> Result<()> {
        let named = self.moments.iter().map(|of| (of.name.as_str(), [&of.first[..], &of.second[..]]));
        file::save(path, self.step, named)
    }

    /// Reads the state that [`Optimizer::save`] wrote, for the same parameters in the same order.
    pub fn load(
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

/// `base` to the power `n` by squaring in a fixed order; `powi` may round differently from one machine to
/// another.
fn power(base: f64, n: u64) -> f64 {
    match n {
        0 => 1.0,
        _ => {
            let half = power(base, n / 2);
            if n.is_multiple_of(2) { half * half } else { half * half * base }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, values: &[f32]) -> (String, Var) {
        (name.into(), Var::from_slice(values, values.len(), &Device::Cpu).unwrap())
    }

    fn values(parameter: &(String, Var)) -> Vec<f32> {
        parameter.1.to_vec1().unwrap()
    }

    fn config(weight_decay: f64) -> OptimizerConfig {
        OptimizerConfig { weight_decay, ..OptimizerConfig::default() }
    }

    /// Without clipping.
    fn at(lr: f64) -> Stride {
        Stride { lr, grad_clip: 0.0 }
    }

    #[track_caller]
    fn near(a: f32, b: f32) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    #[test]
    fn two_steps_follow_the_equations() {
        let parameters = [parameter("q_proj.weight", &[1.0])];
        let mut adam = Optimizer::new(Method::Adamw, &config(0.5), &parameters);
        // t = 1: m̂ = g = .5, √v̂ = .5, so the step is lr = .1; decay takes .1 · .5 · 1 = .05. 1 − .05 − .1 =
        // .85
        adam.step(&parameters, &mut [vec![0.5]], at(0.1)).unwrap();
        near(values(&parameters[0])[0], 0.85);
        // t = 2, g = −1: m = .9 · .05 − .1 = −.055, m̂ = −.055 / .19 = −.2894737; v = .999 · .00025 + .001 =
        // .00124975, v̂ = .00124975 / .001999 = .6251876, √v̂ = .7906880; step = +.1 · .2894737 / .7906880 =
        // .0366104; decay = .05 · .85 = .0425. .85 − .0425 + .0366104 = .8441104
        adam.step(&parameters, &mut [vec![-1.0]], at(0.1)).unwrap();
        near(values(&parameters[0])[0], 0.844_110_4);
        assert_eq!(adam.steps(), 2);
    }

    #[test]
    fn norms_and_biases_do_not_decay() {
        let parameters = [parameter("input_layernorm.weight", &[1.0]), parameter("q_proj.bias", &[1.0])];
        let mut adam = Optimizer::new(Method::Adamw, &config(0.5), &parameters);
        adam.step(&parameters, &mut [vec![0.0], vec![0.0]], at(0.1)).unwrap();
        assert_eq!((values(&parameters[0]), values(&parameters[1])), (vec![1.0], vec![1.0]));
        assert!(is_decayed("model.embed_tokens.weight") && !is_decayed("model.norm.weight"));
    }

    #[test]
    fn clipping_is_by_the_norm_over_all_parameters() {
        let parameters = [parameter("a", &[0.0]), parameter("b", &[0.0])];
        let mut gradients = [vec![3.0], vec![4.0]];
        let mut adam = Optimizer::new(Method::Adamw, &config(0.0), &parameters);
        let outcome = adam.step(&parameters, &mut gradients, Stride { lr: 0.1, grad_clip: 1.0 }).unwrap();
        // √(9 + 16) = 5, so both shrink to a fifth.
        assert_eq!(outcome, StepOutcome::Stepped { grad_norm: 5.0 });
        near(gradients[0][0], 0.6);
        near(gradients[1][0], 0.8);
    }

    #[test]
    fn a_gradient_that_is_not_finite_changes_nothing() {
        let parameters = [parameter("a", &[1.0]), parameter("b", &[1.0])];
        let mut adam = Optimizer::new(Method::Adamw, &config(0.1), &parameters);
        adam.step(&parameters, &mut [vec![1.0], vec![1.0]], at(0.1)).unwrap();
        let (before, weights) = (adam.clone(), values(&parameters[0]));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let outcome = adam.step(&parameters, &mut [vec![1.0], vec![bad]], at(0.1)).unwrap();
            assert_eq!(outcome, StepOutcome::NonFinite { parameter: "b".into() });
        }
        assert_eq!((adam, values(&parameters[0])), (before, weights));
    }

    #[test]
    fn another_model_is_refused() {
        let parameters = [parameter("a", &[1.0])];
        let mut adam = Optimizer::new(Method::Adamw, &config(0.0), &parameters);
        let error = adam.step(&[parameter("b", &[1.0])], &mut [vec![1.0]], at(0.1)).unwrap_err();
        assert_eq!(error.to_string(), "parameter `b`: does not match parameter `a` of the optimizer");
        let error = adam.step(&parameters, &mut [vec![1.0, 2.0]], at(0.1)).unwrap_err();
        assert_eq!(error.to_string(), "parameter `a`: has 1 values and 2 gradients, the optimizer 1");
    }

    #[test]
    fn saved_state_continues_to_the_same_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optimizer.safetensors");
        let parameters = [parameter("a", &[0.3, -0.7]), parameter("b.bias", &[0.1])];
        let mut straight = Optimizer::new(Method::Adamw, &config(0.01), &parameters);
        straight.step(&parameters, &mut [vec![0.1, 0.2], vec![0.3]], at(0.01)).unwrap();
        straight.save(&path).unwrap();
        let loaded = Optimizer::load(Method::Adamw, &config(0.01), &parameters, &path).unwrap();
        assert_eq!(loaded, straight);

        let larger = [parameter("a", &[0.3, -0.7, 1.0]), parameter("b.bias", &[0.1])];
        let error = Optimizer::load(Method::Adamw, &config(0.01), &larger, &path).unwrap_err();
        assert!(error.to_string().ends_with("`first.a` is not 3 values of f32"), "{error}");
        std::fs::write(&path, "not tensors").unwrap();
        assert!(Optimizer::load(Method::Adamw, &config(0.01), &parameters, &path).is_err());
    }

    #[test]
    fn muon_updates_matrices_and_adam_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optimizer.safetensors");
        let matrix = Var::from_tensor(&Tensor::zeros((2, 2), candle_core::DType::F32, &Device::Cpu).unwrap());
        let parameters = [("q_proj.weight".to_string(), matrix.unwrap()), parameter("q_proj.bias", &[0.0])];
        let mut optimizer = Optimizer::new(Method::Muon, &config(0.0), &parameters);
        optimizer.step(&parameters, &mut [vec![3.0, 0.0, 0.0, 4.0], vec![2.0]], at(0.1)).unwrap();
        let moved = parameters[0].1.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        // Both directions by about lr · .2 · √2 = .028, whatever their gradients; Adam's first step is lr.
        assert!(
            moved[0] < -0.019 && moved[0] > -0.035 && moved[3] < -0.019 && moved[3] > -0.035,
            "{moved:?}"
        );
        near(values(&parameters[1])[0], -0.1);

        optimizer.save(&path).unwrap();
        let loaded = Optimizer::load(Method::Muon, &config(0.0), &parameters, &path).unwrap();
        assert_eq!(loaded, optimizer);
        assert!(Optimizer::load(Method::Adamw, &config(0.0), &parameters, &path).is_err());
    }

    #[test]
    fn the_learning_rate_rises_then_stays_or_falls() {
        let constant = Schedule { peak: 1.0, warmup: 4, decay: Decay::None, total: 8 };
        let rates: Vec<f64> = (0..8).map(|step| constant.lr(step, 0.0)).collect();
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]);
        let linear = Schedule { decay: Decay::Linear, ..constant };
        let rates: Vec<f64> = (0..9).map(|step| linear.lr(step, 0.0)).collect();
        assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]);
        let cold = Schedule { warmup: 0, ..constant };
        assert_eq!(cold.lr(0, 0.0), 1.0);
        // Half of the steps are done, and three quarters of another budget.
        assert_eq!((linear.lr(6, 0.75), linear.lr(6, 0.25)), (0.25, 0.5));
    }
}
