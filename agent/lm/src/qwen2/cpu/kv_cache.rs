//! What a model remembers of the tokens it has read: keys and values for each lane.
//!
//! A [`KvCache`] holds `lanes` independent texts of ragged length side by side, in memory set aside
//! once. [`Decoder::decode`](crate::qwen2::cpu::decoder::Decoder::decode) appends to it; [`KvCache::truncate_lane`] forgets a
//! tail, [`KvCache::copy_lane`] forks. It belongs to the weights it was filled with: after a gradient
//! step, reset it. To use several cores, give each group of lanes a cache of its own.
//!
//! Layout of a lane and layer: rotated keys as kv head × tile of tokens × value of the head × token of the tile, so
//! that a tile's scores are computed at once, and values as kv head × token × value of the head.

use std::ops::Range;

use crate::error::LmError;
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::cpu::decode_attention::{Block, Layout, TILE};
use webshop_kernels::cpu::math::LANES;
use crate::qwen2::config::Qwen2Config;

/// Keys and values of several texts.
#[derive(Clone, Debug)]
pub struct KvCache {
    heads: Heads,
    n_layers: usize,
    capacity: usize,
    /// Tokens in each lane.
    lengths: Vec<usize>,
    /// One block for each (lane, layer).
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl KvCache {
    /// An empty cache of `lanes` texts of at most `capacity` tokens for models of this shape.
    ///
    /// The capacity is cut to the model's number of positions.
    pub fn new(config: &Qwen2Config, lanes: usize, capacity: usize) -> Self {
        let (heads, n_layers) = (config.heads(), config.num_hidden_layers);
        let capacity = capacity.min(config.max_position_embeddings);
        let mut cache =
            Self { heads, n_layers, capacity, lengths: vec![0; lanes], keys: vec![], values: vec![] };
        cache.keys.resize(lanes * n_layers * cache.block_len(), 0.0);
        cache.values.resize(lanes * n_layers * cache.block_len(), 0.0);
        cache
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

    /// Whether a lane holds nothing.
    pub fn is_empty(&self, lane: usize) -> bool {
        self.lengths[lane] == 0
    }

    /// Forgets everything in a lane.
    pub fn reset_lane(&mut self, lane: usize) {
        self.lengths[lane] = 0;
    }

    /// Forgets the tokens of a lane from `len` on; does nothing if it is shorter.
    pub fn truncate_lane(&mut self, lane: usize, len: usize) {
        self.lengths[lane] = self.lengths[lane].min(len);
    }

    /// Makes lane `to` a copy of lane `from`.
    pub fn copy_lane(&mut self, from: usize, to: usize) {
        self.lengths[to] = self.lengths[from];
        let len = self.n_layers * self.block_len();
        self.keys.copy_within(from * len..(from + 1) * len, to * len);
        self.values.copy_within(from * len..(from + 1) * len, to * len);
    }

    /// Refuses a model of another shape, a lane that does not exist and text that does not fit.
    pub(crate) fn check(&self, config: &Qwen2Config, lane: usize, n_new: usize) -> Result<(), LmError> {
        if self.heads != config.heads() || self.n_layers != config.num_hidden_layers {
            return Err(LmError::Input("the cache was made for a model of another shape".to_owned()));
        }
        check_room(&self.lengths, self.capacity, lane, n_new)
    }

    /// What one lane holds in one layer.
    pub(crate) fn block(&self, lane: usize, layer: usize) -> Block<'_> {
        let place = self.place(lane, layer);
        Block { keys: &self.keys[place.clone()], values: &self.values[place], layout: self.layout() }
    }

    /// Its keys and values, to be appended to.
    pub(crate) fn block_mut(&mut self, lane: usize, layer: usize) -> (&mut [f32], &mut [f32]) {
        let place = self.place(lane, layer);
        (&mut self.keys[place.clone()], &mut self.values[place])
    }

    /// How every block is laid out.
    pub(crate) fn layout(&self) -> Layout {
        Layout { capacity: self.room(), dim: padded_dim(self.heads) }
    }

    fn place(&self, lane: usize, layer: usize) -> Range<usize> {
        let start = (lane * self.n_layers + layer) * self.block_len();
        start..start + self.block_len()
    }

    pub(crate) fn advance(&mut self, lane: usize, n_new: usize) {
        self.lengths[lane] += n_new;
    }

    /// Tokens a block has room for: the capacity in whole tiles.
    fn room(&self) -> usize {
        self.capacity.next_multiple_of(TILE)
    }

    fn block_len(&self) -> usize {
        self.heads.n_kv_heads * padded_dim(self.heads) * self.room()
    }
}

/// Head size in whole vectors; the values in excess stay zero.
fn padded_dim(heads: Heads) -> usize {
    heads.head_dim.next_multiple_of(LANES)
}

/// Refuses a lane that is none of those which hold `lengths` tokens, and one without room for `n_new` more.
pub(crate) fn check_room(
    lengths: &[usize],
    capacity: usize,
    lane: usize,
    n_new: usize,
) -> Result<(), LmError> {
    let reason = match lengths.get(lane) {
        None => format!("lane {lane} is past the last of {} lanes", lengths.len()),
        Some(len) if len + n_new > capacity => {
            format!("lane {lane} holds {len} tokens and cannot take {n_new} more of {capacity}")
        }
        Some(_) => return Ok(()),
    };
    Err(LmError::Input(reason))
}
