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

mod work;

use rayon::prelude::*;

use self::work::{Work, rotate_back_head, softmax_block};
use super::matmul::{Store, View, matmul, matmul_packed};
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
