//! Matrix products in single precision, with the same bits on every machine.
//!
//! A [`View`] addresses a matrix through two strides, so a transpose needs no copy. [`matmul`] writes A·B to
//! rows of `c` or adds it to them. [`Packed`] is a right-hand matrix in the memory order of the inner loop,
//! for weights or keys that are used more than once. If several [`Threads`] share a product, each computes
//! some of its columns.
//!
//! C is computed in tiles of `TILE_ROWS` × `TILE_COLS`: both operands are copied into panels, then one
//! loop over the depth keeps the whole tile in registers (the method of Goto and van de Geijn, "Anatomy of
//! High-Performance Matrix Multiplication", 2008). An element of C is
//! `Σ over blocks of DEPTH (fma chain within the block)`. It does not depend on the other rows and columns of
//! the product, on the number of threads, or on the register width.
//!
//! The `gemm` crate is not used because it selects other kernels for few rows and other block sizes for other
//! caches: the logits of a lane would depend on the other lanes and on the machine.

mod packed;
#[cfg(test)]
mod tests;
mod tile;

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use crate::cpu::matmul::packed::{Element, Values};
pub use crate::cpu::matmul::packed::{Packed, Right};
use crate::cpu::matmul::tile::{Panels, Target, tiles};

use crate::Level;
use crate::cpu::threads::Threads;

/// Products summed in one chain before the partial sum is added to the result.
pub const DEPTH: usize = 256;
/// Rows of a tile, and of a panel of the left operand.
const TILE_ROWS: usize = 12;
/// Columns of a tile, and of a panel of the right operand.
const TILE_COLS: usize = 32;
/// Rows of the left operand packed at a time, so that they stay in the second-level cache.
const BLOCK_ROWS: usize = 8 * TILE_ROWS;
/// Upper bound on the parts per thread of a product of many rows, and lower bound on the panels in a part.
const PARTS_A_THREAD: usize = 3;
const PANELS_A_PART: usize = 12;
/// Columns packed at a time of a right-hand side that is packed for one product only. With [`SLAB_DEPTH`]
/// this bounds the memory for any matrix size. A multiple of `TILE_COLS`.
const SLAB_COLS: usize = 128 * TILE_COLS;
/// Rows packed at a time. A multiple of [`DEPTH`], where the sums are cut in any case.
const SLAB_DEPTH: usize = 8 * DEPTH;

/// A view of a matrix in a slice: element (i, j) is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// `rows` × `cols` values; a row starts every `row_stride` values.
    ///
    /// # Panics
    /// If the last element lies outside `data`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        assert!(cols <= row_stride || rows <= 1, "rows of {cols} overlap at stride {row_stride}");
        assert!(
            rows == 0 || cols == 0 || (rows - 1) * row_stride + cols <= data.len(),
            "{rows} rows of {cols} at stride {row_stride} exceed {} values",
            data.len()
        );
        Self { data, rows, cols, row_stride, col_stride: 1 }
    }

    /// The whole slice as a matrix with rows of `cols` values.
    pub fn rows_of(data: &'a [f32], cols: usize) -> Self {
        Self::new(data, data.len() / cols, cols, cols)
    }

    /// The given columns of all rows.
    fn some_columns(self, cols: Range<usize>) -> Self {
        let start = if cols.is_empty() { 0 } else { cols.start * self.col_stride };
        Self { data: &self.data[start..], cols: cols.len(), ..self }
    }

    /// The transpose; nothing is copied.
    pub fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// Whether a product overwrites the result or is added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// Overwrite.
    Set,
    /// Add.
    Add,
}

