//! Causal attention with grouped heads over packed sequences, and its gradient.
//!
//! `softmax(q·k / √D) v` ("Attention Is All You Need", arXiv 1706.03762, equation 1), each query head
//! sharing its keys and values with a group of others ("GQA", arXiv 2305.13245), rotary positions
//! applied inside ([`Rope`]). [`forward`] takes rows of `q ‖ k ‖ v` as one projection makes them and
//! keeps, besides the output, only the logarithm of each softmax's sum; [`backward`] recomputes the
//! probabilities from it ("FlashAttention", arXiv 2205.14135, algorithm 4) in blocks of
//! [`BLOCK`] queries, so memory is linear in the number of tokens.
//!
//! A sequence starts where its predecessor ends and sees nothing of it; positions restart at 0.
//! There is no padding and no other mask.
//!
//! Shapes: T tokens in all, H query heads, K key/value heads, head size D, sequence of L tokens.

use super::math::{dot, exp, ln, max, sum_of};
use super::matmul::{Packed, Store, View, matmul, matmul_packed};
use super::multiversion;
use super::rope::Rope;

/// Queries handled at a time: few enough that little work falls on the masked triangle.
const BLOCK: usize = 48;

/// The sizes of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads, a multiple of `n_kv_heads`.
    pub n_heads: usize,
    /// Key and value heads.
    pub n_kv_heads: usize,
    /// Values a head, even.
    pub head_dim: usize,
}

impl Heads {
    /// Length of a row of `q ‖ k ‖ v`.
    pub fn qkv_width(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }

