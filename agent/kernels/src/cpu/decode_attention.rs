//! Attention of new tokens over the keys and values of the tokens before them.
//!
//! [`append`] stores the rotated key and the value of a token in the cache block of its lane. [`attend`]
//! computes the attention output of a token over the block up to the token itself. All tokens of a prompt can
//! therefore be appended first and then attend in any order or in parallel. The formula is that of
//! [`crate::cpu::attention`] with another order of sums (equal to about 1e-6): a score is one chain over the
//! head, a value four interleaved chains over the tokens. Only tokens of the same lane are read, so the bits
//! do not depend on other lanes.
//!
//! Up to `HEADS` query heads that share a key head are computed together: keys and values are loaded once
//! for all of them.

use std::ops::Range;

use crate::cpu::attention::Heads;
use crate::cpu::math::{LANES, softmax_numerators};
use crate::cpu::rope::Rope;
use crate::multiversion;

/// Tokens whose keys are interleaved by head dimension; their scores are computed together.
pub const TILE: usize = 2 * LANES;
/// Interleaved chains of the sum over tokens.
const CHAINS: usize = 4;
/// Query heads computed together; their chains fit the registers.
const HEADS: usize = 4;

/// Memory layout of the keys and values of one lane in one layer.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Maximum number of tokens, a multiple of [`TILE`].
    pub capacity: usize,
    /// Head size, padded with zeros to a multiple of [`LANES`].
    pub dim: usize,
}

impl Layout {
    /// Range of the keys (and of the values) of one head.
    #[inline(always)]
    fn of_head(self, kv_head: usize) -> Range<usize> {
        let len = self.dim * self.capacity;
        kv_head * len..(kv_head + 1) * len
    }

    /// Offset of the keys of the tile that contains the token at `position`.
    #[inline(always)]
    fn tile(self, position: usize) -> usize {
        position / TILE * TILE * self.dim
    }
}

/// Keys and values of one lane in one layer.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Rotated keys. `[kv head, tile, dim, token of the tile]`
    pub keys: &'a [f32],
    /// Values. `[kv head, token, dim]`
    pub values: &'a [f32],
    /// Layout of `keys` and `values`.
    pub layout: Layout,
}

multiversion! {
    /// Stores the token `qkv` (a row of q ‖ k ‖ v before rotation) at `position` of a block's keys and
    /// values.
    pub fn append(
        qkv: &[f32],
        position: usize,
        heads: Heads,
        rope: &Rope,
        block: (&mut [f32], &mut [f32]),
        layout: Layout,
    ) {
        let (keys, values) = block;
        let head_dim = heads.head_dim;
        let mut rotated = vec![0.0; head_dim];
        for kv_head in 0..heads.n_kv_heads {
            let key = &qkv[heads.key_offset(kv_head)..][..head_dim];
            let value = &qkv[heads.value_offset(kv_head)..][..head_dim];
            rope.rotate(key, position, 1.0, &mut rotated);
            let tile = &mut keys[layout.of_head(kv_head)][layout.tile(position)..];
            for (keys, key) in tile.chunks_exact_mut(TILE).zip(&rotated) {
                keys[position % TILE] = *key;
            }
            values[layout.of_head(kv_head)][position * layout.dim..][..head_dim].copy_from_slice(value);
        }
    }
}

multiversion! {
    /// Writes the attention output of the token `qkv` at `position` to `out` `[H·D]`. This token and all
    /// earlier ones must have been appended. `work` is working memory.
    pub fn attend(
        qkv: &[f32],
        position: usize,
        heads: Heads,
        rope: &Rope,
        block: Block,
        work: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        work.resize(HEADS * (block.layout.capacity + heads.head_dim), 0.0);
        for kv_head in 0..heads.n_kv_heads {
            let of_head = block.layout.of_head(kv_head);
            let of_head = (&block.keys[of_head.clone()], &block.values[of_head], block.layout);
            let group = kv_head * heads.group()..(kv_head + 1) * heads.group();
            for head in group.clone().step_by(HEADS) {
                match HEADS.min(group.end - head) {
                    1 => attend_heads::<1>(qkv, (head, position), heads, rope, of_head, work, out),
                    2 => attend_heads::<2>(qkv, (head, position), heads, rope, of_head, work, out),
                    3 => attend_heads::<3>(qkv, (head, position), heads, rope, of_head, work, out),
                    _ => attend_heads::<HEADS>(qkv, (head, position), heads, rope, of_head, work, out),
                }
            }
        }
    }
}

