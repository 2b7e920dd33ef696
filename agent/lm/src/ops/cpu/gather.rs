//! Gathering rows: embeddings by token, hidden states by position.

use candle_core::{Result, Tensor, bail};

use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::rows::add_rows;

/// Rows `indices` of x `[R, H]`, in this order. `[N, H]`
pub(crate) fn forward(x: &Tensor, indices: &[u32]) -> Result<Tensor> {
    let (n_rows, width) = x.dims2()?;
    if let Some(index) = indices.iter().find(|&&index| index as usize >= n_rows) {
        bail!("row {index} is past the last of {n_rows} rows");
    }
    let mut y = Vec::with_capacity(indices.len() * width);
    read([x], |[x]| {
        for &index in indices {
            y.extend_from_slice(&x[index as usize * width..][..width]);
        }
    })?;
    tensor(y, (indices.len(), width))
}

/// Adds the rows of dy `[N, H]` to the rows `indices` of `d_x` `[R, H]`, in order.
pub(crate) fn backward(indices: &[u32], d_y: &Tensor, d_x: &mut [f32]) -> Result<()> {
    let width = d_y.dim(1)?;
    read([d_y], |[d_y]| {
        for (&index, d_y) in indices.iter().zip(d_y.chunks_exact(width)) {
            add_rows(d_y, &mut d_x[index as usize * width..][..width]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    #[test]
    fn gradients_match_finite_differences() {
        let (x, d_y) = (wave(1, (4, 3)), wave(2, (5, 3)));
        let mut d_x = vec![0.0; 12];
        backward(&[2, 0, 2, 3, 2], &d_y, &mut d_x).unwrap();
        let d_x = tensor(d_x, (4, 3)).unwrap();
        gradients_match([x], &d_y, |[x]| forward(x, &[2, 0, 2, 3, 2]), [d_x]);
    }

    #[test]
    fn rows_that_do_not_exist_are_refused() {
        assert!(forward(&wave(1, (4, 3)), &[4]).unwrap_err().to_string().contains("row 4"));
    }
}