    /// Length of a row of the output.
    pub fn out_width(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Query heads that share one key head.
    pub fn group(&self) -> usize {
        self.n_heads / self.n_kv_heads
    }

    /// 1/√D.
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    fn key_offset(&self, kv_head: usize) -> usize {
        (self.n_heads + kv_head) * self.head_dim
    }

    fn value_offset(&self, kv_head: usize) -> usize {
        (self.n_heads + self.n_kv_heads + kv_head) * self.head_dim
    }
}

/// Attention of every sequence. `out` `[T, H·D]` is overwritten; so is `log_sums` `[T, H]`.
///
/// # Panics
/// If a slice is too short for the `lengths`, or a sequence longer than the table of `rope`.
pub fn forward(
    qkv: &[f32],
    lengths: &[usize],
    heads: Heads,
    rope: &Rope,
    out: &mut [f32],
    log_sums: &mut [f32],
) {
    let (width, out_width, dim) = (heads.qkv_width(), heads.out_width(), heads.head_dim);
    let mut work = Work::default();
    let mut start = 0;
    for &len in lengths {
        let qkv = &qkv[start * width..(start + len) * width];
        for kv_head in 0..heads.n_kv_heads {
            work.load_keys(qkv, len, heads, rope, kv_head);
            let values = View::new(&qkv[heads.value_offset(kv_head)..], len, dim, width);
            work.values.pack(values);
            for head in kv_head * heads.group()..(kv_head + 1) * heads.group() {
                work.load_queries(qkv, len, heads, rope, head);
                for first in (0..len).step_by(BLOCK) {
                    let last = len.min(first + BLOCK);
                    work.scores_of(first, last, dim);
                    let log_sums = &mut log_sums[(start + first) * heads.n_heads + head..];
                    softmax_block(&mut work.scores, last, first, log_sums, heads.n_heads);
                    let probs = View::new(&work.scores, last - first, last, last);
                    let out = &mut out[(start + first) * out_width + head * dim..];
                    matmul_packed(out, out_width, probs, &work.values, dim, Store::Set);
                }
            }
        }
        start += len;
    }
}

/// Gradient of [`forward`] with respect to `qkv`, written to `d_qkv` `[T, (H+2K)·D]`, given its
/// output, its `log_sums` and the gradient of its output.
///
/// With P the probabilities, `dV = Pᵀ dO`, `dS = P ∘ (dO Vᵀ − rowsum(dO ∘ O))`, `dQ = dS K`,
/// `dK = dSᵀ Q`, and the rotations undone.
pub fn backward(
    qkv: &[f32],
    lengths: &[usize],
    heads: Heads,
    rope: &Rope,
    saved: (&[f32], &[f32]),
    d_out: &[f32],
    d_qkv: &mut [f32],
) {
    let (out, log_sums) = saved;
    let (width, out_width, dim) = (heads.qkv_width(), heads.out_width(), heads.head_dim);
    let mut work = Work::default();
    let mut start = 0;
    for &len in lengths {
        let qkv = &qkv[start * width..(start + len) * width];
        let d_qkv = &mut d_qkv[start * width..(start + len) * width];
        for kv_head in 0..heads.n_kv_heads {
            work.load_keys(qkv, len, heads, rope, kv_head);
            let values = View::new(&qkv[heads.value_offset(kv_head)..], len, dim, width);
            work.values.pack(values.t());
            work.d_keys.clear();
            work.d_keys.resize(len * dim, 0.0);
            let d_values = heads.value_offset(kv_head);
            for row in d_qkv.chunks_exact_mut(width) {
                row[d_values..d_values + dim].fill(0.0);
            }
            for head in kv_head * heads.group()..(kv_head + 1) * heads.group() {
                work.load_queries(qkv, len, heads, rope, head);
                for first in (0..len).step_by(BLOCK) {
                    let last = len.min(first + BLOCK);
                    let rows = last - first;
                    let at = (start + first) * out_width + head * dim;
                    let d_out_block = View::new(&d_out[at..], rows, dim, out_width);
                    work.scores_of(first, last, dim);
                    work.d_scores.resize(rows * last, 0.0);
                    matmul_packed(&mut work.d_scores, last, d_out_block, &work.values, last, Store::Set);
                    for row in 0..rows {
                        let at = at + row * out_width;
                        work.deltas[row] = row_dot(&out[at..at + dim], &d_out[at..at + dim]);
                    }
                    let log_sums = &log_sums[(start + first) * heads.n_heads + head..];
                    softmax_block_backward(
                        &mut work.scores,
                        &mut work.d_scores,
                        last,
                        first,
                        (log_sums, heads.n_heads),
                        &work.deltas,
                    );
                    let probs = View::new(&work.scores, rows, last, last);
                    let d_scores = View::new(&work.d_scores, rows, last, last);
                    let queries = View::new(&work.queries[first * dim..], rows, dim, dim);
                    matmul(&mut d_qkv[d_values..], width, probs.t(), d_out_block, Store::Add);
                    matmul(&mut work.d_keys, dim, d_scores.t(), queries, Store::Add);
                    let d_queries = &mut work.d_queries[first * dim..];
                    matmul_packed(d_queries, dim, d_scores, &work.key_rows, dim, Store::Set);
                }
                rotate_back_head(rope, &work.d_queries, heads.scale(), &mut d_qkv[head * dim..], width, dim);
            }
            let d_keys = &mut d_qkv[heads.key_offset(kv_head)..];
            rotate_back_head(rope, &work.d_keys, 1.0, d_keys, width, dim);
        }
        start += len;
    }
}

/// The memory of one head at a time, kept from head to head.
#[derive(Default)]
struct Work {
    /// Rotated keys `[L, D]`, and packed for q·kᵀ and for dS·k.
    rotated: Vec<f32>,
    keys: Packed,
    key_rows: Packed,
    /// Values packed for P·v, or transposed for dO·vᵀ.
    values: Packed,
    /// Rotated queries times 1/√D. `[L, D]`
    queries: Vec<f32>,
    /// A block's scores, then probabilities. `[BLOCK, columns up to the diagonal]`
    scores: Vec<f32>,
    d_scores: Vec<f32>,
    deltas: Vec<f32>,
    d_queries: Vec<f32>,
    d_keys: Vec<f32>,
}

impl Work {
    fn load_keys(&mut self, qkv: &[f32], len: usize, heads: Heads, rope: &Rope, kv_head: usize) {
        let dim = heads.head_dim;
        self.rotated.resize(len * dim, 0.0);
        let keys = &qkv[heads.key_offset(kv_head)..];
        rotate_head(rope, keys, heads.qkv_width(), dim, 1.0, &mut self.rotated);
        let keys = View::rows_of(&self.rotated, dim);
        self.keys.pack(keys.t());
        self.key_rows.pack(keys);
    }

