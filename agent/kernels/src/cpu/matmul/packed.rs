//! The right-hand side of a product in the memory order of the inner loop.
//!
//! A [`Right`] is the source of the matrix: one [`View`], or several beside or below each other, such as
//! weights that multiply the same rows, which therefore need not be concatenated first. [`Packed`] holds the
//! result. Values that are all exact in bfloat16, such as those of published checkpoints, are stored in half
//! the memory: widening them restores the same numbers, and generation on few lanes is bound by memory
//! bandwidth.

use std::ops::Range;

use crate::cpu::matmul::{DEPTH, TILE_COLS, View};

/// A right-hand matrix, in one part or several.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a> {
    /// Parts of equal height, from the first column to the last.
    Beside(&'a [View<'a>]),
    /// Parts of equal width, from the first row to the last.
    Below(&'a [View<'a>]),
}

impl<'a> Right<'a> {
    fn parts(self) -> &'a [View<'a>] {
        let (Self::Beside(parts) | Self::Below(parts)) = self;
        parts
    }

    /// Rows and columns of the whole.
    ///
    /// # Panics
    /// If there is no part, or the shapes of the parts do not match.
    pub fn size(self) -> (usize, usize) {
        let (first, parts) = (self.parts()[0], self.parts());
        match self {
            Self::Beside(_) => {
                assert!(parts.iter().all(|part| part.rows == first.rows), "parts of different heights");
                (first.rows, parts.iter().map(|part| part.cols).sum())
            }
            Self::Below(_) => {
                assert!(parts.iter().all(|part| part.cols == first.cols), "parts of different widths");
                (parts.iter().map(|part| part.rows).sum(), first.cols)
            }
        }
    }

    /// Copies the columns `col ..` of one panel at the rows `first .. first + depth`, row after row.
    fn pack_panel(self, panel: &mut [f32], col: usize, first: usize, depth: usize) {
        let mut start = 0;
        for part in self.parts() {
            match self {
                Self::Beside(_) => {
                    let (from, to) = (col.max(start), (col + TILE_COLS).min(start + part.cols));
                    if from < to {
                        pack_panel::<TILE_COLS>(
                            panel,
                            from - col,
                            part.t(),
                            from - start..to - start,
                            first,
                            depth,
                        );
                    }
                    start += part.cols;
                }
                Self::Below(_) => {
                    let (from, to) = (first.max(start), (first + depth).min(start + part.rows));
                    if from < to {
                        let panel = &mut panel[(from - first) * TILE_COLS..];
                        let cols = col..part.cols.min(col + TILE_COLS);
                        pack_panel::<TILE_COLS>(panel, 0, part.t(), cols, from - start, to - from);
                    }
                    start += part.rows;
                }
            }
        }
    }
}

/// A right-hand matrix in the order of the inner loop: for each block of [`DEPTH`] rows, panels of
/// `TILE_COLS` columns, each row after row, padded with zeros to whole panels.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    pub(super) values: Values,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// The values of a [`Packed`].
#[derive(Clone, Debug)]
pub(super) enum Values {
    Single(Vec<f32>),
    /// The upper halves of f32 values whose lower halves are zero.
    Half(Vec<u16>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Single(Vec::new())
    }
}

/// A stored number format.
pub(super) trait Element: Copy + Sync {
    /// The value as f32, exact.
    fn widen(self) -> f32;

    /// The memory as f32 values, if that is the stored format.
    fn as_single(values: &[Self]) -> Option<&[f32]>;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn as_single(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }
}

