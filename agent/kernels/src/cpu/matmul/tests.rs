//! Products against the definition, at sizes that leave remainders everywhere.

use super::*;
use crate::levels;

fn wave(salt: usize, count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 29 + salt * 7) as f32 * 0.9).sin()).collect()
}

/// A·B by the definition, in double precision.
fn truth(a: View, b: View) -> Vec<f64> {
    let at = |m: View, i: usize, j: usize| f64::from(m.data[i * m.row_stride + j * m.col_stride]);
    let element = |i, j| (0..a.cols).map(|p| at(a, i, p) * at(b, p, j)).sum();
    (0..a.rows).flat_map(|i| (0..b.cols).map(move |j| element(i, j))).collect()
}

/// Compares products for both storage orders of both operands, overwriting and adding, with padded rows.
fn check(m: usize, k: usize, n: usize) {
    let (a, b) = (wave(1, m * k), wave(2, k * n));
    for (a_turned, b_turned) in [(false, false), (false, true), (true, false), (true, true)] {
        let a = if a_turned { View::new(&a, k, m, m).t() } else { View::new(&a, m, k, k) };
        let b = if b_turned { View::new(&b, n, k, k).t() } else { View::new(&b, k, n, n) };
        let stride = n + 3;
        let mut c = vec![0.5; m * stride];
        matmul(&mut c, stride, a, b, Store::Set);
        matmul_packed(&mut c, stride, a, &Packed::new(Right::Below(&[b])), n, Store::Add, Threads::One);
        let truth = truth(a, b);
        for (i, row) in c.chunks_exact(stride).enumerate() {
            for (j, value) in row.iter().enumerate() {
                let expected = if j < n { 2.0 * truth[i * n + j] } else { 0.5 };
                let error = (f64::from(*value) - expected).abs();
                assert!(error < 1e-6 * (k + 1) as f64, "{m}x{k}x{n} at {i}, {j}: {value} against {expected}");
            }
        }
    }
}

#[test]
fn products_of_awkward_sizes() {
    for m in [1, 3, 5, 11, 12, 13, 97] {
        for (k, n) in [(1, 1), (2, 31), (7, 33), (256, 16), (257, 65), (600, 5)] {
            check(m, k, n);
        }
    }
}

#[test]
fn a_leading_part_of_a_packed_matrix() {
    let (a, b) = (wave(1, 4 * 300), wave(2, 520 * 70));
    let packed = Packed::new(Right::Below(&[View::new(&b, 520, 70, 70)]));
    let (mut part, mut whole) = (vec![0.0; 4 * 40], vec![0.0; 4 * 40]);
    matmul_packed(&mut part, 40, View::new(&a, 4, 300, 300), &packed, 40, Store::Set, Threads::One);
    matmul(&mut whole, 40, View::new(&a, 4, 300, 300), View::new(&b, 300, 40, 70), Store::Set);
    assert_eq!(part, whole);
}

#[test]
fn an_empty_sum_is_zero() {
    let mut c = [1.0; 6];
    matmul(&mut c, 3, View::new(&[], 2, 0, 0), View::new(&[], 0, 3, 3), Store::Add);
    assert_eq!(c, [1.0; 6]);
    matmul(&mut c, 3, View::new(&[], 2, 0, 0), View::new(&[], 0, 3, 3), Store::Set);
    assert_eq!(c, [0.0; 6]);
}

#[test]
fn a_row_does_not_depend_on_other_rows() {
    let (a, b) = (wave(1, 40 * 300), wave(2, 300 * 50));
    let b = View::new(&b, 300, 50, 50);
    let mut all = vec![0.0; 40 * 50];
    matmul(&mut all, 50, View::new(&a, 40, 300, 300), b, Store::Set);
    for i in 0..40 {
        let mut one = vec![0.0; 50];
        matmul(&mut one, 50, View::new(&a[i * 300..], 1, 300, 300), b, Store::Set);
        assert_eq!(one, all[i * 50..(i + 1) * 50], "row {i}");
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn products_with_bfloat16_storage_have_the_same_bits() {
    let (k, n) = (300, 70);
    let cut = |value: f32| f32::from_bits(value.to_bits() & 0xffff_0000);
    let mut b: Vec<f32> = wave(2, k * n).into_iter().map(cut).collect();
    let view = View::new(&b, k, n, n);
    let (half, single) = (Packed::compact(Right::Below(&[view])), Packed::new(Right::Below(&[view])));
    assert!(matches!(half.values, Values::Half(_)));
    // One row, a few, one tile and many rows take different paths through the loops.
    for m in [1, 3, 12, 16, 40] {
        let a = wave(1, m * k);
        let product = |packed: &Packed| {
            let mut c = vec![0.0; m * n];
            matmul_packed(&mut c, n, View::rows_of(&a, k), packed, n, Store::Set, Threads::One);
            bits(&c)
        };
        let expected = product(&single);
        assert!(levels::at_each(|| product(&half)).iter().all(|product| *product == expected), "{m} rows");
    }
    // A single value that is not exact in bfloat16 keeps all values in f32.
    b[k * n / 2] = 0.1;
    assert!(matches!(Packed::compact(Right::Below(&[View::new(&b, k, n, n)])).values, Values::Single(_)));
}

#[test]
fn push_column_restores_a_packed_column() {
    let (k, n) = (300, 70);
    let b: Vec<f32> = (0..k * n).map(|i| (i % 251) as f32).collect();
    let view = View::new(&b, k, n, n);
    for packed in [Packed::compact(Right::Below(&[view])), Packed::new(Right::Below(&[view]))] {
        for col in [0, 31, 32, 69] {
            let mut column = vec![-1.0];
            packed.push_column(col, &mut column);
            let expected: Vec<f32> = (0..k).map(|row| b[row * n + col]).collect();
            assert_eq!(column[1..], expected);
        }
    }
}

#[test]
fn threads_and_slabs_do_not_change_products() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    // The first has fewer panels than there are threads, the third has more parts, and the last is cut into
    // slabs by rows and by columns.
    for (m, k, n) in [(2, 40, 33), (13, 520, 700), (97, 20, 1700), (2, SLAB_DEPTH + 300, SLAB_COLS + 40)] {
        let (a, b) = (wave(1, m * k), wave(2, k * n));
        let (a, b) = (View::rows_of(&a, k), View::rows_of(&b, k).t());
        let mut expected = vec![0.0; m * n];
        let packed = Packed::new(Right::Beside(&[b]));
        matmul_packed(&mut expected, n, a, &packed, n, Store::Set, Threads::One);
        for threads in [Threads::One, Threads::All] {
            let (mut joined, mut divided) = (vec![7.0; m * n], vec![7.0; m * n]);
            pool.install(|| {
                matmul_joined(&mut joined, n, a, Right::Beside(&[b]), Store::Set, threads);
                matmul_packed(&mut divided, n, a, &packed, n, Store::Set, threads);
            });
            assert_eq!(bits(&joined), bits(&expected), "{m}x{k}x{n}");
            assert_eq!(bits(&divided), bits(&expected), "{m}x{k}x{n}");
        }
    }
}
