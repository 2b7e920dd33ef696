//! Attention of new tokens over a lane's KV cache.
//!
//! [`append`] adds the bias, rotates q and k and writes the cache in one kernel. [`attend`] then computes the
//! attention of every new token. For few tokens a lane it splits the context among blocks (`attention_split`,
//! `attention_combine`); many tokens of a lane go through [`crate::ops::gpu::attention`], one lane at a time.

use candle_core::{DType, Result, Tensor};

use crate::ops::gpu::attention;
use crate::ops::gpu::attention::Sequence;
pub(crate) use crate::ops::gpu::operands::{LayerCache, NewTokens};
use crate::ops::gpu::rope;
use crate::ops::gpu::rope::RopeTable;
use crate::ops::gpu::{floats, launch, launch_grid, like, reference};
use webshop_kernels::cpu::attention::Heads;
use webshop_kernels::gpu::launch::{Arg, Kernels, VECTOR_BYTES, count};

/// Threads of a block of `attention_split`, as in its source.
const SPLIT_THREADS: usize = 128;
/// Blocks that occupy a large GPU: four for each of 132 multiprocessors.
const TARGET_BLOCKS: usize = 528;
/// Minimum number of keys in a split.
const KEYS_PER_SPLIT: usize = 64;
/// Number of new tokens in a lane from which matrix products are faster than one pass over the cache per
/// token.
const MATMUL_TOKENS: usize = 16;

/// Writes k and v of rows of `q ‖ k ‖ v` to the cache and returns the rotated queries. `[M, H D]`
pub(crate) fn append(
    kernels: &Kernels,
    qkv: &Tensor,
    bias: &Tensor,
    new: &NewTokens,
    table: &RopeTable,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let Some(launcher) = kernels.launcher() else {
        return reference::append(qkv, bias, new, table, heads, cache);
    };
    let q = launcher.empty((new.n_rows(), heads.out_width()).into(), qkv.dtype())?;
    launch(
        launcher,
        "rope_append",
        new.n_rows(),
        rope::THREADS,
        &[
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
    )?;
    Ok(q)
}

/// The attention output of each new token over its lane, up to and including the token. q `[M, H D]` →
/// `[M, H D]`
pub(crate) fn attend(
    kernels: &Kernels,
    q: &Tensor,
    new: &NewTokens,
    heads: Heads,
    cache: &LayerCache,
) -> Result<Tensor> {
    let is_single = new.runs.iter().all(|(_, at)| at.len() < MATMUL_TOKENS);
    if is_single && has_kernel(kernels, q.dtype(), heads) {
        split_over_context(kernels, q, new, heads, cache)
    } else {
        lane_by_lane(kernels, q, new, heads, cache)
    }
}

/// Whether the kernels for few tokens a lane support heads of this size.
pub(crate) fn has_kernel(kernels: &Kernels, dtype: DType, heads: Heads) -> bool {
    let key_threads = heads.head_dim * dtype.size_in_bytes() / VECTOR_BYTES;
    let fits = key_threads.is_power_of_two() && key_threads <= 32;
    fits && kernels.launcher_for_widths(dtype, &[heads.head_dim]).is_some()
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
    let launcher = kernels.launcher().expect("the caller found a launcher");
    let capacity = cache.keys.dim(2)?;
    let n_splits = splits(new.n_rows() * heads.n_kv_heads, capacity);
    let parts = [new.n_rows(), heads.n_kv_heads, n_splits, heads.group()];
    let (part_out, part_stats) = (
        floats(launcher, [&parts[..], &[heads.head_dim]].concat())?,
        floats(launcher, [&parts[..], &[2]].concat())?,
    );
    launch_grid(
        launcher,
        "attention_split",
        [n_splits, heads.n_kv_heads, new.n_rows()],
        SPLIT_THREADS,
        &[
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
    )?;
    let out = like(launcher, q)?;
    launch_grid(
        launcher,
        "attention_combine",
        [heads.n_heads, new.n_rows(), 1],
        heads.head_dim.next_multiple_of(32),
        &[Arg::In(&part_out), Arg::In(&part_stats), Arg::Out(&out), count(n_splits)],
    )?;
    Ok(out)
}

/// Number of parts that the context is split into; a function of the capacity, not of the current lengths.
fn splits(blocks: usize, capacity: usize) -> usize {
    TARGET_BLOCKS.div_ceil(blocks).min(capacity.div_ceil(KEYS_PER_SPLIT)).max(1)
}

#[cfg(test)]
mod tests {
    use crate::ops::gpu::decode_attention::splits;

    #[test]
    fn fewer_lanes_have_more_splits() {
        assert_eq!(splits(2, 2048), 32);
        assert_eq!(splits(2, 65_536), 264);
        assert_eq!(splits(128, 2048), 5);
        assert_eq!(splits(2048, 2048), 1);
    }
}
