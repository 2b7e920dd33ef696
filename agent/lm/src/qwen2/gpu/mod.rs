//! The GPU backend of the model, on any candle device, made of the operations in `crate::ops::gpu`.
//!
//! A [`DeviceModel`] is a snapshot of a [`Qwen2`]'s weights ([`Parameters`]) in a compute dtype on a device.
//! [`DeviceModel::decode`] and [`DeviceModel::draw`] continue the lanes of a [`DeviceCache`], single tokens with a recorded step;
//! [`DeviceModel::record`] returns a [`DevicePass`], which has gradients. All of it also runs on the CPU,
//! where tests compare it with the CPU backend, so that only the CUDA kernels need a GPU to be tested at full
//! speed.
//!
//! Unlike on the CPU backend, a lane's logits depend on the batch by rounding: cuBLAS chooses its order of
//! summation by the shape.

mod adapter;
mod cache;
mod decode;
mod memory;
mod parameters;
mod pass;
mod step;
#[cfg(test)]
mod tests;

use candle_core::Tensor;

pub use crate::qwen2::gpu::adapter::DeviceAdapter;
pub use crate::qwen2::gpu::cache::DeviceCache;
pub use crate::qwen2::gpu::memory::DeviceMemory;
pub use crate::qwen2::gpu::parameters::Parameters;
pub use crate::qwen2::gpu::pass::DevicePass;

use crate::device::compute::Compute;
use crate::error::LmError;
use crate::ops::gpu::reference_check::{self, CheckSizes, ReferenceCheck};
use crate::ops::gpu::rope::RopeTable;
use crate::qwen2::{Qwen2, Qwen2Config};
use webshop_kernels::cpu::rope::Rope;
use webshop_kernels::gpu::launch::{Kernels, Specialization};

/// A model's weights on a device.
#[derive(Clone, Debug)]
pub struct DeviceModel {
    config: Qwen2Config,
    compute: Compute,
    kernels: Kernels,
    rope: RopeTable,
    weights: Parameters,
}

impl DeviceModel {
    /// A snapshot of the weights of `model`, an adapter's addition included.
    pub fn new(model: &Qwen2, compute: &Compute) -> Result<Self, LmError> {
        Ok(Self::with_adapter(model, compute)?.0)
    }

    /// The same, and the adapter of `model`, if it has one, to be trained.
    pub fn with_adapter(model: &Qwen2, compute: &Compute) -> Result<(Self, Option<DeviceAdapter>), LmError> {
        let weights = Parameters::of(&model.base(), compute.dtype, &compute.device)?;
        let adapter = model.adapter().map(|lora| DeviceAdapter::new(model, lora, &weights)).transpose()?;
        if let Some(adapter) = &adapter {
            adapter.apply(&weights)?;
        }
        Ok((Self::with_weights(model.config(), compute, weights)?, adapter))
    }

    /// A model with pseudo-random weights, a function of the configuration, generated quickly on the device.
    /// For benchmarks: [`Qwen2::random`] takes minutes for billions of parameters.
    pub fn for_measurement(config: &Qwen2Config, compute: &Compute) -> Result<Self, LmError> {
        config.validate()?;
        let weights = Parameters::for_measurement(config, compute.dtype, &compute.device)?;
        Self::with_weights(config, compute, weights)
    }

    /// A model with the given weights, which must have the compute dtype.
    pub fn with_weights(
        config: &Qwen2Config,
        compute: &Compute,
        weights: Parameters,
    ) -> Result<Self, LmError> {
        let heads = config.heads();
        let specialization =
            Specialization { dtype: compute.dtype, head_dim: heads.head_dim, group: heads.group() };
        let kernels = compute.kernels(&specialization)?;
        let rope = Rope::new(heads.head_dim, config.rope_theta, config.max_position_embeddings);
        Ok(Self {
            config: config.clone(),
            compute: compute.clone(),
            kernels,
            rope: RopeTable::new(&rope, &compute.device)?,
            weights,
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &Qwen2Config {
        &self.config
    }

    /// The device and the dtype.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// The weights in the compute dtype. An optimizer may change them in place.
    pub fn weights(&self) -> &Parameters {
        &self.weights
    }

    /// The kernels.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// The same model with other kernels.
    #[cfg(test)]
    fn with_kernels(mut self, kernels: Kernels) -> Self {
        self.kernels = kernels;
        self
    }

    fn eps(&self) -> f32 {
        self.config.rms_norm_eps as f32
    }

    fn tensor(&self, values: &[u32]) -> Result<Tensor, LmError> {
        Ok(Tensor::from_slice(values, values.len(), &self.compute.device)?)
    }

    /// Compares every kernel with its reference implementation, at this model's sizes, on its device.
    pub fn compare_kernels(&self, tokens: usize) -> Result<Vec<ReferenceCheck>, LmError> {
        let sizes = CheckSizes {
            heads: self.config.heads(),
            hidden: self.config.hidden_size,
            inner: self.config.intermediate_size,
            vocab_size: self.config.vocab_size,
            tokens,
            capacity: (4 * tokens).min(self.config.max_position_embeddings),
        };
        Ok(reference_check::compare(&self.kernels, self.compute.dtype, &self.compute.device, sizes)?)
    }

    /// Bytes of a token in a cache.
    pub fn cache_bytes_per_token(&self) -> usize {
        self.memory().cached_token()
    }

    /// What its tensors need on the device.
    pub fn memory(&self) -> DeviceMemory<'_> {
        DeviceMemory::new(&self.config, self.compute.dtype())
    }

    /// Number of parameter values.
    pub fn n_parameters(&self) -> usize {
        self.weights.named().map(|(_, tensor)| tensor.elem_count()).sum()
    }
}
