//! SwiGLU of rows `gate ‖ up` as a differentiable operation; the formula is in [`crate::kernels::rows`].

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::{floats, tensor, tensor_floats};
use crate::kernels::rows;

/// gate ‖ up [T, 2I] → [T, I].
pub fn swiglu(gate_up: &Tensor) -> Result<Tensor> {
    gate_up.apply_op1(SwiGlu)
}

struct SwiGlu;

impl CustomOp1 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, gate_up: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let &[n_tokens, both] = layout.dims() else {
            bail!("rows of gate and up expected, got {:?}", layout.shape());
        };
        let mut out = vec![0.0; n_tokens * both / 2];
        rows::swiglu(floats(gate_up, layout)?, both / 2, &mut out);
        Ok((CpuStorage::F32(out), (n_tokens, both / 2).into()))
    }

    fn bwd(&self, gate_up: &Tensor, _: &Tensor, d_y: &Tensor) -> Result<Option<Tensor>> {
        let d_y = d_y.contiguous()?;
        let mut d_gate_up = vec![0.0; gate_up.elem_count()];
        let (storage, layout) = gate_up.storage_and_layout();
        let (dy_storage, dy_layout) = d_y.storage_and_layout();
        let d_y = tensor_floats(&dy_storage, dy_layout)?;
        rows::swiglu_backward(
            tensor_floats(&storage, layout)?,
            layout.dims()[1] / 2,
            d_y,
            &mut d_gate_up,
        );
        Ok(Some(tensor(d_gate_up, gate_up.shape())?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_gradients, variable, weighted_sum};
    use super::*;

    #[test]
    fn gradients_match_finite_differences() {
        let x = variable(1, (3, 38));
        check_gradients(&[&x], || weighted_sum(&swiglu(&x)?));
    }
}
