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
//! There is no padding and no other mask. Where the layer is wide, threads share the key heads.
//!
//! Shapes: T tokens in all, H query heads, K key/value heads, head size D, sequence of L tokens.

use rayon::prelude::*;

use super::math::{dot, exp, ln, max, sum_of};
use super::matmul::{Packed, Store, View, matmul, matmul_packed};
use super::multiversion;
use super::rope::Rope;
use super::threads::Threads;

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

/// Output and `log_sums` of a forward pass.
type Saved<'a> = (&'a [f32], &'a [f32]);

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
    let (out_width, n_heads, group) = (heads.out_width(), heads.n_heads, heads.group());
    let group_width = group * heads.head_dim;
    if Threads::for_width(out_width) == Threads::One {
        let mut work = Work::default();
        for unit in Unit::all(lengths, heads) {
            let out = &mut out[unit.start * out_width + unit.kv_head * group_width..];
            let log_sums = &mut log_sums[unit.start * n_heads + unit.kv_head * group..];
            unit.forward(&mut work, qkv, heads, rope, (out, out_width), (log_sums, n_heads));
        }
        return;
    }
    let alone = |work: &mut Work, unit: Unit| {
        let (mut out, mut sums) = (vec![0.0; unit.len * group_width], vec![0.0; unit.len * group]);
        unit.forward(work, qkv, heads, rope, (&mut out, group_width), (&mut sums, group));
        (unit, out, sums)
    };
    let done: Vec<_> = Unit::all(lengths, heads).into_par_iter().map_init(Work::default, alone).collect();
    for (unit, part, sums) in done {
        put_columns(
            &part,
            group_width,
            &mut out[unit.start * out_width..],
            out_width,
            unit.kv_head * group_width,
        );
        put_columns(&sums, group, &mut log_sums[unit.start * n_heads..], n_heads, unit.kv_head * group);
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
    saved: Saved,
    d_out: &[f32],
    d_qkv: &mut [f32],
) {
    let (width, dim, group) = (heads.qkv_width(), heads.head_dim, heads.group());
    if Threads::for_width(heads.out_width()) == Threads::One {
        let mut work = Work::default();
        for unit in Unit::all(lengths, heads) {
            let places = Places {
                queries: unit.kv_head * group * dim,
                keys: heads.key_offset(unit.kv_head),
                values: heads.value_offset(unit.kv_head),
                width,
            };
            let d_qkv = &mut d_qkv[unit.start * width..(unit.start + unit.len) * width];
            unit.backward(&mut work, qkv, heads, rope, (saved, d_out), (d_qkv, places));
        }
        return;
    }
    // Rows of the group's queries ‖ key ‖ value.
    let places =
        Places { queries: 0, keys: group * dim, values: (group + 1) * dim, width: (group + 2) * dim };
    let alone = |work: &mut Work, unit: Unit| {
        let mut part = vec![0.0; unit.len * places.width];
        unit.backward(work, qkv, heads, rope, (saved, d_out), (&mut part, places));
        (unit, part)
    };
    let done: Vec<_> = Unit::all(lengths, heads).into_par_iter().map_init(Work::default, alone).collect();
    for (unit, part) in done {
        let rows = part.chunks_exact(places.width).zip(d_qkv[unit.start * width..].chunks_exact_mut(width));
        for (part, row) in rows {
            let (queries, key_value) = part.split_at(places.keys);
            let (key, value) = key_value.split_at(dim);
            row[unit.kv_head * group * dim..][..group * dim].copy_from_slice(queries);
            row[heads.key_offset(unit.kv_head)..][..dim].copy_from_slice(key);
            row[heads.value_offset(unit.kv_head)..][..dim].copy_from_slice(value);
        }
    }
}

/// Copies rows of `width` values to the columns from `col` on of rows that begin every `stride` values.
fn put_columns(part: &[f32], width: usize, out: &mut [f32], stride: usize, col: usize) {
    for (part, row) in part.chunks_exact(width).zip(out.chunks_mut(stride)) {
        row[col..col + width].copy_from_slice(part);
    }
}

/// Where one unit's gradients go in rows of `width` values.
#[derive(Clone, Copy)]
struct Places {
    queries: usize,
    keys: usize,
    values: usize,
    width: usize,
}

/// One key head of one sequence, with its query heads: what can be computed apart.
#[derive(Clone, Copy)]
struct Unit {
    /// First token.
    start: usize,
    len: usize,
    kv_head: usize,
}

