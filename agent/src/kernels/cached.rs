//! Attention of one new token over the keys and values of the tokens before it.
//!
//! [`attend`] stores the token's rotated key and its value in the lane's [`Block`] and computes what
//! its query heads see. Same formula as [`super::attention`], other order of sums (equal to about
//! 1e-6): a score is one chain over the head, a value four interleaved chains over the tokens. Only
//! the lane's own tokens enter, so its bits do not depend on the lanes beside it.

use super::attention::Heads;
use super::math::{LANES, exp, max, sum_of};
use super::multiversion;
use super::rope::Rope;

/// Tokens whose scores are computed at once; a row of keys is a multiple of this long.
pub const TOKENS: usize = 4 * LANES;
/// Interleaved chains of the sum over tokens.
const CHAINS: usize = 4;

/// Keys and values of one lane in one layer.
#[derive(Debug)]
pub struct Block<'a> {
    /// Rotated keys. `[kv head, dim, stride]`
    pub keys: &'a mut [f32],
    /// Values. `[kv head, stride, dim]`
    pub values: &'a mut [f32],
    /// Tokens there is room for, a multiple of [`TOKENS`].
    pub stride: usize,
    /// Values a head, padded with zeros to a multiple of [`LANES`].
    pub dim: usize,
}

multiversion! {
    /// Reads the token `qkv` (a row of q ‖ k ‖ v before rotation) at `position`, which must be the
    /// number of tokens already in `block`, and writes its attention to `out` `[H·D]`.
    /// `scores` is working memory.
    pub fn attend(
        qkv: &[f32],
        position: usize,
        heads: Heads,
        rope: &Rope,
        block: &mut Block,
        scores: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let head_dim = heads.head_dim;
        let (stride, dim) = (block.stride, block.dim);
        scores.resize(stride + dim, 0.0);
        let (scores, rotated) = scores.split_at_mut(stride);
        for kv_head in 0..heads.n_kv_heads {
            let keys = &mut block.keys[kv_head * dim * stride..(kv_head + 1) * dim * stride];
            let values = &mut block.values[kv_head * dim * stride..(kv_head + 1) * dim * stride];
            let key = &qkv[(heads.n_heads + kv_head) * head_dim..][..head_dim];
            let value = &qkv[(heads.n_heads + heads.n_kv_heads + kv_head) * head_dim..][..head_dim];
            rope.rotate(key, position, 1.0, rotated);
            for (keys, key) in keys.chunks_exact_mut(stride).zip(&rotated[..head_dim]) {
                keys[position] = *key;
            }
            values[position * dim..position * dim + head_dim].copy_from_slice(value);
            for head in kv_head * heads.group()..(kv_head + 1) * heads.group() {
                rope.rotate(&qkv[head * head_dim..][..head_dim], position, heads.scale(), rotated);
                score(&rotated[..head_dim], keys, stride, position + 1, scores);
                let seen = &mut scores[..position + 1];
                let highest = max(seen);
                for score in seen.iter_mut() {
                    *score = exp(*score - highest);
                }
                let inverse = 1.0 / sum_of(seen, |p| p);
                mix(seen, inverse, values, dim, &mut out[head * head_dim..][..head_dim]);
            }
        }
    }
}

/// Scores of the first `n_tokens` keys, rounded up to whole tiles.
#[inline(always)]
fn score(query: &[f32], keys: &[f32], stride: usize, n_tokens: usize, scores: &mut [f32]) {
    for (tile, scores) in scores.chunks_exact_mut(TOKENS).enumerate().take(n_tokens.div_ceil(TOKENS)) {
        let mut sums = [0.0_f32; TOKENS];
        for (q, keys) in query.iter().zip(keys.chunks_exact(stride)) {
            let keys = &keys[tile * TOKENS..(tile + 1) * TOKENS];
            for i in 0..TOKENS {
                sums[i] = q.mul_add(keys[i], sums[i]);
            }
        }
        scores.copy_from_slice(&sums);
    }
}

/// Σ over tokens of probability times value, times `inverse`; the last few tokens make a chain apart.
#[inline(always)]
fn mix(probs: &[f32], inverse: f32, values: &[f32], dim: usize, out: &mut [f32]) {
    for (chunk, out) in out.chunks_mut(LANES).enumerate() {
        let mut sums = [[0.0_f32; LANES]; CHAINS];
        let (fours, rest) = probs.as_chunks::<CHAINS>();
        for (probs, values) in fours.iter().zip(values.chunks_exact(CHAINS * dim)) {
            for chain in 0..CHAINS {
                let value = lanes(&values[chain * dim + chunk * LANES..]);
                for i in 0..LANES {
                    sums[chain][i] = probs[chain].mul_add(value[i], sums[chain][i]);
                }
            }
        }
        let mut tail = [0.0_f32; LANES];
        for (p, value) in rest.iter().zip(values[fours.len() * CHAINS * dim..].chunks_exact(dim)) {
            let value = lanes(&value[chunk * LANES..]);
            for i in 0..LANES {
                tail[i] = p.mul_add(value[i], tail[i]);
            }
        }
        for i in 0..LANES {
            tail[i] = (((sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i])) + tail[i]) * inverse;
        }
        out.copy_from_slice(&tail[..out.len()]);
    }
}

/// The first vector of `x`, by value: a copy keeps the compiler from taking the load apart.
#[inline(always)]
fn lanes(x: &[f32]) -> [f32; LANES] {
    *x.first_chunk().expect("rows are padded to whole vectors")
}
