//! Weights on the cpu or gpu backend, with the operations that the trainer uses on both.
//!
//! A [`Network`] is a policy or a reference. It creates an [`Engine`] for rollouts and scores tokens.
//! [`crate::model::gradient`] computes its gradients, [`TrainState`](crate::model::train_state::TrainState)
//! updates it. On a device, rollouts, scores and gradients use one set of weights.

use std::sync::Arc;

use webshop_lm::device::{Compute, DeviceModel};
use webshop_lm::{Engine, Qwen2, Sampler, TokenStats};

use crate::data::trajectory::{MicroBatch, Trajectory};
use crate::error::Result;
use crate::setup::limits::{LANES, lanes_within};

/// A model on its backend. A clone shares the weights.
#[derive(Clone, Debug)]
pub(crate) enum Network {
    /// On the cpu backend, f32.
    Cpu(Arc<Qwen2>),
    /// On the gpu backend, [`webshop_lm::device`].
    Device(Arc<DeviceModel>),
}

impl Network {
    /// The weights of `model` on the device of `compute`: shared on the cpu backend, else copied.
    pub(crate) fn new(model: &Qwen2, compute: &Compute) -> Result<Self> {
        Ok(match compute.uses_cpu_backend() {
            true => Self::Cpu(Arc::new(model.clone())),
            false => Self::Device(Arc::new(DeviceModel::new(model, compute)?)),
        })
    }

    /// An engine for rollouts with the current weights: a packed copy on the cpu backend, the shared weights
    /// on a device.
    pub(crate) fn engine(&self) -> Result<Engine> {
        Ok(match self {
            Self::Cpu(model) => Arc::new(model.decoder()?).into(),
            Self::Device(model) => model.clone().into(),
        })
    }

    /// The log-probabilities of a micro-batch's targets under the distribution of `sampler`, on the host.
    pub(crate) fn score(&self, micro: &MicroBatch, sampler: Sampler) -> Result<TokenStats> {
        let (tokens, positions, targets) = (micro.tokens(), &micro.positions, &micro.targets);
        Ok(match self {
            Self::Cpu(model) => model.score(&tokens, positions, targets, sampler)?,
            Self::Device(model) => model.score(&tokens, positions, targets, sampler)?,
        })
    }

    /// The final hidden states of a micro-batch at `positions`, concatenated, on the host. `[N, D]`
    pub(crate) fn hidden_states(&self, micro: &MicroBatch, positions: &[u32]) -> Result<Vec<f32>> {
        Ok(match self {
            Self::Cpu(model) => model.hidden_states(&micro.tokens(), positions)?,
            Self::Device(model) => model.hidden_states(&micro.tokens(), positions)?,
        })
    }

    /// `batch` in micro-batches of at most `limit_tokens` tokens. On the CPU backend a prompt that several
    /// completions share is stored once per micro-batch.
    pub(crate) fn pack(&self, batch: &[Trajectory], limit_tokens: usize) -> Vec<MicroBatch> {
        match self {
            Self::Cpu(_) => MicroBatch::pack_sharing(batch, limit_tokens),
            Self::Device(_) => MicroBatch::pack(batch, limit_tokens),
        }
    }

    /// Number of episodes in parallel with contexts of `max_context` tokens: on a device, as many as fit into
    /// its memory.
    pub(crate) fn lanes(&self, max_context: usize) -> usize {
        match self {
            Self::Cpu(_) => LANES,
            Self::Device(model) => {
                lanes_within(model.compute().cache_bytes(), model.cache_bytes_per_token(), max_context)
            }
        }
    }
}
