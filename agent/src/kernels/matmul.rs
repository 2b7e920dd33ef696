//! Matrix products in single precision, one thread, the same bits everywhere.
//!
//! A [`View`] looks at a matrix through two strides, so that a transpose costs nothing;
//! [`matmul`] writes or adds A·B to rows of `c`. [`Packed`] is a right-hand matrix already in the
//! order in which the inner loop reads it, for weights or keys that are used more than once.
//!
//! C is made in tiles of [`TILE_ROWS`] × [`TILE_COLS`]: both operands are copied into panels, then one
//! loop over the depth keeps the whole tile in registers (the method of Goto and van de Geijn,
//! "Anatomy of High-Performance Matrix Multiplication", 2008). An element of C is
//! `Σ over blocks of DEPTH (fma chain within the block)`: which rows or columns are computed beside
//! it, and how wide the registers are, does not enter.
//!
//! Why not the `gemm` crate: it picks other kernels for few rows and other block sizes for other
//! caches, so a lane's logits would depend on the lanes beside it and on the machine.

#[cfg(test)]
mod tests;

use std::cell::RefCell;

use super::Level;

/// Products summed in one chain before the partial sum is added to the result.
pub const DEPTH: usize = 256;
/// Rows of a tile, and of a panel of the left operand.
const TILE_ROWS: usize = 12;
/// Columns of a tile, and of a panel of the right operand.
const TILE_COLS: usize = 32;
/// Rows of the left operand packed at a time, so that they stay in the second-level cache.
const BLOCK_ROWS: usize = 8 * TILE_ROWS;

/// A matrix somewhere in a slice: element (i, j) is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// `rows` × `cols` values whose rows begin every `row_stride` values.
    ///
    /// # Panics
    /// If the last element lies outside of `data`.
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

    /// The transpose, without a copy.
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

/// What happens to the values already in the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// They are overwritten.
    Set,
    /// The product is added to them.
    Add,
}

/// A right-hand matrix in the order of the inner loop: for each block of [`DEPTH`] rows, panels of
/// [`TILE_COLS`] columns, each row after row, padded with zeros to whole panels.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    data: Vec<f32>,
    rows: usize,
    cols: usize,
}

impl Packed {
    /// Packs `b` (depth × columns).
    pub fn new(b: View) -> Self {
        let mut packed = Self::default();
        packed.pack(b);
        packed
    }

    /// Rows of the matrix, the depth of a product with it.
    pub fn n_rows(&self) -> usize {
        self.rows
    }

    /// Columns of the matrix, and of a product with it.
    pub fn n_cols(&self) -> usize {
        self.cols
    }

    /// Packs `b` in place of the old content, keeping the memory.
    pub fn pack(&mut self, b: View) {
        self.rows = b.rows;
        self.cols = b.cols;
        self.data.clear();
        self.data.resize(b.rows * b.cols.next_multiple_of(TILE_COLS), 0.0);
        let padded = b.cols.next_multiple_of(TILE_COLS);
        for first in (0..b.rows).step_by(DEPTH) {
            let depth = DEPTH.min(b.rows - first);
            let block = &mut self.data[first * padded..(first + depth) * padded];
            for (panel_idx, panel) in block.chunks_exact_mut(depth * TILE_COLS).enumerate() {
                pack_panel::<TILE_COLS>(panel, b.t(), panel_idx * TILE_COLS, first, depth);
            }
        }
    }
}

/// Copies `WIDTH` rows of `a` from `row` on, at columns `first .. first + depth`, so that the values
/// of one column lie together. Rows past the end are left as they are in `panel`.
#[inline(always)]
fn pack_panel<const WIDTH: usize>(panel: &mut [f32], a: View, row: usize, first: usize, depth: usize) {
    let n_rows = WIDTH.min(a.rows - row);
    if a.row_stride == 1 {
        for (p, slot) in panel.chunks_exact_mut(WIDTH).take(depth).enumerate() {
            let start = row + (first + p) * a.col_stride;
            if n_rows == WIDTH {
                slot.copy_from_slice(&a.data[start..start + WIDTH]);
            } else {
                slot[..n_rows].copy_from_slice(&a.data[start..start + n_rows]);
            }
        }
    } else {
        transpose_panel::<WIDTH>(panel, a, row, n_rows, first, depth);
    }
}

