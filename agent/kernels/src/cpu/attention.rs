//! Causal attention with grouped heads over packed sequences, and its gradient.
//!
//! `softmax(q·k / √D) v` ("Attention Is All You Need", arXiv 1706.03762, equation 1). Each group of query
//! heads shares one key and value head ("GQA", arXiv 2305.13245). Rotary positions are applied inside
//! ([`Rope`]). [`forward`] takes rows of `q ‖ k ‖ v`, the output of one joined projection. It returns the
//! attention output and the logarithm of each softmax's sum; [`backward`] recomputes the probabilities from
//! it ("FlashAttention", arXiv 2205.14135, algorithm 4) in blocks of `BLOCK` queries, so memory is linear in
//! the number of tokens.
//!
//! Sequences are concatenated without padding and do not attend to each other; positions restart at 0. A
//! sequence with a prefix ([`Sequences::prefix_of`]) continues another sequence and attends to all of it, so
//! that a prompt shared by several sequences is computed once; the gradients of all are added. The key heads
//! of a wide layer are divided among threads.
//!
//! Shapes: T tokens in total, H query heads, K key/value heads, head size D, sequence of L tokens.

mod work;

use rayon::prelude::*;

use crate::cpu::attention::work::{Work, rotate_back_head, softmax_block};
use crate::cpu::matmul::{Store, View, matmul, matmul_packed};
use crate::cpu::rope::Rope;
use crate::cpu::rows::add_rows;
use crate::cpu::threads::Threads;

/// Queries processed at a time: small enough that little work is spent on masked scores.
const BLOCK: usize = 48;

/// The sizes of an attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads, a multiple of `n_kv_heads`.
    pub n_heads: usize,
    /// Key and value heads.
    pub n_kv_heads: usize,
    /// Head size, even.
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

    /// Column of the first value of a key head in a row of `q ‖ k ‖ v`.
    #[inline(always)]
    pub(crate) fn key_offset(&self, kv_head: usize) -> usize {
        (self.n_heads + kv_head) * self.head_dim
    }

    /// Column of the first value of a value head in a row of `q ‖ k ‖ v`.
    #[inline(always)]
    pub(crate) fn value_offset(&self, kv_head: usize) -> usize {
        (self.n_heads + self.n_kv_heads + kv_head) * self.head_dim
    }
}

/// Concatenated sequences.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// Number of tokens of each sequence.
    pub lengths: &'a [usize],
    /// For each sequence the index of the earlier sequence that it continues (its prefix), or `None`. A
    /// prefix sequence has no prefix itself. An empty slice means that no sequence has one.
    pub prefix_of: &'a [Option<usize>],
}

impl Sequences<'_> {
    /// The index of the prefix of `sequence`.
    pub fn prefix_index(&self, sequence: usize) -> Option<usize> {
        self.prefix_of.get(sequence).copied().flatten()
    }

    /// Number of tokens that the last token of `sequence` attends to, itself included.
    pub fn reach(&self, sequence: usize) -> usize {
        self.lengths[sequence] + self.prefix_index(sequence).map_or(0, |prefix| self.lengths[prefix])
    }
}

/// Output and `log_sums` of a forward pass.
type Saved<'a> = (&'a [f32], &'a [f32]);

