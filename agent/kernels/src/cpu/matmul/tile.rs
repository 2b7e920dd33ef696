//! The loops of a product on one thread: blocks, panels, tiles, and the multiply-add chains in registers.

use std::ops::Range;

use crate::cpu::matmul::packed::{Element, pack_panel};
use crate::cpu::matmul::{BLOCK_ROWS, DEPTH, Store, TILE_COLS, TILE_ROWS, View};

/// With at least this many tiles, a bfloat16 panel is widened once before the tiles read it, not by each of
/// them.
const WIDEN_ONCE: usize = 3;

/// The rows of a result in memory.
pub(super) enum Target<'c> {
    /// Row i starts at `i * stride`.
    Strided(&'c mut [f32], usize),
    /// Some columns of every row.
    Columns(Vec<&'c mut [f32]>),
}

impl Target<'_> {
    #[inline(always)]
    fn span(&mut self, row: usize, col: usize, len: usize) -> &mut [f32] {
        match self {
            Self::Strided(data, stride) => &mut data[row * *stride + col..][..len],
            Self::Columns(rows) => &mut rows[row][col..col + len],
        }
    }
}

/// Working memory of [`tiles`].
#[derive(Default)]
pub(super) struct Panels {
    /// Rows of the left operand, packed.
    left: Vec<f32>,
    /// A panel of the right operand, widened.
    right: Vec<f32>,
}

/// Writes the product of `a` with the columns `cols` of a packed matrix to the columns of `c` from `c_col`
/// on. `cols` starts at a multiple of [`TILE_COLS`]; `values` is the packed matrix, of `b_rows` rows. `R` ×
/// `N` is the part of a tile that is kept in registers.
#[inline(always)]
pub(super) fn tiles<E: Element, const R: usize, const N: usize>(
    c: &mut Target,
    a: View,
    (values, b_rows, padded): (&[E], usize, usize),
    (cols, c_col): (Range<usize>, usize),
    store: Store,
    panels: &mut Panels,
) {
    if a.cols == 0 && store == Store::Set {
        (0..a.rows).for_each(|row| c.span(row, c_col, cols.len()).fill(0.0));
    }
    panels.left.resize(BLOCK_ROWS * DEPTH, 0.0);
    for first in (0..a.cols).step_by(DEPTH) {
        let depth = DEPTH.min(a.cols - first);
        // The panels are laid out for the depth of the whole block, of which only a part may be used.
        let panel_len = DEPTH.min(b_rows - first) * TILE_COLS;
        let block = &values[first * padded + cols.start / TILE_COLS * panel_len..];
        let store = if first == 0 { store } else { Store::Add };
        for row_block in (0..a.rows).step_by(BLOCK_ROWS) {
            let n_rows = BLOCK_ROWS.min(a.rows - row_block);
            let n_tiles = n_rows.div_ceil(TILE_ROWS);
            for (i, panel) in panels.left.chunks_exact_mut(depth * TILE_ROWS).enumerate().take(n_tiles) {
                let row = row_block + i * TILE_ROWS;
                pack_panel::<TILE_ROWS>(panel, 0, a, row..a.rows.min(row + TILE_ROWS), first, depth);
            }
            let left = panels.left.chunks_exact(depth * TILE_ROWS).take(n_tiles);
            for (j, right) in block.chunks_exact(panel_len).take(cols.len().div_ceil(TILE_COLS)).enumerate() {
                // The next panel follows in memory and is prefetched while this one is used.
                let ahead = right.as_ptr_range().end;
                let right = &right[..depth * TILE_COLS];
                let n_cols = TILE_COLS.min(cols.len() - j * TILE_COLS);
                let place = (row_block, c_col + j * TILE_COLS, n_rows, n_cols);
                match E::as_single(right) {
                    Some(right) => column_of_tiles::<_, E, R, N>(c, left.clone(), right, ahead, place, store),
                    None if n_tiles >= WIDEN_ONCE => {
                        panels.right.resize(DEPTH * TILE_COLS, 0.0);
                        let wide = &mut panels.right[..right.len()];
                        for (wide, value) in wide.iter_mut().zip(right) {
                            *wide = value.widen();
                        }
                        column_of_tiles::<_, E, R, N>(c, left.clone(), wide, ahead, place, store);
                    }
                    None => column_of_tiles::<_, E, R, N>(c, left.clone(), right, ahead, place, store),
                }
            }
        }
    }
}

