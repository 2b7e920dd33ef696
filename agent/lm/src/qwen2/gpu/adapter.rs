//! LoRA adapters on a device.
//!
//! As on the CPU backend (`crate::qwen2::lora`), a model computes with `W' = W + s · B A`. A [`DeviceAdapter`] keeps W in
//! the compute dtype, and A and B in f32. [`DeviceAdapter::apply`] writes W' into the weights of a
//! [`DeviceModel`](super::DeviceModel), [`DeviceAdapter::gradients`] makes the gradients of A and B of that of W':
//!
//! ```text
//! dA = s · Bᵀ dW'       dB = s · dW' Aᵀ
//! ```
//!
//! Sums and products are f32; W' is rounded to the compute dtype once. Beside full training in bf16 it saves the f32
//! masters and the moments of all weights, but not the gradient of W'.

use candle_core::{DType, Device, Tensor};

use crate::error::LmError;
use crate::lora::Lora;
use crate::qwen2::Qwen2;
use crate::qwen2::gpu::parameters::Parameters;

/// An adapter in training, with the weights that it adds to.
#[derive(Debug)]
pub struct DeviceAdapter {
    modules: Vec<Module>,
    /// A and B of each module, f32, in the order of [`Qwen2::learnable`].
    learnable: Vec<(String, Tensor)>,
}

/// The addition to one matrix.
#[derive(Debug)]
struct Module {
    /// The place of the joined parameter that holds the matrix.
    joined: usize,
    /// Its first row there.
    start: usize,
    /// W in the compute dtype. `[out, in]`
    base: Tensor,
    /// s.
    scale: f64,
}

impl DeviceAdapter {
    /// The adapter `lora` of `model`, where `weights` are the model's without it.
    pub(super) fn new(model: &Qwen2, lora: &Lora, weights: &Parameters) -> Result<Self, LmError> {
        let parts = Parameters::parts(model.config());
        let mut places = Vec::new();
        for (joined, parts) in parts.into_iter().enumerate() {
            let mut start = 0;
            for (name, n_rows) in parts {
                places.push((name, joined, start, n_rows));
                start += n_rows;
            }
        }
        let modules = lora.modules().iter().map(|module| {
            let place = places.iter().find(|(name, ..)| *name == module.parameter);
            let &(_, joined, start, n_rows) = place.expect("`Qwen2::adapted` checked the names");
            let base = weights.at(joined).narrow(0, start, n_rows)?.copy()?;
            Ok(Module { joined, start, base, scale: module.scale.into() })
        });
        let modules = modules.collect::<Result<Vec<Module>, LmError>>()?;
        let learnable = model.learnable().iter().zip(modules.iter().flat_map(|module| [module; 2]));
        let learnable = learnable.map(|((name, var), module)| {
            // On one device the conversion alone would share the memory.
            Ok((name.clone(), var.to_device(module.base.device())?.copy()?))
        });
        Ok(Self { learnable: learnable.collect::<Result<_, LmError>>()?, modules })
    }

    /// A `[r, in]` and B `[out, r]` of each module with their names, f32. An optimizer may change them in place, and then
    /// calls [`apply`](Self::apply).
    pub fn learnable(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.learnable.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// The modules with A and B.
    fn modules(&self) -> impl Iterator<Item = (&Module, &Tensor, &Tensor)> {
        let sides = self.learnable.chunks_exact(2).map(|both| (&both[0].1, &both[1].1));
        self.modules.iter().zip(sides).map(|(module, (a, b))| (module, a, b))
    }

    /// Writes W' into `weights`, those of the model that the adapter was made for.
    pub fn apply(&self, weights: &Parameters) -> Result<(), LmError> {
        for (Module { joined, start, base, scale }, a, b) in self.modules() {
            let sum = (base.to_dtype(DType::F32)? + (b.matmul(a)? * *scale)?)?;
            weights.at(*joined).slice_set(&sum.to_dtype(base.dtype())?, 0, *start)?;
        }
        Ok(())
    }

    /// The gradients of A and B in the order of [`learnable`](Self::learnable), from those of the weights.
    pub fn gradients(&self, of_weights: &Parameters) -> Result<Vec<Tensor>, LmError> {
        let mut gradients = Vec::with_capacity(self.learnable.len());
        for (Module { joined, start, base, scale }, a, b) in self.modules() {
            let of_sum = of_weights.at(*joined).narrow(0, *start, base.dim(0)?)?;
            gradients.push((b.t()?.matmul(&of_sum)? * *scale)?);
            gradients.push((of_sum.matmul(&a.t()?)? * *scale)?);
        }
        Ok(gradients)
    }

    /// Copies A and B into the variables of `model`, from which the adapter was made.
    pub fn write_to(&self, model: &Qwen2) -> Result<(), LmError> {
        for ((_, var), (_, tensor)) in model.learnable().iter().zip(&self.learnable) {
            var.set(&tensor.to_device(&Device::Cpu)?)?;
        }
        Ok(())
    }
}
