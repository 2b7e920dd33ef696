//! Low-rank adapters ("LoRA: Low-Rank Adaptation of Large Language Models", arXiv 2106.09685), in PEFT's
//! layout.
//!
//! A [`Lora`] adds a product of two narrow matrices to the weight of each adapted module:
//!
//! ```text
//! W' = W + s · B A      A [r, in], B [out, r];  s = alpha / r,  or alpha / √r with `use_rslora`
//! dA = s · Bᵀ dW'       dB = s · dW' Aᵀ
//! ```
//!
//! [`Qwen2::adapted`](crate::Qwen2::adapted) adds it to a model for training,
//! [`Qwen2::merged`](crate::Qwen2::merged) returns a model whose weights include the products. [`Lora::load`]
//! and [`Lora::save`] read and write `adapter_config.json` and `adapter_model.safetensors`. [`LoraConfig`]
//! refuses, by name, PEFT's settings that are not implemented and would change a result.
//!
//! Deviations: there is no dropout (`lora_dropout` is kept in the file and not applied), embeddings are not
//! adapted, and B A is added to W before the model runs.

mod config;
mod files;
#[cfg(test)]
mod tests;

use candle_core::{Device, Tensor, Var};
use rand_chacha::rand_core::RngCore;
use webshop_products::Seed;

use crate::purpose;

use crate::error::LmError;
use webshop_kernels::cpu::matmul::{Store, View, matmul};

pub use crate::lora::config::LoraConfig;

/// A matrix of a model that an adapter can be added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The name of the parameter, such as `model.layers.0.self_attn.q_proj.weight`.
    pub parameter: String,
    /// Rows.
    pub out: usize,
    /// Columns.
    pub inputs: usize,
}

/// A set of low-rank additions to a model.
#[derive(Clone, Debug)]
pub struct Lora {
    config: LoraConfig,
    modules: Vec<LoraModule>,
}

/// The addition to one matrix.
#[derive(Clone, Debug)]
pub struct LoraModule {
    /// The adapted parameter, such as `model.layers.0.self_attn.q_proj.weight`.
    pub parameter: String,
    /// `[r, in]`
    pub a: Var,
    /// `[out, r]`
    pub b: Var,
    /// The factor s of the product.
    pub scale: f32,
}

/// The gradients of one [`LoraModule`], flat.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoraGradient {
    /// `[r, in]`
    pub(crate) a: Vec<f32>,
    /// `[out, r]`
    pub(crate) b: Vec<f32>,
}

