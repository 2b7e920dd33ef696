//! The KV cache of the CPU backend: keys and values of all tokens of each lane.
//!
//! A [`KvCache`] holds independent lanes of different lengths in memory allocated once.
//! [`Decoder::decode`](crate::Decoder::decode) appends to it, [`KvCache::truncate_lane`] drops a tail,
//! [`KvCache::copy_lane`] forks a lane. A cache belongs to the weights it was filled with: after a gradient
//! step, reset it. To use several threads with a small model, give each group of lanes its own cache.
//!
//! Layout for a lane and layer: rotated keys as `[kv head, tile, dim, token of the tile]`, so that the scores
//! of a tile are computed at once; values as `[kv head, token, dim]`.

use std::ops::Range;

use crate::error::LmError;
use crate::qwen2::config::Qwen2Config;
use crate::qwen2::lane_lengths::LaneLengths;
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::cpu::decode_attention::{Block, Layout, TILE};
use webshop_kernels::cpu::math::LANES;

/// Keys and values of several lanes.
#[derive(Clone, Debug)]
pub struct KvCache {
    heads: Heads,
    n_layers: usize,
    lengths: LaneLengths,
    /// One block for each (lane, layer), in this order.
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl KvCache {
    /// An empty cache of `lanes` lanes of at most `capacity` tokens, for models of this shape.
    ///
    /// The capacity is cut to the model's number of positions.
    pub fn new(config: &Qwen2Config, lanes: usize, capacity: usize) -> Self {
        let (heads, n_layers) = (config.heads(), config.num_hidden_layers);
        let capacity = capacity.min(config.max_position_embeddings);
        let mut cache = Self {
            heads,
            n_layers,
            lengths: LaneLengths::new(lanes, capacity),
            keys: vec![],
            values: vec![],
        };
        cache.keys.resize(lanes * n_layers * cache.block_len(), 0.0);
        cache.values.resize(lanes * n_layers * cache.block_len(), 0.0);
        cache
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

    /// Whether a lane is empty.
    pub fn is_empty(&self, lane: usize) -> bool {
        self.lengths.get(lane) == 0
    }

    /// Empties a lane.
    pub fn reset_lane(&mut self, lane: usize) {
        self.lengths.truncate(lane, 0);
    }

    /// Drops the tokens of a lane from `len` on; does nothing if it is shorter.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        self.lengths.truncate(lane, len);
    }

    /// Makes lane `to` a copy of lane `from`.
    pub fn copy_lane(&mut self, from: usize, to: usize) {
        self.lengths.copy(from, to);
        let len = self.n_layers * self.block_len();
        self.keys.copy_within(from * len..(from + 1) * len, to * len);
        self.values.copy_within(from * len..(from + 1) * len, to * len);
    }

    /// Fails for a model of another shape, a lane that does not exist, or tokens that do not fit.
    pub(crate) fn check(&self, config: &Qwen2Config, lane: usize, n_new: usize) -> Result<(), LmError> {
        if self.heads != config.heads() || self.n_layers != config.num_hidden_layers {
            return Err(LmError::Input("the cache was made for a model of another shape".to_owned()));
        }
        self.lengths.check_room(lane, n_new)
    }

    /// Keys and values of one lane in one layer.
    pub(crate) fn block(&self, lane: usize, layer: usize) -> Block<'_> {
        let place = self.place(lane, layer);
        Block { keys: &self.keys[place.clone()], values: &self.values[place], layout: self.layout() }
    }

    /// As [`block`](Self::block), mutable.
    pub(crate) fn block_mut(&mut self, lane: usize, layer: usize) -> (&mut [f32], &mut [f32]) {
        let place = self.place(lane, layer);
        (&mut self.keys[place.clone()], &mut self.values[place])
    }

    /// The layout of every block.
    pub(crate) fn layout(&self) -> Layout {
        Layout { capacity: self.room(), dim: padded_dim(self.heads) }
    }

    fn place(&self, lane: usize, layer: usize) -> Range<usize> {
        let start = (lane * self.n_layers + layer) * self.block_len();
        start..start + self.block_len()
    }

    pub(crate) fn advance(&mut self, lane: usize, n_new: usize) {
        self.lengths.advance(lane, n_new);
    }

    /// Tokens of a block: the capacity rounded up to whole tiles.
    fn room(&self) -> usize {
        self.lengths.capacity().next_multiple_of(TILE)
    }

    fn block_len(&self) -> usize {
        self.heads.n_kv_heads * padded_dim(self.heads) * self.room()
    }
}

/// The head size rounded up to whole vectors; the padding stays zero.
fn padded_dim(heads: Heads) -> usize {
    heads.head_dim.next_multiple_of(LANES)
}
