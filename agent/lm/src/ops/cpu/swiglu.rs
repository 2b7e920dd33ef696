//! SwiGLU of rows `gate ‖ up`; the formula is in [`webshop_kernels::cpu::rows`].

use candle_core::{Result, Tensor};

use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::rows;
use webshop_kernels::cpu::threads::Threads;

/// gate ‖ up `[T, 2I]` → `[T, I]`.
pub(crate) fn forward(gate_up: &Tensor) -> Result<Tensor> {
    let (n_tokens, both) = gate_up.dims2()?;
    let inner = both / 2;
    let threads = Threads::for_width(inner);
    let mut y = threads.zeros(n_tokens * inner);
    read([gate_up], |[gate_up]| {
        threads.each_part([(gate_up, both)], (&mut y, inner), |[x], y| rows::swiglu(x, inner, y));
    })?;
    tensor(y, (n_tokens, inner))
}

/// Gradient with respect to gate ‖ up from dy `[T, I]`. `[T, 2I]`
pub(crate) fn backward(gate_up: &Tensor, d_y: &Tensor) -> Result<Tensor> {
    let width = d_y.dim(1)?;
    let threads = Threads::for_width(width);
    let mut d_gate_up = threads.zeros(gate_up.elem_count());
    read([gate_up, d_y], |[gate_up, d_y]| {
        let inputs = [(gate_up, 2 * width), (d_y, width)];
        threads.each_part(inputs, (&mut d_gate_up, 2 * width), |[gate_up, d_y], d_gate_up| {
            rows::swiglu_backward(gate_up, width, d_y, d_gate_up);
        });
    })?;
    tensor(d_gate_up, gate_up.shape())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    #[test]
    fn gradients_match_finite_differences() {
        let (x, d_y) = (wave(1, (3, 38)), wave(2, (3, 19)));
        let d_x = backward(&x, &d_y).unwrap();
        gradients_match([x], &d_y, |[x]| forward(x), [d_x]);
    }
}
