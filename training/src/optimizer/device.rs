//! AdamW on the device where the model is: the equations of [`super`], without a value passing through the host.
//!
//! Masters and moments are f32; a model in bf16 has its weights written from the masters in the same step. The global
//! norm of the gradient is the one number that the host waits for.

use webshop_agent::device::{ComputeDtype, DeviceModel, Parameters, adamw};

use super::{StepOutcome, is_decayed, power};
use crate::config::OptimizerConfig;
use crate::error::{Result, TrainingError};

/// The optimizer of one [`DeviceModel`] and its state.
#[derive(Debug)]
pub struct DeviceOptimizer {
    config: OptimizerConfig,
    step: u64,
    /// Shares the model's memory where that is f32 already.
    masters: Parameters,
    first: Parameters,
    second: Parameters,
    has_copies: bool,
}

impl DeviceOptimizer {
    /// Zero moments for `model`, whose weights in f32 are `masters`; `None` takes them from the model, which loses what
    /// its format cannot hold.
    pub fn new(config: &OptimizerConfig, model: &DeviceModel, masters: Option<Parameters>) -> Result<Self> {
        let has_copies = model.compute().dtype() != ComputeDtype::F32;
        let masters = match masters {
            Some(masters) if has_copies => masters,
            None if has_copies => model.weights().widened()?,
            _ => model.weights().clone(),
        };
        let moments = || Ok::<_, TrainingError>(model.weights().zeros_like()?);
        Ok(Self {
            config: config.clone(),
            step: 0,
            masters,
            first: moments()?,
            second: moments()?,
            has_copies,
        })
    }

    /// Steps applied so far; refused ones do not count.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The weights in f32.
    pub fn masters(&self) -> &Parameters {
        &self.masters
    }

    /// One step on the weights of `model`, which must be the one the optimizer was made for. A gradient with a NaN or
    /// an infinity changes nothing.
    pub fn step(&mut self, model: &DeviceModel, gradients: &Parameters, lr: f64) -> Result<StepOutcome> {
        let kernels = model.kernels();
        let mut sum = 0.0;
        for (name, gradient) in gradients.named() {
            let square = adamw::sum_of_squares(kernels, gradient)?;
            if !square.is_finite() {
                return Ok(StepOutcome::NonFinite { parameter: name.to_owned() });
            }
            sum += square;
        }
        let (grad_norm, limit) = (f64::sqrt(sum), self.config.grad_clip);
        let scale = if limit > 0.0 && grad_norm > limit { limit / grad_norm } else { 1.0 };
        self.step += 1;
        let moments = self.first.named().zip(self.second.named());
        let values = self.masters.named().zip(model.weights().named());
        for (((name, parameter), (_, copy)), (((_, first), (_, second)), (_, gradient))) in
            values.zip(moments.zip(gradients.named()))
        {
            let copy = self.has_copies.then_some(copy);
            let state = adamw::State { parameter, first, second, copy };
            adamw::update(kernels, state, gradient, self.coefficients(name, scale, lr))?;
        }
        Ok(StepOutcome::Stepped { grad_norm })
    }

    fn coefficients(&self, name: &str, scale: f64, lr: f64) -> adamw::Coefficients {
        let [b1, b2] = self.config.betas;
        let decay = if is_decayed(name) { lr * self.config.weight_decay } else { 0.0 };
        adamw::Coefficients {
            scale: scale as f32,
            keep: (1.0 - decay) as f32,
            rate: (lr / (1.0 - power(b1, self.step))) as f32,
            correction: (1.0 / (1.0 - power(b2, self.step)).sqrt()) as f32,
            betas: [b1 as f32, b2 as f32],
            complements: [(1.0 - b1) as f32, (1.0 - b2) as f32],
            epsilon: self.config.epsilon as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};
    use webshop_agent::device::{Compute, DeviceRequest, KernelChoice};
    use webshop_agent::{PackedTokens, Qwen2, Qwen2Config, Sampler};
    use webshop_products::Seed;

    use super::super::{Optimizer, Stride};
    use super::*;
    use crate::config::Method;

    fn config() -> OptimizerConfig {
        OptimizerConfig { betas: [0.9, 0.98], grad_clip: 0.01, ..OptimizerConfig::default() }
    }

    fn setup(dtype: ComputeDtype) -> (Qwen2, DeviceModel) {
        let shape = Qwen2Config { hidden_size: 16, intermediate_size: 32, ..Qwen2Config::small(40) };
        let model = Qwen2::random(&shape, Seed(1)).unwrap();
        let compute = Compute::choose(DeviceRequest::Cpu, Some(dtype), KernelChoice::Own).unwrap();
        let device = DeviceModel::new(&model, &compute).unwrap();
        (model, device)
    }

    const IDS: [u32; 12] = [1, 5, 9, 3, 30, 2, 1, 1, 39, 0, 7, 5];
    const POSITIONS: [u32; 6] = [0, 2, 3, 6, 8, 10];
    const TARGETS: [u32; 6] = [5, 3, 30, 1, 0, 5];

    fn tokens() -> PackedTokens<'static> {
        PackedTokens { ids: &IDS, lengths: &[7, 5] }
    }