/// Computes the query heads `first .. first + N` over the keys and values of one head.
#[inline(always)]
fn attend_heads<const N: usize>(
    qkv: &[f32],
    (first, position): (usize, usize),
    heads: Heads,
    rope: &Rope,
    (keys, values, layout): (&[f32], &[f32], Layout),
    work: &mut [f32],
    out: &mut [f32],
) {
    let dim = heads.head_dim;
    let (scores, queries) = work.split_at_mut(HEADS * layout.capacity);
    for (i, query) in queries.chunks_exact_mut(dim).enumerate().take(N) {
        rope.rotate(&qkv[(first + i) * dim..][..dim], position, heads.scale(), query);
    }
    for start in (0..position + 1).step_by(TILE) {
        let sums = score::<N>(queries, dim, &keys[layout.tile(start)..]);
        for (scores, sums) in scores.chunks_exact_mut(layout.capacity).zip(sums) {
            scores[start..start + TILE].copy_from_slice(&sums);
        }
    }
    let mut inverse = [0.0; N];
    for (scores, inverse) in scores.chunks_exact_mut(layout.capacity).zip(&mut inverse) {
        *inverse = 1.0 / softmax_numerators(&mut scores[..position + 1]).1;
    }
    let probs = std::array::from_fn(|i| &scores[i * layout.capacity..][..position + 1]);
    mix::<N>(probs, inverse, values, layout.dim, &mut out[first * dim..(first + N) * dim]);
}

/// Scores of one tile of keys for each query of `dim` values.
#[inline(always)]
fn score<const N: usize>(queries: &[f32], dim: usize, tile: &[f32]) -> [[f32; TILE]; N] {
    let queries: [&[f32]; N] = std::array::from_fn(|i| &queries[i * dim..(i + 1) * dim]);
    let mut sums = [[[0.0_f32; LANES]; TILE / LANES]; N];
    for (d, keys) in tile.as_chunks::<TILE>().0.iter().enumerate().take(dim) {
        let keys: [[f32; LANES]; TILE / LANES] = std::array::from_fn(|half| lanes(&keys[half * LANES..]));
        for query in 0..N {
            let q = queries[query][d];
            for half in 0..TILE / LANES {
                for i in 0..LANES {
                    sums[query][half][i] = q.mul_add(keys[half][i], sums[query][half][i]);
                }
            }
        }
    }
    sums.map(|sums| std::array::from_fn(|i| sums[i / LANES][i % LANES]))
}

/// Σ over tokens of probability times value, times `inverse`; the remainder of the tokens forms a separate
/// chain.
#[inline(always)]
fn mix<const N: usize>(probs: [&[f32]; N], inverse: [f32; N], values: &[f32], dim: usize, out: &mut [f32]) {
    let head_dim = out.len() / N;
    let n_tokens = probs[0].len();
    let whole = n_tokens / CHAINS * CHAINS;
    for chunk in (0..head_dim).step_by(LANES) {
        let mut sums = [[[0.0_f32; LANES]; CHAINS]; N];
        for (four, values) in values.chunks_exact(CHAINS * dim).enumerate().take(whole / CHAINS) {
            for chain in 0..CHAINS {
                let value = lanes(&values[chain * dim + chunk..]);
                for head in 0..N {
                    let p = probs[head][four * CHAINS + chain];
                    for i in 0..LANES {
                        sums[head][chain][i] = p.mul_add(value[i], sums[head][chain][i]);
                    }
                }
            }
        }
        for head in 0..N {
            let mut tail = [0.0_f32; LANES];
            for (p, value) in probs[head][whole..].iter().zip(values[whole * dim..].chunks_exact(dim)) {
                let value = lanes(&value[chunk..]);
                for i in 0..LANES {
                    tail[i] = p.mul_add(value[i], tail[i]);
                }
            }
            let sums = &sums[head];
            for i in 0..LANES {
                let sum = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
                tail[i] = (sum + tail[i]) * inverse[head];
            }
            let wanted = LANES.min(head_dim - chunk);
            out[head * head_dim + chunk..][..wanted].copy_from_slice(&tail[..wanted]);
        }
    }
}

/// The first vector of `x`, by value: copying it prevents the compiler from splitting the load.
#[inline(always)]
fn lanes(x: &[f32]) -> [f32; LANES] {
    *x.first_chunk().expect("rows are padded to whole vectors")
}