impl Element for u16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self) << 16)
    }

    #[inline(always)]
    fn as_single(_: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Packed {
    /// Packs `b` (depth × columns) in single precision.
    pub fn new(b: Right) -> Self {
        let mut packed = Self::default();
        let (rows, cols) = b.size();
        packed.pack_part(b, 0..rows, 0..cols);
        packed
    }

    /// Packs `b` in half the memory if that changes no value.
    pub fn compact(b: Right) -> Self {
        let is_half = |value: &f32| value.to_bits() & 0xffff == 0;
        let is_exact = b.parts().iter().all(|part| part.data.iter().all(is_half));
        if !is_exact {
            return Self::new(b);
        }
        let (rows, cols) = b.size();
        let padded = cols.next_multiple_of(TILE_COLS);
        let mut values = vec![0_u16; rows * padded];
        let mut panel = vec![0.0; DEPTH.min(rows) * TILE_COLS];
        for (first, col, packed) in panels(&mut values, rows, padded) {
            // Columns past the last are zeros in every panel, but the previous panel may have left values
            // there.
            panel.fill(0.0);
            b.pack_panel(&mut panel, col, first, packed.len() / TILE_COLS);
            for (half, value) in packed.iter_mut().zip(&panel) {
                *half = (value.to_bits() >> 16) as u16;
            }
        }
        Self { values: Values::Half(values), rows, cols }
    }

    /// Packs `b`, replacing the old content and reusing its memory.
    pub fn pack(&mut self, b: View) {
        self.pack_part(Right::Below(&[b]), 0..b.rows, 0..b.cols);
    }

    /// Packs a range of rows and columns of `b`, replacing the old content and reusing its memory. Each range
    /// starts at a multiple of the panel size and ends at such a multiple or at the end of the matrix.
    pub(super) fn pack_part(&mut self, b: Right, rows: Range<usize>, cols: Range<usize>) {
        (self.rows, self.cols) = (rows.len(), cols.len());
        let padded = self.cols.next_multiple_of(TILE_COLS);
        let mut values = match std::mem::take(&mut self.values) {
            Values::Single(values) => values,
            Values::Half(_) => Vec::new(),
        };
        values.resize(self.rows * padded, 0.0);
        let last = b.size().1;
        for (first, col, packed) in panels(&mut values, self.rows, padded) {
            let depth = packed.len() / TILE_COLS;
            if cols.start + col + TILE_COLS > last {
                // Positions that are not copied over must be zero.
                packed.fill(0.0);
            }
            b.pack_panel(packed, cols.start + col, rows.start + first, depth);
        }
        self.values = Values::Single(values);
    }

    /// Rows of the matrix, the depth of a product with it.
    pub fn n_rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix, and of a product with it.
    pub fn n_cols(&self) -> usize {
        self.cols
    }

    /// Appends column `col`, from the first row to the last, to `out`.
    ///
    /// # Panics
    /// If `col` is out of range.
    pub fn push_column(&self, col: usize, out: &mut Vec<f32>) {
        assert!(col < self.cols, "column {col} is past the last of {}", self.cols);
        match &self.values {
            Values::Single(values) => push_column(values, self.rows, self.cols, col, out),
            Values::Half(values) => push_column(values, self.rows, self.cols, col, out),
        }
    }
}

/// (first row, first column, memory) of every panel.
fn panels<E>(values: &mut [E], rows: usize, padded: usize) -> impl Iterator<Item = (usize, usize, &mut [E])> {
    let blocks = values.chunks_mut((DEPTH * padded).max(1)).enumerate();
    blocks.flat_map(move |(block_idx, block)| {
        let first = block_idx * DEPTH;
        let depth = DEPTH.min(rows - first);
        let panels = block.chunks_exact_mut(depth * TILE_COLS).enumerate();
        panels.map(move |(panel_idx, panel)| (first, panel_idx * TILE_COLS, panel))
    })
}

fn push_column<E: Element>(values: &[E], rows: usize, cols: usize, col: usize, out: &mut Vec<f32>) {
    let padded = cols.next_multiple_of(TILE_COLS);
    for first in (0..rows).step_by(DEPTH) {
        let depth = DEPTH.min(rows - first);
        let panel = &values[first * padded + col / TILE_COLS * depth * TILE_COLS..][..depth * TILE_COLS];
        out.extend(panel.iter().skip(col % TILE_COLS).step_by(TILE_COLS).map(|value| value.widen()));
    }
}

/// Copies `rows` of `a`, at columns `first .. first + depth`, into `panel` so that the values of one column
/// are adjacent. `panel` has `WIDTH` values for each column; these rows start at offset `at`.
#[inline(always)]
pub(super) fn pack_panel<const WIDTH: usize>(
    panel: &mut [f32],
    at: usize,
    a: View,
    rows: Range<usize>,
    first: usize,
    depth: usize,
) {
    if a.row_stride == 1 {
        for (p, slot) in panel.chunks_exact_mut(WIDTH).take(depth).enumerate() {
            let values = &a.data[(first + p) * a.col_stride..][rows.clone()];
            match (<&mut [f32; WIDTH]>::try_from(&mut *slot), <&[f32; WIDTH]>::try_from(values)) {
                (Ok(slot), Ok(values)) => *slot = *values,
                _ => slot[at..at + values.len()].copy_from_slice(values),
            }
        }
    } else {
        transpose_panel::<WIDTH>(panel, at, a, rows, first, depth);
    }
}

/// [`pack_panel`] for a matrix whose rows are contiguous, in square blocks that fit the registers.
#[inline(always)]
fn transpose_panel<const WIDTH: usize>(
    panel: &mut [f32],
    at: usize,
    a: View,
    rows: Range<usize>,
    first: usize,
    depth: usize,
) {
    const SIDE: usize = 4;
    let source = |i: usize| &a.data[(rows.start + i) * a.row_stride + first..][..depth];
    let n_rows = rows.len();
    let mut i = 0;
    while i + SIDE <= n_rows {
        let rows = [source(i), source(i + 1), source(i + 2), source(i + 3)];
        let [w, x, y, z] = rows.map(|row| row.as_chunks::<SIDE>().0);
        let squares = w.iter().zip(x).zip(y.iter().zip(z));
        for (((w, x), (y, z)), slots) in squares.zip(panel.chunks_exact_mut(SIDE * WIDTH)) {
            for p in 0..SIDE {
                slots[p * WIDTH + at + i..][..SIDE].copy_from_slice(&[w[p], x[p], y[p], z[p]]);
            }
        }
        for p in depth / SIDE * SIDE..depth {
            for side in 0..SIDE {
                panel[p * WIDTH + at + i + side] = rows[side][p];
            }
        }
        i += SIDE;
    }
    for i in i..n_rows {
        for (slot, &value) in panel.chunks_exact_mut(WIDTH).zip(source(i)) {
            slot[at + i] = value;
        }
    }
}
