//! Muon on the device: the equations of [`crate::optimizer::muon`] as candle operations.
//!
//! Joined matrices (q, k, v; gate, up) are orthogonalized separately, as on the cpu backend. The host does
//! not wait for the device: the norm by which a matrix is divided stays there, as f32.

use candle_core::{Result, Tensor};

use crate::optimizer::muon::{ITERATIONS, MOMENTUM, QUINTIC, matched_scale};

/// Vertically joined matrices with their momentum, `[rows of all, cols]`, f32 except for the copy.
pub(crate) struct Joined<'a> {
    /// Names and numbers of rows of the parts.
    pub(crate) parts: &'a [(String, usize)],
    /// The master weights.
    pub(crate) parameter: &'a Tensor,
    /// m, the momentum.
    pub(crate) momentum: &'a Tensor,
    /// The weights in the compute dtype, if that is not f32.
    pub(crate) copy: Option<&'a Tensor>,
}

impl Joined<'_> {
    /// Multiplies the weights by `keep` (weight decay), then applies the Muon step of `scale` · `gradient`.
    pub(crate) fn update(&self, gradient: &Tensor, scale: f64, keep: f32, lr: f64) -> Result<()> {
        let fresh = (gradient * (scale * f64::from(1.0 - MOMENTUM)))?;
        let momentum = ((self.momentum * f64::from(MOMENTUM))? + &fresh)?;
        self.momentum.slice_set(&momentum, 0, 0)?;
        let ahead = ((momentum * f64::from(MOMENTUM))? + fresh)?;
        let (mut start, mut directions) = (0, Vec::with_capacity(self.parts.len()));
        for (_, n_rows) in self.parts {
            let matrix = ahead.narrow(0, start, *n_rows)?;
            let matched = matched_scale(*n_rows, matrix.dim(1)?);
            directions.push((orthogonal(&matrix)? * f64::from(matched))?);
            start += n_rows;
        }
        let step = (Tensor::cat(&directions, 0)? * lr)?;
        let moved = ((self.parameter * f64::from(keep))? - step)?;
        self.parameter.slice_set(&moved, 0, 0)?;
        match self.copy {
            Some(copy) => copy.slice_set(&moved.to_dtype(copy.dtype())?, 0, 0),
            None => Ok(()),
        }
    }
}

/// A matrix with the same singular vectors and singular values of about 1; zeros for a zero matrix. `[rows,
/// cols]`
fn orthogonal(matrix: &Tensor) -> Result<Tensor> {
    let (a, b, c) = QUINTIC;
    let (a, b, c) = (f64::from(a), f64::from(b), f64::from(c));
    let norm = matrix.sqr()?.sum_all()?.sqrt()?;
    // A zero matrix would be divided by zero.
    let mut x = matrix.broadcast_div(&norm.maximum(f64::from(f32::MIN_POSITIVE))?)?;
    let (rows, cols) = x.dims2()?;
    for _ in 0..ITERATIONS {
        // The product X Xᵀ is taken over the shorter side.
        let gram = if rows <= cols { x.matmul(&x.t()?)? } else { x.t()?.matmul(&x)? };
        let polynomial = ((&gram * b)? + (gram.matmul(&gram)? * c)?)?;
        let moved = if rows <= cols { polynomial.matmul(&x)? } else { x.matmul(&polynomial)? };
        x = ((x * a)? + moved)?;
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::optimizer::muon;

    /// Three matrices of different heights, one of them all zeros.
    const PARTS: [(&str, usize); 3] = [("q", 7), ("k", 2), ("v", 3)];
    const COLS: usize = 4;

    #[test]
    fn joined_matrices_are_updated_as_separate_ones() {
        let parts = PARTS.map(|(name, n_rows)| (name.to_owned(), n_rows));
        let gradient: Vec<f32> = (0..12 * COLS)
            .map(|at| if (7 * COLS..9 * COLS).contains(&at) { 0.0 } else { (at as f32 * 1.7).sin() })
            .collect();
        let tensor = |values: &[f32]| Tensor::from_slice(values, (12, COLS), &Device::Cpu).unwrap();
        let before = [[0.1; COLS]; 7].into_iter().chain([[0.0; COLS]; 2]).chain([[0.1; COLS]; 3]);
        let before: Vec<f32> = before.flatten().collect();
        let (parameter, momentum) = (tensor(&[0.5; 12 * COLS]), tensor(&before));
        let copy = parameter.to_dtype(DType::BF16).unwrap();
        let joined = Joined { parts: &parts, parameter: &parameter, momentum: &momentum, copy: Some(&copy) };
        joined.update(&tensor(&gradient), 0.5, 0.9, 0.1).unwrap();

        let moved = parameter.to_vec2::<f32>().unwrap();
        let mut start = 0;
        for (name, n_rows) in PARTS {
            let range = start * COLS..(start + n_rows) * COLS;
            let clipped: Vec<f32> = gradient[range.clone()].iter().map(|g| 0.5 * g).collect();
            let direction = muon::direction(&mut before[range].to_vec(), &clipped, COLS);
            for (at, (direction, found)) in direction.iter().zip(moved[start..].iter().flatten()).enumerate()
            {
                let expected = 0.9 * 0.5 - 0.1 * direction;
                assert!((found - expected).abs() < 1e-5, "`{name}`, {at}: {found} against {expected}");
            }
            start += n_rows;
        }
        // Weight decay applies to a zero gradient too.
        assert_eq!(moved[7], [0.45; COLS]);
        let rounded = parameter.to_dtype(DType::BF16).unwrap().to_dtype(DType::F32).unwrap();
        let copy = copy.to_dtype(DType::F32).unwrap();
        assert_eq!(copy.to_vec2::<f32>().unwrap(), rounded.to_vec2::<f32>().unwrap());
    }
}