impl Lora {
    /// A new adapter, a function of `matrices`, `config` and `seed`: A is uniform in ±1/√in as in PEFT, B is
    /// zero, so that B A is zero. `matrices` are those of [`Qwen2::matrices`](crate::Qwen2::matrices). Fails
    /// if `config` selects none of them.
    pub fn random(matrices: &[Matrix], config: &LoraConfig, seed: Seed) -> Result<Self, LmError> {
        config.validate()?;
        let mut modules = Vec::new();
        for Matrix { parameter, out, inputs } in matrices {
            let Some((rank, scale)) = config.rank_and_scale(module_name(parameter))? else {
                continue;
            };
            let mut rng = seed.rng(purpose::ADAPTER, &[modules.len() as u64]);
            // The bound of a uniform Kaiming initialization with a = √5: √(6 / ((1 + 5) · in)).
            let bound = 1.0 / libm::sqrt(*inputs as f64);
            let uniform = |bits: u64| ((bits >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0) * bound;
            let a: Vec<f32> = (0..rank * *inputs).map(|_| uniform(rng.next_u64()) as f32).collect();
            let a = Var::from_vec(a, (rank, *inputs), &Device::Cpu)?;
            let b = Var::from_vec(vec![0.0_f32; *out * rank], (*out, rank), &Device::Cpu)?;
            modules.push(LoraModule { parameter: parameter.clone(), a, b, scale });
        }
        if modules.is_empty() {
            return Err(config.no_target());
        }
        Ok(Self { config: config.clone(), modules })
    }

    /// The configuration.
    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// The additions, in the order of the model's parameters.
    pub fn modules(&self) -> &[LoraModule] {
        &self.modules
    }

    /// A copy of the matrices that later optimizer steps do not change.
    pub(crate) fn copy(&self) -> Result<Self, LmError> {
        let copied = |var: &Var| Var::from_tensor(&var.copy()?);
        let modules = self
            .modules
            .iter()
            .map(|module| Ok(LoraModule { a: copied(&module.a)?, b: copied(&module.b)?, ..module.clone() }));
        Ok(Self { config: self.config.clone(), modules: modules.collect::<Result<_, LmError>>()? })
    }

    /// The addition to a parameter, with its index.
    pub(crate) fn module(&self, parameter: &str) -> Option<(usize, &LoraModule)> {
        let place = self.modules.binary_search_by(|module| module.parameter.as_str().cmp(parameter));
        place.ok().map(|place| (place, &self.modules[place]))
    }

    /// Fails if a matrix of the adapter is missing among `matrices` or has another shape.
    pub(crate) fn check(&self, matrices: &[Matrix]) -> Result<(), LmError> {
        for LoraModule { parameter, a, b, .. } in &self.modules {
            let expected = [b.dim(0)?, a.dim(1)?];
            let Some(found) = matrices.iter().find(|matrix| matrix.parameter == *parameter) else {
                return Err(LmError::Adapter(format!("the model has no `{parameter}`")));
            };
            let dims = [found.out, found.inputs];
            if dims != expected {
                let reason = format!("`{parameter}` has shape {dims:?}, the adapter is for {expected:?}");
                return Err(LmError::Adapter(reason));
            }
        }
        Ok(())
    }
}

impl LoraModule {
    /// (out, r, in)
    fn sizes(&self) -> Result<(usize, usize, usize), LmError> {
        let ((out, rank), inputs) = (self.b.dims2()?, self.a.dim(1)?);
        Ok((out, rank, inputs))
    }

    /// W + s · B A. The shapes must match.
    pub(crate) fn added_to(&self, weight: &Var) -> Result<Tensor, LmError> {
        let (out, rank, inputs) = self.sizes()?;
        let mut sum = values(weight)?;
        let (a, b) = (values(&self.a)?, self.scaled(&self.b)?);
        matmul(&mut sum, inputs, View::rows_of(&b, rank), View::rows_of(&a, inputs), Store::Add);
        Ok(Tensor::from_vec(sum, (out, inputs), &Device::Cpu)?)
    }

    /// The gradients of A and B from that of W + s · B A, flat.
    pub(crate) fn gradient(&self, d_weight: &[f32]) -> Result<LoraGradient, LmError> {
        let (out, rank, inputs) = self.sizes()?;
        let (a, b) = (self.scaled(&self.a)?, self.scaled(&self.b)?);
        let d_weight = View::rows_of(d_weight, inputs);
        let mut gradient = LoraGradient { a: vec![0.0; rank * inputs], b: vec![0.0; out * rank] };
        matmul(&mut gradient.a, inputs, View::rows_of(&b, rank).t(), d_weight, Store::Set);
        matmul(&mut gradient.b, rank, d_weight, View::rows_of(&a, inputs).t(), Store::Set);
        Ok(gradient)
    }

    fn scaled(&self, var: &Var) -> Result<Vec<f32>, LmError> {
        Ok(values(var)?.into_iter().map(|value| value * self.scale).collect())
    }
}

fn values(var: &Var) -> Result<Vec<f32>, LmError> {
    Ok(var.flatten_all()?.to_vec1::<f32>()?)
}

/// The name of a weight's module: the name without `.weight`.
fn module_name(parameter: &str) -> &str {
    parameter.strip_suffix(".weight").unwrap_or(parameter)
}
