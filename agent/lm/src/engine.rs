//! One interface to the decoders of both backends.
//!
//! An [`Engine`] is a snapshot of a model's weights, an [`EngineCache`] its KV cache for some lanes: a
//! [`Decoder`] with a [`KvCache`] on the CPU backend, a [`DeviceModel`] with a [`DeviceCache`] on the GPU
//! backend. For generation only: it has no gradients.

use std::sync::Arc;

use crate::device::compute::Compute;
use crate::error::LmError;
use crate::generation::sampler::Draw;
use crate::qwen2::cpu::kv_cache::KvCache;
use crate::qwen2::gpu::{DeviceCache, DeviceModel};
use crate::qwen2::{Decoder, LaneTokens, Logits, Qwen2, Qwen2Config};
use webshop_kernels::cpu::threads::Threads;

/// A model ready to generate. A clone shares the weights.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The CPU backend, f32.
    Cpu(Arc<Decoder>),
    /// The GPU backend; see [`crate::device`].
    Device(Arc<DeviceModel>),
}

impl From<Arc<Decoder>> for Engine {
    fn from(decoder: Arc<Decoder>) -> Self {
        Self::Cpu(decoder)
    }
}

impl From<Arc<DeviceModel>> for Engine {
    fn from(model: Arc<DeviceModel>) -> Self {
        Self::Device(model)
    }
}

impl Engine {
    /// A snapshot of the weights of `model`, on the backend that `compute` selects.
    pub fn new(model: &Qwen2, compute: &Compute) -> Result<Self, LmError> {
        Ok(if compute.uses_cpu_backend() {
            Self::Cpu(Arc::new(model.decoder()?))
        } else {
            Self::Device(Arc::new(DeviceModel::new(model, compute)?))
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &Qwen2Config {
        match self {
            Self::Cpu(decoder) => decoder.config(),
            Self::Device(model) => model.config(),
        }
    }

    /// [`Threads::One`] if each thread decodes its own groups of lanes, [`Threads::All`] if all threads work
    /// on one group. The GPU backend decodes all lanes at once.
    pub(crate) fn threads(&self) -> Threads {
        match self {
            Self::Cpu(decoder) => decoder.threads(),
            Self::Device(_) => Threads::All,
        }
    }

    /// An empty cache of `lanes` lanes of at most `capacity` tokens.
    ///
    /// Fails if it does not fit into the memory of the device.
    pub fn cache(&self, lanes: usize, capacity: usize) -> Result<EngineCache, LmError> {
        Ok(match self {
            Self::Cpu(decoder) => EngineCache::Cpu(KvCache::new(decoder.config(), lanes, capacity)),
            Self::Device(model) => EngineCache::Device(DeviceCache::new(model, lanes, capacity)?),
        })
    }

    /// Appends new tokens to each lane and returns the logits after its last token; see [`Decoder::decode`].
    pub fn decode(&self, cache: &mut EngineCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        match (self, cache) {
            (Self::Cpu(decoder), EngineCache::Cpu(cache)) => decoder.decode(cache, lanes),
            (Self::Device(model), EngineCache::Device(cache)) => model.decode(cache, lanes),
            _ => Err(LmError::Input("the cache belongs to the other backend".to_owned())),
        }
    }

    /// As [`decode`](Self::decode), with logits after every new token; see [`Decoder::decode_each`]. The GPU
    /// backend runs token by token, which is slow.
    pub fn decode_each(&self, cache: &mut EngineCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        if let (Self::Cpu(decoder), EngineCache::Cpu(cache)) = (self, &mut *cache) {
            return decoder.decode_each(cache, lanes);
        }
        let mut values = Vec::new();
        for LaneTokens { lane, ids } in lanes {
            for id in ids.chunks(1) {
                let logits = self.decode(cache, &[LaneTokens { lane: *lane, ids: id }])?;
                values.extend_from_slice(logits.row(0));
            }
        }
        Ok(Logits::new(values, self.config().vocab_size))
    }

    /// As [`decode`](Self::decode), but samples a token for each lane on the device. On the CPU backend it
    /// returns `None` and appends nothing.
    pub(crate) fn draw(
        &self,
        cache: &mut EngineCache,
        lanes: &[LaneTokens],
        uniforms: &[f32],
        temperature: f32,
    ) -> Result<Option<Vec<Draw>>, LmError> {
        match (self, cache) {
            (Self::Device(model), EngineCache::Device(cache)) => {
                model.draw(cache, lanes, uniforms, temperature).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The KV cache of an engine.
#[derive(Debug)]
pub enum EngineCache {
    /// Of the CPU backend.
    Cpu(KvCache),
    /// Of the GPU backend.
    Device(DeviceCache),
}

impl EngineCache {
    /// Maximum number of tokens of a lane.
    pub fn capacity(&self) -> usize {
        match self {
            Self::Cpu(cache) => cache.capacity(),
            Self::Device(cache) => cache.capacity(),
        }
    }

    /// Number of tokens in a lane.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn len(&self, lane: usize) -> usize {
        match self {
            Self::Cpu(cache) => cache.len(lane),
            Self::Device(cache) => cache.len(lane),
        }
    }

    /// Drops the tokens of a lane from `len` on.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        match self {
            Self::Cpu(cache) => cache.truncate_lane(lane, len),
            Self::Device(cache) => cache.truncate_lane(lane, len),
        }
    }
}
