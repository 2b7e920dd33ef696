//! Either engine behind one door: what generation asks of a model, whoever computes it.
//!
//! An [`Engine`] is a model's weights at one moment, an [`EngineCache`] what it has read on some lanes. On the CPU they
//! are a [`Decoder`] and a [`KvCache`], which threads share group by group; on a GPU a [`DeviceModel`] and a
//! [`DeviceCache`], which hold all lanes at once. Gradients do not go through here.

use std::sync::Arc;

use crate::qwen2::cpu::kv_cache::KvCache;
use crate::device::Compute;
use crate::error::LmError;
use webshop_kernels::cpu::threads::Threads;
use crate::qwen2::gpu::{DeviceCache, DeviceModel};
use crate::qwen2::{Decoder, LaneTokens, Logits, Qwen2, Qwen2Config};
use crate::generation::sampler::Draw;

/// A model ready to generate. A clone shares the weights.
#[derive(Clone, Debug)]
pub enum Engine {
    /// The hand-written engine of the CPU, f32.
    Cpu(Arc<Decoder>),
    /// The engine of [`crate::device`].
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
    /// The weights that `model` has now, where `compute` says. The CPU's own engine is taken for f32 on the CPU.
    pub fn new(model: &Qwen2, compute: &Compute) -> Result<Self, LmError> {
        Ok(if compute.is_first_engine() {
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

    /// Whether all threads work on one group of lanes, or each on groups of its own. A device computes all lanes at
    /// once, and what is left to the host is divided.
    pub(crate) fn threads(&self) -> Threads {
        match self {
            Self::Cpu(decoder) => decoder.threads(),
            Self::Device(_) => Threads::All,
        }
    }

    /// An empty cache of `lanes` texts of at most `capacity` tokens.
    pub(crate) fn cache(&self, lanes: usize, capacity: usize) -> Result<EngineCache, LmError> {
        Ok(match self {
            Self::Cpu(decoder) => EngineCache::Cpu(KvCache::new(decoder.config(), lanes, capacity)),
            Self::Device(model) => EngineCache::Device(DeviceCache::new(model, lanes, capacity)?),
        })
    }

    /// Reads the new tokens of each lane and returns the logits after each lane's last token; see [`Decoder::decode`].
    pub(crate) fn decode(&self, cache: &mut EngineCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        match (self, cache) {
            (Self::Cpu(decoder), EngineCache::Cpu(cache)) => decoder.decode(cache, lanes),
            (Self::Device(model), EngineCache::Device(cache)) => model.decode(cache, lanes),
            _ => Err(LmError::Input("the cache was made by the other engine".to_owned())),
        }
    }

    /// As [`decode`](Self::decode), drawing a token for each lane where the logits are; `None`, with nothing read, where
    /// that is the host's business.
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

/// What an engine has read.
#[derive(Debug)]
pub(crate) enum EngineCache {
    Cpu(KvCache),
    Device(DeviceCache),
}

impl EngineCache {
    /// Most tokens a lane can hold.
    pub fn capacity(&self) -> usize {
        match self {
            Self::Cpu(cache) => cache.capacity(),
            Self::Device(cache) => cache.capacity(),
        }
    }

    /// Tokens in a lane.
    pub fn len(&self, lane: usize) -> usize {
        match self {
            Self::Cpu(cache) => cache.len(lane),
            Self::Device(cache) => cache.len(lane),
        }
    }

    /// Forgets the tokens of a lane from `len` on.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        match self {
            Self::Cpu(cache) => cache.truncate_lane(lane, len),
            Self::Device(cache) => cache.truncate_lane(lane, len),
        }
    }
}
