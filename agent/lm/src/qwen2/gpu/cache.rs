//! The KV cache of the GPU backend; see [`KvCache`](crate::KvCache) for that of the CPU.

use candle_core::Tensor;

use crate::error::LmError;
use crate::ops::gpu::decode_attention::LayerCache;
use crate::qwen2::gpu::DeviceModel;
use crate::qwen2::gpu::step::Steps;
use crate::qwen2::lane_lengths::LaneLengths;

/// Keys and values of several lanes, in device memory allocated once.
///
/// A cache belongs to the weights it was filled with. It is not `Clone`: a clone would share the memory.
#[derive(Debug)]
pub struct DeviceCache {
    pub(super) layers: Vec<LayerCache>,
    lengths: LaneLengths,
    /// `None` before the first step of single tokens.
    pub(super) steps: Option<Steps>,
}

impl DeviceCache {
    /// An empty cache of `lanes` lanes; the capacity is cut to the model's number of positions.
    pub fn new(model: &DeviceModel, lanes: usize, capacity: usize) -> Result<Self, LmError> {
        let (config, compute) = (model.config(), model.compute());
        let capacity = capacity.min(config.max_position_embeddings);
        let heads = config.heads();
        let shape = (lanes, heads.n_kv_heads, capacity, heads.head_dim);
        let empty = || Tensor::zeros(shape, compute.dtype, &compute.device);
        let layers = (0..config.num_hidden_layers)
            .map(|_| Ok(LayerCache { keys: empty()?, values: empty()? }))
            .collect::<Result<_, LmError>>()?;
        Ok(Self { layers, lengths: LaneLengths::new(lanes, capacity), steps: None })
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lengths.n_lanes()
    }

    /// Most tokens of a lane.
    pub fn capacity(&self) -> usize {
        self.lengths.capacity()
    }

    /// Number of tokens in a lane.
    ///
    /// # Panics
    /// If there is no such lane; the other methods panic too.
    pub fn len(&self, lane: usize) -> usize {
        self.lengths.get(lane)
    }

    /// Drops the tokens of a lane from `len` on; does nothing if it is shorter.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        self.lengths.truncate(lane, len);
    }

    /// Makes lane `to` a copy of lane `from`.
    pub fn copy_lane(&mut self, from: usize, to: usize) -> Result<(), LmError> {
        if from != to {
            for tensor in self.layers.iter().flat_map(|layer| [&layer.keys, &layer.values]) {
                tensor.slice_set(&tensor.narrow(0, from, 1)?.copy()?, 0, to)?;
            }
        }
        self.lengths.copy(from, to);
        Ok(())
    }

    /// Fails for a model of another shape, a lane that does not exist, or tokens that do not fit.
    pub(super) fn check(&self, model: &DeviceModel, lane: usize, n_new: usize) -> Result<(), LmError> {
        let heads = model.config().heads();
        let shape = self.layers.first().map(|layer| (self.layers.len(), layer.keys.dims()));
        let fits = shape.is_some_and(|(n_layers, dims)| {
            n_layers == model.config().num_hidden_layers
                && dims[1] == heads.n_kv_heads
                && dims[3] == heads.head_dim
        });
        if !fits {
            return Err(LmError::Input("the cache was made for a model of another shape".to_owned()));
        }
        self.lengths.check_room(lane, n_new)
    }

    pub(super) fn advance(&mut self, lane: usize, n_new: usize) {
        self.lengths.advance(lane, n_new);
    }
}
