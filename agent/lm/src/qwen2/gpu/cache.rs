//! Keys and values of several texts on a device; what [`crate::qwen2::cpu::kv_cache::KvCache`] is to the first engine.

use candle_core::Tensor;

use crate::qwen2::gpu::DeviceModel;
use crate::qwen2::cpu::kv_cache::check_room;
use crate::error::LmError;
use crate::ops::gpu::decode_attention::LayerCache;

/// `lanes` independent texts of at most `capacity` tokens, in memory set aside once.
///
/// It belongs to the weights it was filled with. A clone shares the memory and is not offered.
#[derive(Debug)]
pub struct DeviceCache {
    pub(super) layers: Vec<LayerCache>,
    lengths: Vec<usize>,
    capacity: usize,
}

impl DeviceCache {
    /// An empty cache for `model`; the capacity is cut to its number of positions.
    pub fn new(model: &DeviceModel, lanes: usize, capacity: usize) -> Result<Self, LmError> {
        let (config, compute) = (model.config(), model.compute());
        let capacity = capacity.min(config.max_position_embeddings);
        let heads = config.heads();
        let shape = (lanes, heads.n_kv_heads, capacity, heads.head_dim);
        let empty = || Tensor::zeros(shape, compute.dtype, &compute.device);
        let layers = (0..config.num_hidden_layers)
            .map(|_| Ok(LayerCache { keys: empty()?, values: empty()? }))
            .collect::<Result<_, LmError>>()?;
        Ok(Self { layers, lengths: vec![0; lanes], capacity })
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lengths.len()
    }

    /// Most tokens a lane can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Tokens in a lane.
    ///
    /// # Panics
    /// If there is no such lane; so do the other methods.
    pub fn len(&self, lane: usize) -> usize {
        self.lengths[lane]
    }

    /// Forgets the tokens of a lane from `len` on; does nothing if it is shorter.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        self.lengths[lane] = self.lengths[lane].min(len);
    }

    /// Makes lane `to` a copy of lane `from`.
    pub fn copy_lane(&mut self, from: usize, to: usize) -> Result<(), LmError> {
        if from != to {
            for tensor in self.layers.iter().flat_map(|layer| [&layer.keys, &layer.values]) {
                tensor.slice_set(&tensor.narrow(0, from, 1)?.copy()?, 0, to)?;
            }
        }
        self.lengths[to] = self.lengths[from];
        Ok(())
    }

    /// Refuses a model of another shape, a lane that does not exist and text that does not fit.
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
        check_room(&self.lengths, self.capacity, lane, n_new)
    }

    pub(super) fn advance(&mut self, lane: usize, n_new: usize) {
        self.lengths[lane] += n_new;
    }
}