/// The working memory of products on one thread.
#[derive(Default)]
struct Scratch {
    panels: Panels,
    right: Packed,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// c = A·B or c += A·B on one thread, where row i of the result is at `c[i * c_stride ..][.. b.cols]`.
///
/// # Panics
/// If the inner sizes differ or `c` is too short.
pub fn matmul(c: &mut [f32], c_stride: usize, a: View, b: View, store: Store) {
    matmul_joined(c, c_stride, a, Right::Below(&[b]), store, Threads::One);
}

/// Like [`matmul`], with a right-hand side in parts, on the given threads.
///
/// # Panics
/// Like [`matmul`], and if the shapes of the parts do not match.
pub fn matmul_joined(c: &mut [f32], c_stride: usize, a: View, b: Right, store: Store, threads: Threads) {
    let (depth, n_cols) = b.size();
    assert_eq!(a.cols, depth, "inner sizes of a product");
    let level = Level::detect();
    in_columns(c, c_stride, a.rows, n_cols, threads, |cols, c| {
        SCRATCH.with_borrow_mut(|Scratch { panels, right }| {
            for col in (0..cols.len()).step_by(SLAB_COLS) {
                let width = SLAB_COLS.min(cols.len() - col);
                // A product of depth 0 still needs one slab: the result may have to be set to zero.
                for first in (0..depth.max(1)).step_by(SLAB_DEPTH) {
                    let rows = first..depth.min(first + SLAB_DEPTH);
                    right.pack_part(b, rows.clone(), cols.start + col..cols.start + col + width);
                    let store = if first == 0 { store } else { Store::Add };
                    multiply(level, c, a.some_columns(rows), right, (0..width, col), store, panels);
                }
            }
        });
    });
}

/// Like [`matmul`], with the first `a.cols` rows and `n_cols` columns of a packed right-hand matrix, on the
/// given threads.
///
/// # Panics
/// If `a` has more columns than `b` has rows, `b` has fewer than `n_cols` columns or `c` is too short.
pub fn matmul_packed(
    c: &mut [f32],
    c_stride: usize,
    a: View,
    b: &Packed,
    n_cols: usize,
    store: Store,
    threads: Threads,
) {
    assert!(a.cols <= b.rows && n_cols <= b.cols, "the packed matrix is too small");
    let level = Level::detect();
    in_columns(c, c_stride, a.rows, n_cols, threads, |cols, c| {
        SCRATCH.with_borrow_mut(|Scratch { panels, .. }| {
            multiply(level, c, a, b, (cols, 0), store, panels);
        });
    });
}

/// Calls `work` with ranges of columns (whole panels, except at the end) and the same columns of the result.
fn in_columns(
    c: &mut [f32],
    c_stride: usize,
    n_rows: usize,
    n_cols: usize,
    threads: Threads,
    work: impl Fn(Range<usize>, &mut Target) + Sync,
) {
    let n_panels = n_cols.div_ceil(TILE_COLS);
    let mut n_parts = threads.n_parts(n_panels);
    if n_parts == 1 {
        return work(0..n_cols, &mut Target::Strided(c, c_stride));
    }
    if n_rows >= BLOCK_ROWS {
        // Products of many rows are cut into smaller parts, so that other threads take over the work of a
        // delayed one, but not so small that packing the rows for each part costs noticeable time.
        n_parts = (n_panels / PANELS_A_PART).clamp(n_parts, PARTS_A_THREAD * n_parts);
    }
    let edges: Vec<usize> = (0..=n_parts).map(|i| n_cols.min(n_panels * i / n_parts * TILE_COLS)).collect();
    let mut parts: Vec<_> =
        edges.windows(2).map(|edge| (edge[0]..edge[1], Vec::with_capacity(n_rows))).collect();
    for row in c.chunks_mut(c_stride).take(n_rows) {
        let mut rest = &mut row[..n_cols];
        for (cols, rows) in &mut parts {
            let (own, others) = rest.split_at_mut(cols.len());
            rows.push(own);
            rest = others;
        }
    }
    parts.into_par_iter().for_each(|(cols, rows)| work(cols, &mut Target::Columns(rows)));
}

/// Selects the loops for the number format of `b`. `cols` is a range of columns of `b`, and the column of `c`
/// for the first of them.
fn multiply(
    level: Level,
    c: &mut Target,
    a: View,
    b: &Packed,
    cols: (Range<usize>, usize),
    store: Store,
    panels: &mut Panels,
) {
    let padded = b.cols.next_multiple_of(TILE_COLS);
    match &b.values {
        Values::Single(values) => multiply_at(level, c, a, (values, b.rows, padded), cols, store, panels),
        Values::Half(values) => multiply_at(level, c, a, (values, b.rows, padded), cols, store, panels),
    }
}

/// Selects the tile that fits the registers of this machine.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls a version for a detected feature"))]
fn multiply_at<E: Element>(
    level: Level,
    c: &mut Target,
    a: View,
    b: (&[E], usize, usize),
    cols: (Range<usize>, usize),
    store: Store,
    panels: &mut Panels,
) {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
    fn avx512<E: Element>(
        c: &mut Target,
        a: View,
        b: (&[E], usize, usize),
        cols: (Range<usize>, usize),
        store: Store,
        panels: &mut Panels,
    ) {
        tiles::<E, 12, 32>(c, a, b, cols, store, panels);
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<E: Element>(
        c: &mut Target,
        a: View,
        b: (&[E], usize, usize),
        cols: (Range<usize>, usize),
        store: Store,
        panels: &mut Panels,
    ) {
        tiles::<E, 6, 16>(c, a, b, cols, store, panels);
    }
    match level {
        // SAFETY: `detect` returns this level only after seeing all its features.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512(c, a, b, cols, store, panels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { avx2(c, a, b, cols, store, panels) },
        Level::Baseline => tiles::<E, 6, 16>(c, a, b, cols, store, panels),
    }
}
