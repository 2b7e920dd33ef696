//! `y = x Wᵀ`, optionally onto a bias for each column or a residual for each element.
//!
//! The weight keeps the checkpoint's layout `[out, in]` and is read transposed without a copy.
//! Gradients: `dx = dy W`, `dW = dyᵀ x`, `d_bias` = sum of the rows of dy, `d_residual = dy`.

use candle_core::{Result, Tensor, bail};

use super::{read, tensor};
use crate::kernels::matmul::{Store, View, matmul};
use crate::kernels::rows::add_rows;

/// What the product is added to.
#[derive(Clone, Copy, Debug)]
pub enum Onto<'a> {
    /// Zero.
    Nothing,
    /// A row for every token. `[out]`
    Bias(&'a Tensor),
    /// A value for every element. `[T, out]`
    Residual(&'a Tensor),
}

/// (T, in, out) of a product, or an error that shows both shapes.
fn sizes(x: &Tensor, weight: &Tensor) -> Result<(usize, usize, usize)> {
    match (x.dims(), weight.dims()) {
        (&[n_tokens, inputs], &[outputs, width]) if inputs == width => Ok((n_tokens, inputs, outputs)),
        (x, weight) => bail!("cannot multiply {x:?} by the transpose of {weight:?}"),
    }
}

/// x `[T, in]`, weight `[out, in]` → `[T, out]`.
pub fn forward(x: &Tensor, weight: &Tensor, onto: Onto) -> Result<Tensor> {
    let (n_tokens, inputs, outputs) = sizes(x, weight)?;
    let mut y = match onto {
        Onto::Nothing => vec![0.0; n_tokens * outputs],
        Onto::Bias(bias) if bias.dims() == [outputs] => read([bias], |[bias]| bias.repeat(n_tokens))?,
        Onto::Residual(residual) if residual.dims() == [n_tokens, outputs] => {
            read([residual], |[residual]| residual.to_vec())?
        }
        Onto::Bias(other) | Onto::Residual(other) => {
            bail!("cannot add a product of shape {:?} to {:?}", [n_tokens, outputs], other.shape())
        }
    };
    let store = if matches!(onto, Onto::Nothing) { Store::Set } else { Store::Add };
    read([x, weight], |[x, weight]| {
        let weight = View::new(weight, outputs, inputs, inputs);
        matmul(&mut y, outputs, View::new(x, n_tokens, inputs, inputs), weight.t(), store);
    })?;
    tensor(y, (n_tokens, outputs))
}

/// (dx, dW) from dy `[T, out]`.
pub fn backward(x: &Tensor, weight: &Tensor, d_y: &Tensor) -> Result<(Tensor, Tensor)> {
    let (n_tokens, inputs, outputs) = sizes(x, weight)?;
    let mut d_x = vec![0.0; n_tokens * inputs];
    let mut d_weight = vec![0.0; outputs * inputs];
    read([x, weight, d_y], |[x, weight, d_y]| {
        let d_y = View::new(d_y, n_tokens, outputs, outputs);
        matmul(&mut d_x, inputs, d_y, View::new(weight, outputs, inputs, inputs), Store::Set);
        matmul(&mut d_weight, inputs, d_y.t(), View::new(x, n_tokens, inputs, inputs), Store::Set);
    })?;
    Ok((tensor(d_x, (n_tokens, inputs))?, tensor(d_weight, (outputs, inputs))?))
}

/// Gradient of the bias from dy `[T, out]`. `[out]`
pub fn bias_backward(d_y: &Tensor) -> Result<Tensor> {
    let mut sums = vec![0.0; d_y.dim(1)?];
    read([d_y], |[d_y]| add_rows(d_y, &mut sums))?;
    let outputs = sums.len();
    tensor(sums, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::checks::{gradients_match, wave};
    use super::*;

    #[test]
    fn by_hand() {
        // (1, 2) against the rows (3, 4) and (5, 6): 11 and 17; onto (1, -1): 12 and 16.
        let x = tensor(vec![1.0, 2.0], (1, 2)).unwrap();
        let w = tensor(vec![3.0, 4.0, 5.0, 6.0], (2, 2)).unwrap();
        let b = tensor(vec![1.0, -1.0], 2).unwrap();
        for (onto, expected) in [
            (Onto::Nothing, [[11.0, 17.0]]),
            (Onto::Bias(&b), [[12.0, 16.0]]),
            (Onto::Residual(&b.unsqueeze(0).unwrap()), [[12.0, 16.0]]),
        ] {
            assert_eq!(forward(&x, &w, onto).unwrap().to_vec2::<f32>().unwrap(), expected);
        }
    }

    #[test]
    fn gradients_match_finite_differences() {
        let (x, w, b, d_y) = (wave(1, (5, 3)), wave(2, (4, 3)), wave(3, 4), wave(4, (5, 4)));
        let (d_x, d_w) = backward(&x, &w, &d_y).unwrap();
        let d_b = bias_backward(&d_y).unwrap();
        let onto_bias = |inputs: &[Tensor; 3]| forward(&inputs[0], &inputs[1], Onto::Bias(&inputs[2]));
        gradients_match([x, w, b], &d_y, onto_bias, [d_x, d_w, d_b]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let (x, w, b) = (wave(1, (5, 3)), wave(2, (4, 2)), wave(3, 5));
        let message = forward(&x, &w, Onto::Nothing).unwrap_err().to_string();
        assert!(message.contains("[5, 3]") && message.contains("[4, 2]"), "{message}");
        assert!(forward(&x, &wave(2, (4, 3)), Onto::Bias(&b)).is_err());
    }
}
