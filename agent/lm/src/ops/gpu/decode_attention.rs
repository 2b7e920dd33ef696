//! New tokens against a lane's cache: keys and values are appended, then every new token attends to what is there.
//!
//! [`append`] turns q and k, adds the bias and writes the cache in one kernel. [`attend`] splits the context of single
//! tokens among blocks (`attention_split`, `attention_combine`); many tokens of one lane go through
//! [`crate::ops::gpu::attention`], a lane at a time.

use std::ops::Range;

use candle_core::{Device, Result, Tensor};

use crate::ops::gpu::attention;
use crate::ops::gpu::attention::Sequence;
use crate::ops::gpu::rope;
use crate::ops::gpu::rope::RopeTable;
use crate::ops::gpu::{floats, like};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, Launch, VECTOR_BYTES, count};

/// Threads of a block of `attention_split`, as its source has it.
const SPLIT_THREADS: usize = 128;
/// Blocks that keep every multiprocessor of a large GPU busy: a few for each of 132.
const WANTED_BLOCKS: usize = 528;
/// Keys that are worth a block of their own.
const KEYS_PER_SPLIT: usize = 64;
/// From this many new tokens in a lane on, matrix products are faster than a pass over the cache for each.
const MANY: usize = 16;

/// New tokens of some lanes: where they are and what is known of them on the host.
#[derive(Clone, Debug)]
pub struct NewTokens {
    /// (lane, positions) in the order of the rows.
    pub runs: Vec<(usize, Range<usize>)>,
    /// Lane of each row, on the device. `[M]`
    pub lanes: Tensor,
    /// Position of each row, on the device. `[M]`
    pub positions: Tensor,
}

impl NewTokens {
    /// The tokens at `positions` of each lane, laid end to end.
    pub fn new(runs: Vec<(usize, Range<usize>)>, device: &Device) -> Result<Self> {
        let lanes: Vec<u32> =
            runs.iter().flat_map(|(lane, at)| at.clone().map(move |_| *lane as u32)).collect();
        let positions: Vec<u32> = runs.iter().flat_map(|(_, at)| at.clone().map(|p| p as u32)).collect();
        let n = lanes.len();
        Ok(Self {
            runs,
            lanes: Tensor::from_vec(lanes, n, device)?,
            positions: Tensor::from_vec(positions, n, device)?,
        })
    }

    fn n_rows(&self) -> usize {
        self.lanes.elem_count()
    }
}

/// Keys and values of one layer. `[lanes, K, capacity, D]`
#[derive(Clone, Debug)]
pub struct LayerCache {
    /// Rotated keys.
    pub keys: Tensor,
    /// Values.
    pub values: Tensor,
}

impl LayerCache {
    /// Keys (or values) of a lane up to `seen`. `[K, seen, D]`
    fn of_lane(cache: &Tensor, lane: usize, seen: usize) -> Result<Tensor> {
        cache.narrow(0, lane, 1)?.squeeze(0)?.narrow(1, 0, seen)
    }
}

/// Writes k and v of rows of `q ‖ k ‖ v` to the cache and returns the turned queries. `[M, H D]`
pub fn append(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: &Tensor,
    new: &NewTokens,
    table: &RopeTable,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let Some(launcher) = kernels.own() else {
        return plain_append(kernels, qkv, bias, new, table, heads, cache);
    };
    let q = launcher.empty((new.n_rows(), heads.out_width()).into(), qkv.dtype())?;
    launcher.launch(&Launch {
        kernel: "rope_append",
        grid: [new.n_rows(), 1, 1],
        threads: rope::THREADS,
        args: &[
            Arg::In(qkv),
            Arg::In(bias),
            Arg::In(&table.cos),
            Arg::In(&table.sin),
            Arg::In(&new.lanes),
            Arg::In(&new.positions),
            Arg::Out(&q),
            Arg::Out(&cache.keys),
            Arg::Out(&cache.values),
            count(heads.n_heads),
            count(heads.n_kv_heads),
            count(cache.keys.dim(2)?),
        ],
    })?;
    Ok(q)
}