/// Computes all tiles that read one panel of the right operand. `ahead` is the address of the next panel,
/// stored as values of type `A`. The last tuple is the first row, the first column, and the number of each.
#[inline(always)]
fn column_of_tiles<'p, E: Element, A, const R: usize, const N: usize>(
    c: &mut Target,
    left: impl Iterator<Item = &'p [f32]>,
    right: &[E],
    ahead: *const A,
    (row, col, n_rows, n_cols): (usize, usize, usize, usize),
    store: Store,
) {
    for (tile_idx, left) in left.enumerate() {
        let rows = TILE_ROWS.min(n_rows - tile_idx * TILE_ROWS);
        // In parts that fit the registers; parts without a needed row or column are skipped.
        for i in (0..rows).step_by(R) {
            for j in (0..n_cols).step_by(N) {
                let place = (row + tile_idx * TILE_ROWS + i, col + j, R.min(rows - i), N.min(n_cols - j));
                match place.2 {
                    1 => write(c, &chains::<E, A, 1, N, false>(left, i, right, j, ahead), place, store),
                    2..=4 => write(c, &chains::<E, A, 4, N, false>(left, i, right, j, ahead), place, store),
                    // The first part of a panel's tiles prefetches the next panel for all of them: each prefetch takes the time of
                    // a load. For few rows, above, the hardware prefetcher is sufficient.
                    _ if (tile_idx, i, j) == (0, 0, 0) => {
                        write(c, &chains::<E, A, R, N, true>(left, i, right, j, ahead), place, store);
                    }
                    _ => write(c, &chains::<E, A, R, N, false>(left, i, right, j, ahead), place, store),
                }
            }
        }
    }
}

/// The inner loop: `R` × `N` chains of multiply-adds along the depth, all in registers. With `FETCH` the next panel is
/// prefetched meanwhile.
#[inline(always)]
fn chains<E: Element, A, const R: usize, const N: usize, const FETCH: bool>(
    left: &[f32],
    row: usize,
    right: &[E],
    col: usize,
    mut ahead: *const A,
) -> [[f32; N]; R] {
    let mut sums = [[0.0_f32; N]; R];
    for (a, b) in left.chunks_exact(TILE_ROWS).zip(right.chunks_exact(TILE_COLS)) {
        if FETCH {
            fetch_row(ahead);
            ahead = ahead.wrapping_add(TILE_COLS);
        }
        let (a, b) = (&a[row..row + R], &b[col..col + N]);
        for i in 0..R {
            for j in 0..N {
                sums[i][j] = a[i].mul_add(b[j].widen(), sums[i][j]);
            }
        }
    }
    sums
}

/// Prefetches a row of a panel into the second-level cache. Only a hint: the address need not be valid.
#[inline(always)]
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "prefetching takes a pointer"))]
fn fetch_row<A>(row: *const A) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..TILE_COLS * size_of::<A>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: the instruction has no effect that the program can observe and cannot fault for any
        // address; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(row.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Writes the needed part of a tile to the result.
#[inline(always)]
fn write<const R: usize, const N: usize>(
    c: &mut Target,
    sums: &[[f32; N]; R],
    (row, col, n_rows, n_cols): (usize, usize, usize, usize),
    store: Store,
) {
    for (i, sums) in sums.iter().enumerate().take(n_rows) {
        let row = c.span(row + i, col, n_cols);
        match (store, <&mut [f32; N]>::try_from(&mut *row)) {
            (Store::Set, Ok(row)) => *row = *sums,
            (Store::Set, Err(_)) => row.copy_from_slice(&sums[..n_cols]),
            (Store::Add, Ok(row)) => row.iter_mut().zip(sums).for_each(|(c, s)| *c += s),
            (Store::Add, Err(_)) => row.iter_mut().zip(sums).for_each(|(c, s)| *c += s),
        }
    }
}