/// [`pack_panel`] of a matrix whose rows are contiguous, in squares that stay in registers.
#[inline(always)]
fn transpose_panel<const WIDTH: usize>(
    panel: &mut [f32],
    a: View,
    row: usize,
    n_rows: usize,
    first: usize,
    depth: usize,
) {
    const SIDE: usize = 4;
    let source = |i: usize| &a.data[(row + i) * a.row_stride + first..][..depth];
    let mut i = 0;
    while i + SIDE <= n_rows {
        let rows: [&[f32]; SIDE] = std::array::from_fn(|side| source(i + side));
        let mut columns = rows.map(|row| row.chunks_exact(SIDE));
        let mut slots = panel.chunks_exact_mut(SIDE * WIDTH);
        for slots in slots.by_ref().take(depth / SIDE) {
            let square: [[f32; SIDE]; SIDE] = std::array::from_fn(|side| {
                let values = columns[side].next().expect("a row is as long as the depth");
                [values[0], values[1], values[2], values[3]]
            });
            for p in 0..SIDE {
                let turned: [f32; SIDE] = std::array::from_fn(|side| square[side][p]);
                slots[p * WIDTH + i..p * WIDTH + i + SIDE].copy_from_slice(&turned);
            }
        }
        for p in depth / SIDE * SIDE..depth {
            for side in 0..SIDE {
                panel[p * WIDTH + i + side] = rows[side][p];
            }
        }
        i += SIDE;
    }
    for i in i..n_rows {
        for (slot, &value) in panel.chunks_exact_mut(WIDTH).zip(source(i)) {
            slot[i] = value;
        }
    }
}

/// The working memory of products: packed rows of the left and the whole of the right operand.
#[derive(Default)]
struct Scratch {
    left: Vec<f32>,
    right: Packed,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// c = A·B or c += A·B, where row i of the result is at `c[i * c_stride ..][.. b.cols]`.
///
/// # Panics
/// If the inner sizes differ or `c` is too short.
pub fn matmul(c: &mut [f32], c_stride: usize, a: View, b: View, store: Store) {
    assert_eq!(a.cols, b.rows, "inner sizes of a product");
    SCRATCH.with_borrow_mut(|Scratch { left, right }| {
        right.pack(b);
        multiply(c, c_stride, a, right, b.cols, store, left);
    });
}

/// As [`matmul`] with the leading `a.cols` rows and `n_cols` columns of a packed right-hand matrix.
///
/// # Panics
/// If `a` is wider than `b` is tall, `b` has fewer than `n_cols` columns or `c` is too short.
pub fn matmul_packed(c: &mut [f32], c_stride: usize, a: View, b: &Packed, n_cols: usize, store: Store) {
    assert!(a.cols <= b.rows && n_cols <= b.cols, "the packed matrix is too small");
    SCRATCH.with_borrow_mut(|Scratch { left, .. }| multiply(c, c_stride, a, b, n_cols, store, left));
}

/// Chooses the tile that fits the registers of this machine.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "calls a version for a detected feature"))]
fn multiply(
    c: &mut [f32],
    c_stride: usize,
    a: View,
    b: &Packed,
    n_cols: usize,
    store: Store,
    left: &mut Vec<f32>,
) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
        fn avx512(
            c: &mut [f32],
            c_stride: usize,
            a: View,
            b: &Packed,
            n_cols: usize,
            store: Store,
            left: &mut Vec<f32>,
        ) {
            tiles::<12, 32>(c, c_stride, a, b, n_cols, store, left);
        }
        #[target_feature(enable = "avx2,fma")]
        fn avx2(
            c: &mut [f32],
            c_stride: usize,
            a: View,
            b: &Packed,
            n_cols: usize,
            store: Store,
            left: &mut Vec<f32>,
        ) {
            tiles::<6, 16>(c, c_stride, a, b, n_cols, store, left);
        }
        match Level::detect() {
            // SAFETY: `detect` returns this level only after seeing all its features.
            Level::Avx512 => return unsafe { avx512(c, c_stride, a, b, n_cols, store, left) },
            // SAFETY: as above.
            Level::Avx2 => return unsafe { avx2(c, c_stride, a, b, n_cols, store, left) },
            Level::Baseline => {}
        }
    }
    tiles::<6, 16>(c, c_stride, a, b, n_cols, store, left);
}