    #[test]
    fn steps_equal_those_of_the_first_engine() {
        let (model, device) = setup(ComputeDtype::F32);
        let mut ours = DeviceOptimizer::new(&config(), &device, None).unwrap();
        let mut theirs = Optimizer::new(Method::Adamw, &config(), model.parameters());
        let d = [-0.1, -0.3, 0.2, -0.4, -0.1, -0.2];
        for step in 0..4 {
            let pass = model.record(&tokens(), &POSITIONS, &TARGETS, Sampler::PLAIN).unwrap();
            let weights = Tensor::new(&d, &Device::Cpu).unwrap();
            let loss = (&pass.stats().log_prob * weights).unwrap().sum_all().unwrap();
            let mut gradients = pass.backward(&loss).unwrap();
            let expected = theirs
                .step(model.parameters(), &mut gradients, Stride { lr: 1e-2, grad_clip: 0.01 })
                .unwrap();

            let gradients = device.weights().zeros_like().unwrap();
            device
                .record(&tokens(), &POSITIONS, &TARGETS, Sampler::PLAIN)
                .unwrap()
                .backward(&d, &gradients)
                .unwrap();
            let outcome = ours.step(&device, &gradients, 1e-2).unwrap();
            match (&outcome, &expected) {
                (StepOutcome::Stepped { grad_norm: a }, StepOutcome::Stepped { grad_norm: b }) => {
                    assert!((a - b).abs() < 1e-4 * b && *b > 0.01, "step {step}: {a} against {b}");
                }
                other => panic!("step {step}: {other:?}"),
            }
        }
        assert_eq!(ours.steps(), 4);
        for ((name, a), (_, b)) in
            device.weights().apart(model.config()).unwrap().iter().zip(model.parameters())
        {
            let apart = (a - b.as_tensor()).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            // Four steps of 0.01, of which Adam takes the sign: a difference in the gradient shows at once.
            assert!(apart.to_scalar::<f32>().unwrap() < 2e-4, "{name}: {apart}");
        }
    }

    #[test]
    fn masters_keep_what_bf16_drops() {
        let (model, device) = setup(ComputeDtype::Bf16);
        let masters = Parameters::masters_of(&model, device.compute()).unwrap();
        let mut optimizer = DeviceOptimizer::new(&config(), &device, Some(masters)).unwrap();
        let gradients = device.weights().zeros_like().unwrap();
        device
            .record(&tokens(), &POSITIONS, &TARGETS, Sampler::PLAIN)
            .unwrap()
            .backward(&[-1.0; 6], &gradients)
            .unwrap();
        let gain = |parameters: &Parameters| -> f32 {
            let (_, gain) = parameters.named().next().unwrap();
            gain.to_dtype(candle_core::DType::F32).unwrap().to_vec1::<f32>().unwrap()[0]
        };
        // A gain of 1 moves by 1e-4 a step; the next bf16 below 1 is 1 − 2⁻⁸ = 0.996.
        assert_eq!(gain(optimizer.masters()), 1.0);
        for _ in 0..5 {
            optimizer.step(&device, &gradients, 1e-4).unwrap();
        }
        assert!((gain(optimizer.masters()) - 1.0).abs() > 4e-4);
        assert_eq!(gain(device.weights()), 1.0);
    }

    #[test]
    fn a_gradient_that_is_no_number_changes_nothing() {
        let (model, device) = setup(ComputeDtype::F32);
        let before = device.weights().apart(model.config()).unwrap();
        let mut optimizer = DeviceOptimizer::new(&config(), &device, None).unwrap();
        let gradients = device.weights().zeros_like().unwrap();
        let bad = gradients.named().nth(3).unwrap();
        bad.1.slice_set(&(bad.1.ones_like().unwrap() * f64::NAN).unwrap(), 0, 0).unwrap();
        let outcome = optimizer.step(&device, &gradients, 0.1).unwrap();
        assert_eq!(outcome, StepOutcome::NonFinite { parameter: bad.0.to_owned() });
        assert_eq!(optimizer.steps(), 0);
        for ((_, a), (_, b)) in before.iter().zip(device.weights().apart(model.config()).unwrap()) {
            assert_eq!((a - b).unwrap().abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap(), 0.0);
        }
    }
}
