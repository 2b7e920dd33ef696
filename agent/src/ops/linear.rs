//! `y = x Wᵀ`, optionally plus a bias for each column or a residual for each element.
//!
//! The weight keeps the checkpoint's layout [out, in] and is read transposed without a copy.
//! Gradients: `dx = dy W`, `dW = dyᵀ x`, `d_bias` = sum of the rows of dy, `d_residual = dy`.

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::{floats, tensor, tensor_floats};
use crate::kernels::matmul::{Store, View, matmul};
use crate::kernels::rows::add_rows;

/// x [T, in], weight [out, in] → [T, out].
pub fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    x.apply_op2(weight, Linear)
}

/// x [T, in], weight [out, in], bias [out] → [T, out].
pub fn linear_with_bias(x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
    x.apply_op3(weight, bias, LinearPlus::Bias)
}

/// x [T, in], weight [out, in], residual [T, out] → [T, out].
pub fn linear_onto(x: &Tensor, weight: &Tensor, residual: &Tensor) -> Result<Tensor> {
    x.apply_op3(weight, residual, LinearPlus::Residual)
}

struct Linear;

enum LinearPlus {
    Bias,
    Residual,
}

/// (T, in, out) of a product, or an error that shows both shapes.
fn sizes(x: &Shape, weight: &Shape) -> Result<(usize, usize, usize)> {
    match (x.dims(), weight.dims()) {
        (&[n_tokens, inputs], &[outputs, width]) if inputs == width => Ok((n_tokens, inputs, outputs)),
        _ => bail!("cannot multiply {x:?} by the transpose of {weight:?}"),
    }
}

fn gradients(x: &Tensor, weight: &Tensor, d_y: &[f32]) -> Result<(Tensor, Tensor)> {
    let (n_tokens, inputs, outputs) = sizes(x.shape(), weight.shape())?;
    let (x_storage, x_layout) = x.storage_and_layout();
    let (w_storage, w_layout) = weight.storage_and_layout();
    let x = View::new(tensor_floats(&x_storage, x_layout)?, n_tokens, inputs, inputs);
    let weight = View::new(tensor_floats(&w_storage, w_layout)?, outputs, inputs, inputs);
    let d_y = View::new(d_y, n_tokens, outputs, outputs);
    let mut d_x = vec![0.0; n_tokens * inputs];
    matmul(&mut d_x, inputs, d_y, weight, Store::Set);
    let mut d_weight = vec![0.0; outputs * inputs];
    matmul(&mut d_weight, inputs, d_y.t(), x, Store::Set);
    Ok((
        tensor(d_x, (n_tokens, inputs))?,
        tensor(d_weight, (outputs, inputs))?,
    ))
}

impl CustomOp2 for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n_tokens, inputs, outputs) = sizes(lx.shape(), lw.shape())?;
        let x = View::new(floats(x, lx)?, n_tokens, inputs, inputs);
        let weight = View::new(floats(w, lw)?, outputs, inputs, inputs);
        let mut y = vec![0.0; n_tokens * outputs];
        matmul(&mut y, outputs, x, weight.t(), Store::Set);
        Ok((CpuStorage::F32(y), (n_tokens, outputs).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        d_y: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d_y = d_y.contiguous()?;
        let (storage, layout) = d_y.storage_and_layout();
        let (d_x, d_weight) = gradients(x, weight, tensor_floats(&storage, layout)?)?;
        Ok((Some(d_x), Some(d_weight)))
    }
}

impl CustomOp3 for LinearPlus {
    fn name(&self) -> &'static str {
        "linear-plus"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        addend: &CpuStorage,
        la: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (n_tokens, inputs, outputs) = sizes(lx.shape(), lw.shape())?;
        let x = View::new(floats(x, lx)?, n_tokens, inputs, inputs);
        let weight = View::new(floats(w, lw)?, outputs, inputs, inputs);
        let addend = floats(addend, la)?;
        let mut y = match (self, la.dims()) {
            (Self::Bias, &[width]) if width == outputs => addend.repeat(n_tokens),
            (Self::Residual, &[rows, width]) if rows == n_tokens && width == outputs => addend.to_vec(),
            (_, dims) => bail!(
                "cannot add {dims:?} to a product of shape {:?}",
                [n_tokens, outputs]
            ),
        };
        matmul(&mut y, outputs, x, weight.t(), Store::Add);
        Ok((CpuStorage::F32(y), (n_tokens, outputs).into()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        addend: &Tensor,
        _: &Tensor,
        d_y: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let d_y = d_y.contiguous()?;
        let (storage, layout) = d_y.storage_and_layout();
        let values = tensor_floats(&storage, layout)?;
        let (d_x, d_weight) = gradients(x, weight, values)?;
        let d_addend = match self {
            Self::Residual => d_y.clone(),
            Self::Bias => {
                let mut sums = vec![0.0; addend.elem_count()];
                add_rows(values, &mut sums);
                tensor(sums, addend.shape())?
            }
        };
        Ok((Some(d_x), Some(d_weight), Some(d_addend)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_gradients, variable, weighted_sum};
    use super::*;

    #[test]
    fn by_hand() {
        // (1, 2) against the rows (3, 4) and (5, 6): 11 and 17; plus bias (1, -1): 12 and 16.
        let x = tensor(vec![1.0, 2.0], (1, 2)).unwrap();
        let w = tensor(vec![3.0, 4.0, 5.0, 6.0], (2, 2)).unwrap();
        let b = tensor(vec![1.0, -1.0], 2).unwrap();
        let y = linear_with_bias(&x, &w, &b).unwrap();
        assert_eq!(y.to_vec2::<f32>().unwrap(), [[12.0, 16.0]]);
    }

    #[test]
    fn gradients_match_finite_differences() {
        let (x, w) = (variable(1, (5, 3)), variable(2, (4, 3)));
        let (b, r) = (variable(3, 4), variable(4, (5, 4)));
        check_gradients(&[&x, &w], || weighted_sum(&linear(&x, &w)?));
        check_gradients(&[&x, &w, &b], || weighted_sum(&linear_with_bias(&x, &w, &b)?));
        check_gradients(&[&x, &w, &r], || weighted_sum(&linear_onto(&x, &w, &r)?));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let message = linear(&variable(1, (5, 3)), &variable(2, (4, 2)))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("[5, 3]") && message.contains("[4, 2]"),
            "{message}"
        );
    }
}