fn plain_append(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: &Tensor,
    new: &NewTokens,
    table: &RopeTable,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let rotated = rope::forward(kernels, qkv, bias, &new.positions, table, heads)?;
    let mut row = 0;
    for (lane, at) in &new.runs {
        let rows = rotated.narrow(0, row, at.len())?;
        row += at.len();
        for head in 0..heads.n_kv_heads {
            for (cache, offset) in
                [(&cache.keys, heads.n_heads), (&cache.values, heads.n_heads + heads.n_kv_heads)]
            {
                let values =
                    rows.narrow(1, (offset + head) * heads.head_dim, heads.head_dim)?.contiguous()?;
                let of_head = cache.narrow(0, *lane, 1)?.narrow(1, head, 1)?; // [1, 1, capacity, D]
                of_head.slice_set(&values.unsqueeze(0)?.unsqueeze(0)?, 2, at.start)?;
            }
        }
    }
    rotated.narrow(1, 0, heads.out_width())?.contiguous()
}

/// What each new token attends to, itself included. q `[M, H D]` → `[M, H D]`
pub fn attend(
    kernels: &Kernels,
    q: &Tensor,
    new: &NewTokens,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let key_threads = heads.head_dim * q.dtype().size_in_bytes() / VECTOR_BYTES;
    let is_single = new.runs.iter().all(|(_, at)| at.len() < MANY);
    match kernels.for_widths(q.dtype(), &[heads.head_dim]) {
        Some(_) if is_single && key_threads.is_power_of_two() && key_threads <= 32 => {
            split_over_context(kernels, q, new, heads, cache)
        }
        _ => lane_by_lane(kernels, q, new, heads, cache),
    }
}

fn lane_by_lane(
    kernels: &Kernels,
    q: &Tensor,
    new: &NewTokens,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let mut row = 0;
    let lanes = new.runs.iter().map(|(lane, at)| {
        let q = q.narrow(0, row, at.len())?.reshape((at.len(), heads.n_heads, heads.head_dim))?;
        row += at.len();
        let of_lane = |cache| LayerCache::of_lane(cache, *lane, at.end);
        let sequence = Sequence { q, k: of_lane(&cache.keys)?, v: of_lane(&cache.values)?, first: at.start };
        attention::forward(kernels, &sequence, heads)
    });
    Tensor::cat(&lanes.collect::<Result<Vec<_>>>()?, 0)
}

fn split_over_context(
    kernels: &Kernels,
    q: &Tensor,
    new: &NewTokens,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let launcher = kernels.own().expect("the caller found a launcher");
    let capacity = cache.keys.dim(2)?;
    let n_splits = splits(new.n_rows() * heads.n_kv_heads, capacity);
    let parts = [new.n_rows(), heads.n_kv_heads, n_splits, heads.group()];
    let (part_out, part_stats) = (
        floats(launcher, [&parts[..], &[heads.head_dim]].concat())?,
        floats(launcher, [&parts[..], &[2]].concat())?,
    );
    launcher.launch(&Launch {
        kernel: "attention_split",
        grid: [n_splits, heads.n_kv_heads, new.n_rows()],
        threads: SPLIT_THREADS,
        args: &[
            Arg::In(q),
            Arg::In(&cache.keys),
            Arg::In(&cache.values),
            Arg::In(&new.lanes),
            Arg::In(&new.positions),
            Arg::Out(&part_out),
            Arg::Out(&part_stats),
            count(capacity),
            Arg::F32(heads.scale()),
        ],
    })?;
    let out = like(launcher, q)?;
    launcher.launch(&Launch {
        kernel: "attention_combine",
        grid: [heads.n_heads, new.n_rows(), 1],
        threads: heads.head_dim.next_multiple_of(32),
        args: &[Arg::In(&part_out), Arg::In(&part_stats), Arg::Out(&out), count(n_splits)],
    })?;
    Ok(out)
}

/// Parts of the context, from what is the same in every step: the lengths are known to the GPU alone.
fn splits(blocks: usize, capacity: usize) -> usize {
    WANTED_BLOCKS.div_ceil(blocks).min(capacity.div_ceil(KEYS_PER_SPLIT)).max(1)
}

#[cfg(test)]
mod tests {
    use crate::ops::gpu::decode_attention::splits;

    #[test]
    fn few_lanes_are_split_and_many_are_not() {
        assert_eq!(splits(2, 2048), 32);
        assert_eq!(splits(2, 65_536), 264);
        assert_eq!(splits(128, 2048), 5);
        assert_eq!(splits(2048, 2048), 1);
    }
}
