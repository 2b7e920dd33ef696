//! The choice between one thread and many for one computation.
//!
//! Small models run many computations in parallel (groups of lanes, micro-batches), each on one thread: no
//! work is handed over, and all data stays in the cache of that core. In a wide model a single product takes
//! long enough to be divided, and several passes in parallel would not fit into memory. [`Threads`] decides
//! by the width of the rows that a kernel processes. The bits are the same in both cases.

use rayon::prelude::*;

/// Minimum width of rows whose computation is divided. A product of 512 × 512 weights with one row reads a
/// megabyte, which takes a core about 50 µs; waking another thread takes about 5 µs.
const WIDE: usize = 512;

/// Number of values that one thread sets to zero at a time: a megabyte.
const TOUCHED_TOGETHER: usize = 1 << 18;

/// The threads that share a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Only the calling thread.
    One,
    /// All threads of the caller's rayon pool.
    All,
}

impl Threads {
    /// The choice for rows of `width` values, or for a weight whose smaller dimension is `width`.
    pub fn for_width(width: usize) -> Self {
        if width >= WIDE { Self::All } else { Self::One }
    }

    /// `len` zeros. Touching fresh pages is slow, so the threads share it.
    pub fn zeros(self, len: usize) -> Vec<f32> {
        match self {
            Self::One => vec![0.0; len],
            Self::All => (0..len).into_par_iter().with_min_len(TOUCHED_TOGETHER).map(|_| 0.0).collect(),
        }
    }

    /// Number of parts for a computation of `n_units` indivisible units, at least 1.
    pub fn n_parts(self, n_units: usize) -> usize {
        match self {
            Self::One => 1,
            Self::All => rayon::current_num_threads().min(n_units).max(1),
        }
    }

    /// Calls `work` with pieces of `inputs` and `out` that hold the same rows. Each slice comes with its
    /// number of values per row.
    pub fn each_part<const N: usize>(
        self,
        inputs: [(&[f32], usize); N],
        (out, out_width): (&mut [f32], usize),
        work: impl Fn([&[f32]; N], &mut [f32]) + Sync,
    ) {
        let n_rows = out.len() / out_width;
        let n_parts = self.n_parts(n_rows);
        if n_parts == 1 {
            return work(inputs.map(|(input, _)| input), out);
        }
        let rows = n_rows.div_ceil(n_parts);
        out.par_chunks_mut(rows * out_width).enumerate().for_each(|(part, out)| {
            let own = part * rows..part * rows + out.len() / out_width;
            work(inputs.map(|(input, width)| &input[own.start * width..own.end * width]), out);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_computed_once() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for n_rows in [0, 1, 2, 7] {
            let x: Vec<f32> = (0..n_rows * 2).map(|i| i as f32).collect();
            for threads in [Threads::One, Threads::All] {
                let mut out = vec![0.0; n_rows];
                pool.install(|| {
                    threads.each_part([(&x, 2)], (&mut out, 1), |[x], out| {
                        for (x, out) in x.chunks_exact(2).zip(out) {
                            *out += x[0] + x[1];
                        }
                    });
                });
                let expected: Vec<f32> = (0..n_rows).map(|i| 4.0 * i as f32 + 1.0).collect();
                assert_eq!(out, expected);
            }
        }
    }
}
