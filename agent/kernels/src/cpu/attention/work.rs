//! Attention of one head: its working memory, and the steps over a block of queries.

use crate::cpu::attention::{BLOCK, Heads};
use crate::cpu::math::{dot, exp, ln, softmax_numerators};
use crate::cpu::matmul::{Packed, Store, View, matmul_packed};
use crate::cpu::rope::Rope;
use crate::cpu::threads::Threads;
use crate::multiversion;

/// Working memory for one head, reused for the next.
#[derive(Default)]
pub(super) struct Work {
    /// Rows of `q ‖ k ‖ v` of a prefix and of the sequence that continues it, concatenated.
    pub(super) joined: Vec<f32>,
    /// Rotated keys `[L, D]`; `keys` is packed for q·kᵀ, `key_rows` for dS·k.
    rotated: Vec<f32>,
    keys: Packed,
    pub(super) key_rows: Packed,
    /// Values packed for P·v, or transposed for dO·vᵀ.
    pub(super) values: Packed,
    /// Rotated queries divided by √D. `[L, D]`
    pub(super) queries: Vec<f32>,
    /// A block's scores, then probabilities. `[BLOCK, columns up to the diagonal]`
    pub(super) scores: Vec<f32>,
    pub(super) d_scores: Vec<f32>,
    deltas: Vec<f32>,
    pub(super) d_queries: Vec<f32>,
    pub(super) d_keys: Vec<f32>,
}

impl Work {
    /// Rotates and packs the keys of a head, from rows of `q ‖ k ‖ v`.
    pub(super) fn load_keys(&mut self, qkv: &[f32], len: usize, heads: Heads, rope: &Rope, kv_head: usize) {
        let dim = heads.head_dim;
        self.rotated.resize(len * dim, 0.0);
        let keys = &qkv[heads.key_offset(kv_head)..];
        rotate_head(rope, keys, heads.qkv_width(), dim, 1.0, &mut self.rotated);
        let keys = View::rows_of(&self.rotated, dim);
        self.keys.pack(keys.t());
        self.key_rows.pack(keys);
    }

    /// Rotates the queries of a head and divides them by √D, from rows of `q ‖ k ‖ v`.
    pub(super) fn load_queries(&mut self, qkv: &[f32], len: usize, heads: Heads, rope: &Rope, head: usize) {
        let dim = heads.head_dim;
        self.queries.resize(len * dim, 0.0);
        self.d_queries.resize(len * dim, 0.0);
        self.deltas.resize(BLOCK, 0.0);
        let queries = &qkv[head * dim..];
        rotate_head(rope, queries, heads.qkv_width(), dim, heads.scale(), &mut self.queries);
    }

    /// Computes the scores of the queries `first .. last` against the keys before `last`.
    pub(super) fn scores_of(&mut self, first: usize, last: usize, dim: usize) {
        self.scores.resize((last - first) * last, 0.0);
        let queries = View::new(&self.queries[first * dim..], last - first, dim, dim);
        matmul_packed(&mut self.scores, last, queries, &self.keys, last, Store::Set, Threads::One);
    }

    /// Computes P and dS of `rows` queries, the first at position `first`, into `scores` and `d_scores`.
    /// `out` and `d_out` start at the first value of the block and come with their stride; so does
    /// `log_sums`.
    pub(super) fn probabilities_of(
        &mut self,
        first: usize,
        rows: usize,
        dim: usize,
        (out, d_out, stride): (&[f32], &[f32], usize),
        log_sums: (&[f32], usize),
    ) {
        let last = first + rows;
        self.scores_of(first, last, dim);
        self.d_scores.resize(rows * last, 0.0);
        let d_out_block = View::new(d_out, rows, dim, stride);
        matmul_packed(&mut self.d_scores, last, d_out_block, &self.values, last, Store::Set, Threads::One);
        for (row, delta) in self.deltas.iter_mut().enumerate().take(rows) {
            *delta = row_dot(&out[row * stride..][..dim], &d_out[row * stride..][..dim]);
        }
        softmax_block_backward(&mut self.scores, &mut self.d_scores, last, first, log_sums, &self.deltas);
    }
}

multiversion! {
    /// Rotates one head of consecutive tokens into `[L, D]`; its input rows start every `stride` values.
    fn rotate_head(rope: &Rope, x: &[f32], stride: usize, dim: usize, scale: f32, out: &mut [f32]) {
        for (position, (x, out)) in x.chunks(stride).zip(out.chunks_exact_mut(dim)).enumerate() {
            rope.rotate(&x[..dim], position, scale, out);
        }
    }
}

multiversion! {
    /// Inverts [`rotate_head`] for a gradient `[L, D]`, into rows that start every `stride` values.
    pub(super) fn rotate_back_head(rope: &Rope, x: &[f32], scale: f32, out: &mut [f32], stride: usize, dim: usize) {
        for (position, (x, out)) in x.chunks_exact(dim).zip(out.chunks_mut(stride)).enumerate() {
            rope.rotate_back(x, position, scale, &mut out[..dim]);
        }
    }
}

multiversion! {
    /// Replaces rows of scores by probabilities. Row i attends to the first `first + i + 1` of `cols`
    /// columns; the other columns become 0. The logarithm of the sum of row i is written to
    /// `log_sums[i * stride]`.
    pub(super) fn softmax_block(scores: &mut [f32], cols: usize, first: usize, log_sums: &mut [f32], stride: usize) {
        for (i, row) in scores.chunks_exact_mut(cols).enumerate() {
            let (seen, masked) = row.split_at_mut(first + i + 1);
            masked.fill(0.0);
            let (highest, total) = softmax_numerators(seen);
            let inverse = 1.0 / total;
            for p in seen.iter_mut() {
                *p *= inverse;
            }
            log_sums[i * stride] = highest + ln(total);
        }
    }
}

multiversion! {
    /// Recomputes probabilities P from rows of scores, and turns rows of dP into dS = P ∘ (dP − delta).
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
    /// Σ aᵢ bᵢ.
    fn row_dot(a: &[f32], b: &[f32]) -> f32 {
        dot(a, b)
    }
}
