//! RMSNorm as a differentiable operation; the formula is in [`crate::kernels::rows`].

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::{floats, tensor, tensor_floats};
use crate::kernels::rows;

/// x [T, H], gain [H] → [T, H].
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    x.apply_op2(weight, RmsNorm { eps })
}

struct RmsNorm {
    eps: f32,
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let shape = lx.shape();
        if lw.dims() != &shape.dims()[shape.rank().saturating_sub(1)..] {
            bail!("a gain of shape {:?} does not fit rows of {shape:?}", lw.shape());
        }
        let mut out = vec![0.0; shape.elem_count()];
        rows::rms_norm(floats(x, lx)?, floats(w, lw)?, self.eps, &mut out);
        Ok((CpuStorage::F32(out), shape.clone()))
    }

    fn bwd(
        &self,
        x: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        d_y: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d_y = d_y.contiguous()?;
        let mut d_x = vec![0.0; x.elem_count()];
        let mut d_weight = vec![0.0; weight.elem_count()];
        let (x_storage, x_layout) = x.storage_and_layout();
        let (w_storage, w_layout) = weight.storage_and_layout();
        let (dy_storage, dy_layout) = d_y.storage_and_layout();
        rows::rms_norm_backward(
            tensor_floats(&x_storage, x_layout)?,
            tensor_floats(&w_storage, w_layout)?,
            self.eps,
            tensor_floats(&dy_storage, dy_layout)?,
            &mut d_x,
            &mut d_weight,
        );
        Ok((
            Some(tensor(d_x, x.shape())?),
            Some(tensor(d_weight, weight.shape())?),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_gradients, variable, weighted_sum};
    use super::*;

    #[test]
    fn gradients_match_finite_differences() {
        let (x, w) = (variable(1, (3, 20)), variable(2, 20));
        check_gradients(&[&x, &w], || weighted_sum(&rms_norm(&x, &w, 1e-6)?));
    }
}