impl Unit {
    fn all(lengths: &[usize], heads: Heads) -> Vec<Self> {
        let starts = lengths.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len)));
        let sequences = starts.zip(lengths);
        sequences
            .flat_map(|(start, &len)| (0..heads.n_kv_heads).map(move |kv_head| Self { start, len, kv_head }))
            .collect()
    }

    /// `out` and `log_sums` begin at the unit's first value and come with their strides.
    fn forward(
        self,
        work: &mut Work,
        qkv: &[f32],
        heads: Heads,
        rope: &Rope,
        (out, out_stride): (&mut [f32], usize),
        (log_sums, sums_stride): (&mut [f32], usize),
    ) {
        let (len, dim, width) = (self.len, heads.head_dim, heads.qkv_width());
        let qkv = &qkv[self.start * width..(self.start + len) * width];
        work.load_keys(qkv, len, heads, rope, self.kv_head);
        work.values.pack(View::new(&qkv[heads.value_offset(self.kv_head)..], len, dim, width));
        for of_group in 0..heads.group() {
            work.load_queries(qkv, len, heads, rope, self.kv_head * heads.group() + of_group);
            for first in (0..len).step_by(BLOCK) {
                let last = len.min(first + BLOCK);
                work.scores_of(first, last, dim);
                let log_sums = &mut log_sums[first * sums_stride + of_group..];
                softmax_block(&mut work.scores, last, first, log_sums, sums_stride);
                let probs = View::new(&work.scores, last - first, last, last);
                let out = &mut out[first * out_stride + of_group * dim..];
                matmul_packed(out, out_stride, probs, &work.values, dim, Store::Set, Threads::One);
            }
        }
    }

    /// `d_qkv` holds the unit's rows.
    fn backward(
        self,
        work: &mut Work,
        qkv: &[f32],
        heads: Heads,
        rope: &Rope,
        ((out, log_sums), d_out): (Saved, &[f32]),
        (d_qkv, places): (&mut [f32], Places),
    ) {
        let (len, dim, out_width) = (self.len, heads.head_dim, heads.out_width());
        let qkv = &qkv[self.start * heads.qkv_width()..(self.start + len) * heads.qkv_width()];
        work.load_keys(qkv, len, heads, rope, self.kv_head);
        let values = View::new(&qkv[heads.value_offset(self.kv_head)..], len, dim, heads.qkv_width());
        work.values.pack(values.t());
        work.d_keys.clear();
        work.d_keys.resize(len * dim, 0.0);
        for row in d_qkv.chunks_exact_mut(places.width) {
            row[places.values..places.values + dim].fill(0.0);
        }
        for of_group in 0..heads.group() {
            let head = self.kv_head * heads.group() + of_group;
            work.load_queries(qkv, len, heads, rope, head);
            for first in (0..len).step_by(BLOCK) {
                let rows = BLOCK.min(len - first);
                let at = (self.start + first) * out_width + head * dim;
                let log_sums = &log_sums[(self.start + first) * heads.n_heads + head..];
                let of_block = (&out[at..], &d_out[at..], out_width);
                work.probabilities_of(first, rows, dim, of_block, (log_sums, heads.n_heads));
                let d_out_block = View::new(&d_out[at..], rows, dim, out_width);
                let probs = View::rows_of(&work.scores, first + rows);
                let d_scores = View::rows_of(&work.d_scores, first + rows);
                let queries = View::new(&work.queries[first * dim..], rows, dim, dim);
                matmul(&mut d_qkv[places.values..], places.width, probs.t(), d_out_block, Store::Add);
                matmul(&mut work.d_keys, dim, d_scores.t(), queries, Store::Add);
                let d_queries = &mut work.d_queries[first * dim..];
                matmul_packed(d_queries, dim, d_scores, &work.key_rows, dim, Store::Set, Threads::One);
            }
            let d_queries = &mut d_qkv[places.queries + of_group * dim..];
            rotate_back_head(rope, &work.d_queries, heads.scale(), d_queries, places.width, dim);
        }
        rotate_back_head(rope, &work.d_keys, 1.0, &mut d_qkv[places.keys..], places.width, dim);
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
        matmul_packed(&mut self.scores, last, queries, &self.keys, last, Store::Set, Threads::One);
    }

    /// P and dS of the `rows` queries from `first` on, into `scores` and `d_scores`; `out` and `d_out` begin
    /// at the block's first value and come with their stride, as do the `log_sums`.
    fn probabilities_of(
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