/// Attention of every sequence. `out` `[T, H·D]` is overwritten; so is `log_sums` `[T, H]`.
///
/// # Panics
/// If a slice is too short for the `sequences`, or a position lies beyond the table of `rope`.
pub fn forward(
    qkv: &[f32],
    sequences: Sequences<'_>,
    heads: Heads,
    rope: &Rope,
    out: &mut [f32],
    log_sums: &mut [f32],
) {
    let (out_width, n_heads, group) = (heads.out_width(), heads.n_heads, heads.group());
    let group_width = group * heads.head_dim;
    if Threads::for_width(out_width) == Threads::One {
        let mut work = Work::default();
        for unit in Unit::all(sequences, heads) {
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
    let done: Vec<_> = Unit::all(sequences, heads).into_par_iter().map_init(Work::default, alone).collect();
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
    sequences: Sequences<'_>,
    heads: Heads,
    rope: &Rope,
    saved: Saved,
    d_out: &[f32],
    d_qkv: &mut [f32],
) {
    let (width, dim, group) = (heads.qkv_width(), heads.head_dim, heads.group());
    // Rows of the group's queries ‖ key ‖ value.
    let apart = Places { queries: 0, keys: group * dim, values: (group + 1) * dim, width: (group + 2) * dim };
    let alone = |work: &mut Work, unit: Unit| {
        let mut part = vec![0.0; (unit.n_before() + unit.len) * apart.width];
        unit.backward(work, qkv, heads, rope, (saved, d_out), (&mut part, apart));
        (unit, part)
    };
    if Threads::for_width(heads.out_width()) == Threads::One {
        let mut work = Work::default();
        for unit in Unit::all(sequences, heads) {
            if unit.prefix.is_some() {
                let (unit, part) = alone(&mut work, unit);
                unit.put(&part, heads, d_qkv);
                continue;
            }
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
    let done: Vec<_> = Unit::all(sequences, heads).into_par_iter().map_init(Work::default, alone).collect();
    for (unit, part) in done {
        unit.put(&part, heads, d_qkv);
    }
}

/// Copies rows of `width` values to the columns from `col` on of rows that start every `stride` values.
fn put_columns(part: &[f32], width: usize, out: &mut [f32], stride: usize, col: usize) {
    for (part, row) in part.chunks_exact(width).zip(out.chunks_mut(stride)) {
        row[col..col + width].copy_from_slice(part);
    }
}

/// Column offsets of the gradients of one unit in rows of `width` values.
#[derive(Clone, Copy)]
struct Places {
    queries: usize,
    keys: usize,
    values: usize,
    width: usize,
}

/// One key head of one sequence with its query heads: the unit of parallel work.
#[derive(Clone, Copy)]
struct Unit {
    /// First token.
    start: usize,
    len: usize,
    kv_head: usize,
    /// First token and length of the prefix.
    prefix: Option<(usize, usize)>,
}

impl Unit {
    /// All units in the order of the sequences, so that a prefix precedes the sequences that continue it.
    fn all(sequences: Sequences<'_>, heads: Heads) -> Vec<Self> {
        let lengths = sequences.lengths;
        let starts = lengths.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len)));
        let starts: Vec<usize> = starts.collect();
        let of_sequence = |sequence: usize| {
            let prefix = sequences.prefix_index(sequence).map(|prefix| (starts[prefix], lengths[prefix]));
            let (start, len) = (starts[sequence], lengths[sequence]);
            (0..heads.n_kv_heads).map(move |kv_head| Self { start, len, kv_head, prefix })
        };
        (0..lengths.len()).flat_map(of_sequence).collect()
    }

    /// Tokens of its prefix.
    fn n_before(self) -> usize {
        self.prefix.map_or(0, |(_, len)| len)
    }

    /// The rows of the prefix and of the sequence itself; `joined` holds them if they are not contiguous.
    fn rows<'a>(self, qkv: &'a [f32], width: usize, joined: &'a mut Vec<f32>) -> &'a [f32] {
        let own = &qkv[self.start * width..(self.start + self.len) * width];
        let Some((start, len)) = self.prefix else { return own };
        joined.clear();
        joined.extend_from_slice(&qkv[start * width..(start + len) * width]);
        joined.extend_from_slice(own);
        joined
    }

    /// Writes the gradients `part` (rows of the group's queries ‖ key ‖ value) to `d_qkv`. Rows of the
    /// sequence itself are overwritten; keys and values of the prefix are added.
    fn put(self, part: &[f32], heads: Heads, d_qkv: &mut [f32]) {
        let (width, dim, group) = (heads.qkv_width(), heads.head_dim, heads.group());
        let (key_at, value_at) = (heads.key_offset(self.kv_head), heads.value_offset(self.kv_head));
        let part_width = (group + 2) * dim;
        let (of_prefix, own) = part.split_at(self.n_before() * part_width);
        for (part, row) in
            own.chunks_exact(part_width).zip(d_qkv[self.start * width..].chunks_exact_mut(width))
        {
            let (queries, key_value) = part.split_at(group * dim);
            let (key, value) = key_value.split_at(dim);
            row[self.kv_head * group * dim..][..group * dim].copy_from_slice(queries);
            row[key_at..][..dim].copy_from_slice(key);
            row[value_at..][..dim].copy_from_slice(value);
        }
        let start = self.prefix.map_or(0, |(start, _)| start);
        for (part, row) in
            of_prefix.chunks_exact(part_width).zip(d_qkv[start * width..].chunks_exact_mut(width))
        {
            let (key, value) = part[group * dim..].split_at(dim);
            add_rows(key, &mut row[key_at..][..dim]);
            add_rows(value, &mut row[value_at..][..dim]);
        }
    }

    /// `out` and `log_sums` start at the first value of the unit and come with their strides.
    fn forward(
        self,
        work: &mut Work,
        qkv: &[f32],
        heads: Heads,
        rope: &Rope,
        (out, out_stride): (&mut [f32], usize),
        (log_sums, sums_stride): (&mut [f32], usize),
    ) {
        let (dim, width) = (heads.head_dim, heads.qkv_width());
        let (before, len) = (self.n_before(), self.n_before() + self.len);
        let mut joined = std::mem::take(&mut work.joined);
        let qkv = self.rows(qkv, width, &mut joined);
        work.load_keys(qkv, len, heads, rope, self.kv_head);
        work.values.pack(View::new(&qkv[heads.value_offset(self.kv_head)..], len, dim, width));
        for of_group in 0..heads.group() {
            work.load_queries(qkv, len, heads, rope, self.kv_head * heads.group() + of_group);
            for first in (before..len).step_by(BLOCK) {
                let last = len.min(first + BLOCK);
                work.scores_of(first, last, dim);
                let log_sums = &mut log_sums[(first - before) * sums_stride + of_group..];
                softmax_block(&mut work.scores, last, first, log_sums, sums_stride);
                let probs = View::new(&work.scores, last - first, last, last);
                let out = &mut out[(first - before) * out_stride + of_group * dim..];
                matmul_packed(out, out_stride, probs, &work.values, dim, Store::Set, Threads::One);
            }
        }
        work.joined = joined;
    }

    /// `d_qkv` holds the rows of the prefix, then those of the unit. The queries of the prefix get no
    /// gradient.
    fn backward(
        self,
        work: &mut Work,
        qkv: &[f32],
        heads: Heads,
        rope: &Rope,
        ((out, log_sums), d_out): (Saved, &[f32]),
        (d_qkv, places): (&mut [f32], Places),
    ) {
        let (dim, out_width) = (heads.head_dim, heads.out_width());
        let (before, len) = (self.n_before(), self.n_before() + self.len);
        let mut joined = std::mem::take(&mut work.joined);
        let qkv = self.rows(qkv, heads.qkv_width(), &mut joined);
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
            for first in (before..len).step_by(BLOCK) {
                let rows = BLOCK.min(len - first);
                let token = self.start + first - before;
                let at = token * out_width + head * dim;
                let log_sums = &log_sums[token * heads.n_heads + head..];
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
        work.joined = joined;
    }
}