/// The loops around the tiles. `R` × `N` is the part of a tile that is kept in registers.
#[inline(always)]
fn tiles<const R: usize, const N: usize>(
    c: &mut [f32],
    c_stride: usize,
    a: View,
    b: &Packed,
    n_cols: usize,
    store: Store,
    left: &mut Vec<f32>,
) {
    if a.cols == 0 && store == Store::Set {
        for row in c.chunks_mut(c_stride).take(a.rows) {
            row[..n_cols].fill(0.0);
        }
    }
    let padded = b.cols.next_multiple_of(TILE_COLS);
    left.resize(BLOCK_ROWS * DEPTH, 0.0);
    for first in (0..a.cols).step_by(DEPTH) {
        let depth = DEPTH.min(a.cols - first);
        // The panels were laid out for the depth of the whole block, of which a part may be used.
        let panel_len = DEPTH.min(b.rows - first) * TILE_COLS;
        let block = &b.data[first * padded..];
        let store = if first == 0 { store } else { Store::Add };
        for row_block in (0..a.rows).step_by(BLOCK_ROWS) {
            let n_rows = BLOCK_ROWS.min(a.rows - row_block);
            for (i, panel) in
                left.chunks_exact_mut(depth * TILE_ROWS).enumerate().take(n_rows.div_ceil(TILE_ROWS))
            {
                pack_panel::<TILE_ROWS>(panel, a, row_block + i * TILE_ROWS, first, depth);
            }
            for (j, right) in block.chunks_exact(panel_len).take(n_cols.div_ceil(TILE_COLS)).enumerate() {
                for (i, left) in
                    left.chunks_exact(depth * TILE_ROWS).take(n_rows.div_ceil(TILE_ROWS)).enumerate()
                {
                    let rows = TILE_ROWS.min(n_rows - i * TILE_ROWS);
                    let cols = TILE_COLS.min(n_cols - j * TILE_COLS);
                    let c = &mut c[(row_block + i * TILE_ROWS) * c_stride + j * TILE_COLS..];
                    one_tile::<R, N>(c, c_stride, left, &right[..depth * TILE_COLS], rows, cols, store);
                }
            }
        }
    }
}

/// One tile, in parts that fit the registers; parts without a wanted row or column are left out.
#[inline(always)]
fn one_tile<const R: usize, const N: usize>(
    c: &mut [f32],
    c_stride: usize,
    left: &[f32],
    right: &[f32],
    rows: usize,
    cols: usize,
    store: Store,
) {
    for i in (0..rows).step_by(R) {
        for j in (0..cols).step_by(N) {
            let (rows, cols) = (R.min(rows - i), N.min(cols - j));
            let c = &mut c[i * c_stride + j..];
            if rows <= 4 {
                let sums = chains::<4, N>(left, i, right, j);
                write(c, c_stride, &sums, rows, cols, store);
            } else {
                let sums = chains::<R, N>(left, i, right, j);
                write(c, c_stride, &sums, rows, cols, store);
            }
        }
    }
}

/// The inner loop: `R` × `N` chains of multiply-adds along the depth, all in registers.
#[inline(always)]
fn chains<const R: usize, const N: usize>(
    left: &[f32],
    row: usize,
    right: &[f32],
    col: usize,
) -> [[f32; N]; R] {
    let mut sums = [[0.0_f32; N]; R];
    for (a, b) in left.chunks_exact(TILE_ROWS).zip(right.chunks_exact(TILE_COLS)) {
        let (a, b) = (&a[row..row + R], &b[col..col + N]);
        for i in 0..R {
            for j in 0..N {
                sums[i][j] = a[i].mul_add(b[j], sums[i][j]);
            }
        }
    }
    sums
}

/// Puts the wanted `rows` × `cols` of a tile into the result.
#[inline(always)]
fn write<const R: usize, const N: usize>(
    c: &mut [f32],
    c_stride: usize,
    sums: &[[f32; N]; R],
    rows: usize,
    cols: usize,
    store: Store,
) {
    for (i, sums) in sums.iter().enumerate().take(rows) {
        let row = &mut c[i * c_stride..i * c_stride + cols];
        match (store, <&mut [f32; N]>::try_from(&mut *row)) {
            (Store::Set, Ok(row)) => *row = *sums,
            (Store::Set, Err(_)) => row.copy_from_slice(&sums[..cols]),
            (Store::Add, Ok(row)) => row.iter_mut().zip(sums).for_each(|(c, s)| *c += s),
            (Store::Add, Err(_)) => row.iter_mut().zip(sums).for_each(|(c, s)| *c += s),
        }
    }
}