    fn load_queries(&mut self, qkv: &[f32], len: usize, heads: Heads, rope: &Rope, head: usize) {
        let dim = heads.head_dim;
        self.queries.resize(len * dim, 0.0);
        self.d_queries.resize(len * dim, 0.0);
        self.deltas.resize(BLOCK, 0.0);
        let queries = &qkv[head * dim..];
        rotate_head(rope, queries, heads.qkv_width(), dim, heads.scale(), &mut self.queries);
    }

    /// Scores of the queries `first .. last` against the keys before `last`.
    fn scores_of(&mut self, first: usize, last: usize, dim: usize) {
        self.scores.resize((last - first) * last, 0.0);
        let queries = View::new(&self.queries[first * dim..], last - first, dim, dim);
        matmul_packed(&mut self.scores, last, queries, &self.keys, last, Store::Set);
    }
}

multiversion! {
    /// Rotates one head of consecutive tokens, whose rows begin every `stride` values, into `[L, D]`.
    fn rotate_head(rope: &Rope, x: &[f32], stride: usize, dim: usize, scale: f32, out: &mut [f32]) {
        for (position, (x, out)) in x.chunks(stride).zip(out.chunks_exact_mut(dim)).enumerate() {
            rope.rotate(&x[..dim], position, scale, out);
        }
    }
}

multiversion! {
    /// Undoes [`rotate_head`] for a gradient `[L, D]`, into rows that begin every `stride` values.
    fn rotate_back_head(rope: &Rope, x: &[f32], scale: f32, out: &mut [f32], stride: usize, dim: usize) {
        for (position, (x, out)) in x.chunks_exact(dim).zip(out.chunks_mut(stride)).enumerate() {
            rope.rotate_back(x, position, scale, &mut out[..dim]);
        }
    }
}

multiversion! {
    /// Turns rows of scores into probabilities; row i sees the first `first + i + 1` of `cols` columns
    /// and gets 0 in the others. The logarithms of the sums go to every `stride`-th of `log_sums`.
    fn softmax_block(scores: &mut [f32], cols: usize, first: usize, log_sums: &mut [f32], stride: usize) {
        for (i, row) in scores.chunks_exact_mut(cols).enumerate() {
            let (seen, masked) = row.split_at_mut(first + i + 1);
            masked.fill(0.0);
            let highest = max(seen);
            for score in seen.iter_mut() {
                *score = exp(*score - highest);
            }
            let total = sum_of(seen, |p| p);
            let inverse = 1.0 / total;
            for p in seen.iter_mut() {
                *p *= inverse;
            }
            log_sums[i * stride] = highest + ln(total);
        }
    }
}

multiversion! {
    /// Turns rows of scores into probabilities P again, and rows of dP into dS = P ∘ (dP − delta).
    fn softmax_block_backward(
        scores: &mut [f32],
        d_scores: &mut [f32],
        cols: usize,
        first: usize,
        log_sums: (&[f32], usize),
        deltas: &[f32],
    ) {
        let (log_sums, stride) = log_sums;
        let rows = scores.chunks_exact_mut(cols).zip(d_scores.chunks_exact_mut(cols));
        for (i, (row, d_row)) in rows.enumerate() {
            let (seen, masked) = row.split_at_mut(first + i + 1);
            let (d_seen, d_masked) = d_row.split_at_mut(first + i + 1);
            masked.fill(0.0);
            d_masked.fill(0.0);
            let (log_sum, delta) = (log_sums[i * stride], deltas[i]);
            for (p, d) in seen.iter_mut().zip(d_seen) {
                *p = exp(*p - log_sum);
                *d = *p * (*d - delta);
            }
        }
    }
}

multiversion! {
    fn row_dot(a: &[f32], b: &[f32]) -> f32 {
        dot(a, b)
    }
}
