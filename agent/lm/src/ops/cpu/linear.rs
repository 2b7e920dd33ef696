//! `y = x Wᵀ`, optionally plus a bias for each column or a residual for each element.
//!
//! The weight has the checkpoint's layout `[out, in]` and is read transposed without a copy. Several weights
//! that multiply the same rows, such as those of q, k and v, can be given in parts, one below the other; they
//! are multiplied as one. Gradients: `dx = dy W`, `dW = dyᵀ x`, `d_bias` = sum of the rows of dy,
//! `d_residual = dy`.

use candle_core::{Result, Tensor, bail};

use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::matmul::{Right, matmul_joined};
use webshop_kernels::cpu::matmul::{Store, View};
use webshop_kernels::cpu::rows::add_rows;
use webshop_kernels::cpu::threads::Threads;

/// The initial value to which the product is added.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Onto<'a> {
    /// Zero.
    Nothing,
    /// A row for every token. `[out]`
    Bias(&'a Tensor),
    /// A value for every element. `[T, out]`
    Residual(&'a Tensor),
}

/// (T, in, out) of a product, or an error with both shapes.
fn sizes<const N: usize>(x: &Tensor, weights: [&Tensor; N]) -> Result<(usize, usize, usize)> {
    let (n_tokens, inputs) = x.dims2()?;
    let mut outputs = 0;
    for weight in weights {
        match weight.dims() {
            &[rows, width] if width == inputs => outputs += rows,
            weight => bail!("cannot multiply {:?} by the transpose of {weight:?}", x.dims()),
        }
    }
    Ok((n_tokens, inputs, outputs))
}

/// Maps x `[T, in]` to `[T, out]`; the weights `[out, in]` together have all outputs, in order.
pub(crate) fn forward<const N: usize>(x: &Tensor, weights: [&Tensor; N], onto: Onto) -> Result<Tensor> {
    let (n_tokens, inputs, outputs) = sizes(x, weights)?;
    let threads = Threads::for_width(inputs.min(outputs));
    let mut y = match onto {
        Onto::Nothing => threads.zeros(n_tokens * outputs),
        Onto::Bias(bias) if bias.dims() == [outputs] => read([bias], |[bias]| bias.repeat(n_tokens))?,
        Onto::Residual(residual) if residual.dims() == [n_tokens, outputs] => {
            read([residual], |[residual]| residual.to_vec())?
        }
        Onto::Bias(other) | Onto::Residual(other) => {
            bail!("cannot add a product of shape {:?} to {:?}", [n_tokens, outputs], other.shape())
        }
    };
    let store = if matches!(onto, Onto::Nothing) { Store::Set } else { Store::Add };
    read([x], |[x]| {
        read(weights, |weights| {
            let weights = weights.map(|weight| View::rows_of(weight, inputs).t());
            let x = View::new(x, n_tokens, inputs, inputs);
            matmul_joined(&mut y, outputs, x, Right::Beside(&weights), store, threads);
        })
    })??;
    tensor(y, (n_tokens, outputs))
}

/// Returns (dx, dW of each weight, flat) for dy `[T, out]`.
pub(crate) fn backward<const N: usize>(
    x: &Tensor,
    weights: [&Tensor; N],
    d_y: &Tensor,
) -> Result<(Tensor, [Vec<f32>; N])> {
    let (n_tokens, inputs, outputs) = sizes(x, weights)?;
    let threads = Threads::for_width(inputs.min(outputs));
    let mut d_x = threads.zeros(n_tokens * inputs);
    let mut d_weights = weights.map(|weight| threads.zeros(weight.elem_count()));
    read([x, d_y], |[x, d_y]| {
        let x = [View::new(x, n_tokens, inputs, inputs)];
        let mut start = 0;
        for d_weight in &mut d_weights {
            let rows = d_weight.len() / inputs;
            let own = View::new(&d_y[start.min(d_y.len())..], n_tokens, rows, outputs).t();
            matmul_joined(d_weight, inputs, own, Right::Below(&x), Store::Set, threads);
            start += rows;
        }
        let d_y = View::new(d_y, n_tokens, outputs, outputs);
        read(weights, |weights| {
            let weights = weights.map(|weight| View::rows_of(weight, inputs));
            matmul_joined(&mut d_x, inputs, d_y, Right::Below(&weights), Store::Set, threads);
        })
    })??;
    Ok((tensor(d_x, (n_tokens, inputs))?, d_weights))
}

/// Gradient of the bias from dy `[T, out]`. `[out]`
pub(crate) fn bias_backward(d_y: &Tensor) -> Result<Vec<f32>> {
    let mut sums = vec![0.0; d_y.dim(1)?];
    read([d_y], |[d_y]| add_rows(d_y, &mut sums))?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    #[test]
    fn by_hand() {
        // (1, 2) times the rows (3, 4) and (5, 6): 11 and 17; plus the bias (1, -1): 12 and 16.
        let x = tensor(vec![1.0, 2.0], (1, 2)).unwrap();
        let w = tensor(vec![3.0, 4.0, 5.0, 6.0], (2, 2)).unwrap();
        let b = tensor(vec![1.0, -1.0], 2).unwrap();
        for (onto, expected) in [
            (Onto::Nothing, [[11.0, 17.0]]),
            (Onto::Bias(&b), [[12.0, 16.0]]),
            (Onto::Residual(&b.unsqueeze(0).unwrap()), [[12.0, 16.0]]),
        ] {
            assert_eq!(forward(&x, [&w], onto).unwrap().to_vec2::<f32>().unwrap(), expected);
        }
    }

    #[test]
    fn gradients_match_finite_differences() {
        let (x, w, b, d_y) = (wave(1, (5, 3)), wave(2, (4, 3)), wave(3, 4), wave(4, (5, 4)));
        let (d_x, [d_w]) = backward(&x, [&w], &d_y).unwrap();
        let d_w = tensor(d_w, (4, 3)).unwrap();
        let d_b = tensor(bias_backward(&d_y).unwrap(), 4).unwrap();
        let onto_bias = |inputs: &[Tensor; 3]| forward(&inputs[0], [&inputs[1]], Onto::Bias(&inputs[2]));
        gradients_match([x, w, b], &d_y, onto_bias, [d_x, d_w, d_b]);
    }

    #[test]
    fn a_weight_in_parts_equals_the_whole_weight() {
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        // Parts that end within panels and are wide enough to be divided among threads.
        for (n_tokens, inputs, outputs) in [(3, 5, [33, 1, 30]), (2, 520, [300, 7, 290])] {
            let (x, d_y) = (wave(1, (n_tokens, inputs)), wave(4, (n_tokens, outputs.iter().sum::<usize>())));
            let parts = [0, 1, 2].map(|i| wave(5 + i, (outputs[i], inputs)));
            let parts = [&parts[0], &parts[1], &parts[2]];
            let whole = Tensor::cat(&parts, 0).unwrap();
            let of = |y: Tensor| bits(&y.flatten_all().unwrap().to_vec1::<f32>().unwrap());
            let (apart, joined) = (forward(&x, parts, Onto::Nothing), forward(&x, [&whole], Onto::Nothing));
            assert_eq!(of(apart.unwrap()), of(joined.unwrap()));
            let (d_x, d_w) = backward(&x, parts, &d_y).unwrap();
            let (whole_d_x, [whole_d_w]) = backward(&x, [&whole], &d_y).unwrap();
            assert_eq!((of(d_x), bits(&d_w.concat())), (of(whole_d_x), bits(&whole_d_w)));
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let (x, w, b) = (wave(1, (5, 3)), wave(2, (4, 2)), wave(3, 5));
        let message = forward(&x, [&w], Onto::Nothing).unwrap_err().to_string();
        assert!(message.contains("[5, 3]") && message.contains("[4, 2]"), "{message}");
        assert!(forward(&x, [&wave(2, (4, 3))], Onto::Bias(&b)).is_err());
    }
}
