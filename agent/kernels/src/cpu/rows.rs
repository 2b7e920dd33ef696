//! Row-wise operations: RMSNorm, SwiGLU, log-softmax, and their gradients.
//!
//! RMSNorm ("Root Mean Square Layer Normalization", arXiv 1910.07467, equation 4):
//! `y = x / sqrt(mean(x²) + eps) · w`. SwiGLU ("GLU Variants Improve Transformer", arXiv 2002.05202,
//! equation 5) without its matrices: `y = gate · sigmoid(gate) · up`. Rows are contiguous; the result of a
//! row does not depend on other rows, and sums over rows run from the first to the last.

use crate::cpu::math::{dot, exp, ln, max, sum_of};
use crate::multiversion;

multiversion! {
    /// `out` = RMSNorm of each row of `x` with gain `weight`. `[T, H]`
    pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let width = weight.len();
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let inverse = inverse_rms(x, eps);
            for ((out, x), w) in out.iter_mut().zip(x).zip(weight) {
                *out = x * inverse * w;
            }
        }
    }
}

#[inline(always)]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt()
}

multiversion! {
    /// Gradients of [`rms_norm`], added to `d_x` and `d_weight`.
    ///
    /// With r = 1/rms and g = d_out · w: `dx = r g − x r³ (g·x)/H` and `dw = Σ over rows of d_out x r`.
    pub fn rms_norm_backward(
        x: &[f32],
        weight: &[f32],
        eps: f32,
        d_out: &[f32],
        d_x: &mut [f32],
        d_weight: &mut [f32],
    ) {
        let width = weight.len();
        let mut g = vec![0.0; width];
        let rows = x.chunks_exact(width).zip(d_out.chunks_exact(width)).zip(d_x.chunks_exact_mut(width));
        for ((x, d_out), d_x) in rows {
            let inverse = inverse_rms(x, eps);
            for (((g, d_weight), (d_out, weight)), x) in
                g.iter_mut().zip(d_weight.iter_mut()).zip(d_out.iter().zip(weight)).zip(x)
            {
                *g = d_out * weight;
                *d_weight = (d_out * inverse).mul_add(*x, *d_weight);
            }
            let along = -dot(&g, x) / width as f32 * inverse * inverse * inverse;
            for ((d_x, g), x) in d_x.iter_mut().zip(&g).zip(x) {
                *d_x += x.mul_add(along, g * inverse);
            }
        }
    }
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

multiversion! {
    /// Maps rows of `gate ‖ up`, each half `width` long, to gate · sigmoid(gate) · up. `[T, 2I]` → `[T, I]`
    pub fn swiglu(gate_up: &[f32], width: usize, out: &mut [f32]) {
        for (gate_up, out) in gate_up.chunks_exact(2 * width).zip(out.chunks_exact_mut(width)) {
            let (gate, up) = gate_up.split_at(width);
            for i in 0..width {
                out[i] = gate[i] * sigmoid(gate[i]) * up[i];
            }
        }
    }
}

multiversion! {
    /// Gradient of [`swiglu`]: with s = sigmoid(gate), `d_up = d_out gate s` and
    /// `d_gate = d_out up s (1 + gate (1 − s))`.
    pub fn swiglu_backward(gate_up: &[f32], width: usize, d_out: &[f32], d_gate_up: &mut [f32]) {
        let rows = gate_up.chunks_exact(2 * width).zip(d_gate_up.chunks_exact_mut(2 * width));
        for ((gate_up, d_gate_up), d_out) in rows.zip(d_out.chunks_exact(width)) {
            let (gate, up) = gate_up.split_at(width);
            let (d_gate, d_up) = d_gate_up.split_at_mut(width);
            for i in 0..width {
                let s = sigmoid(gate[i]);
                d_up[i] = d_out[i] * gate[i] * s;
                d_gate[i] = d_out[i] * up[i] * s * gate[i].mul_add(1.0 - s, 1.0);
            }
        }
    }
}

/// Results of [`log_softmax_row`] for a row of logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowStats {
    /// log p(target), at most 0.
    pub log_prob: f32,
    /// −Σ p log p in nats, between 0 and ln V.
    pub entropy: f32,
    /// log Σ exp(logit).
    pub log_sum_exp: f32,
}

multiversion! {
    /// Log-probability of `target` under the softmax of `logits`, with the row's entropy.
    pub fn log_softmax_row(logits: &[f32], target: usize) -> RowStats {
        let highest = max(logits);
        let mass = sum_of(logits, |l| exp(l - highest));
        let moment = sum_of(logits, |l| exp(l - highest) * (l - highest));
        let log_mass = ln(mass);
        RowStats {
            log_prob: logits[target] - highest - log_mass,
            entropy: log_mass - moment / mass,
            log_sum_exp: highest + log_mass,
        }
    }
}

multiversion! {
    /// Replaces `logits` by the gradient of `d_log_prob · log p(target)`: `d_log_prob (1[target] − p)`.
    pub fn log_softmax_row_backward(logits: &mut [f32], target: usize, log_sum_exp: f32, d_log_prob: f32) {
        for logit in logits.iter_mut() {
            *logit = -d_log_prob * exp(*logit - log_sum_exp);
        }
        logits[target] += d_log_prob;
    }
}

multiversion! {
    /// Replaces each of `logits` by its difference from the highest, divided by `temperature`.
    pub fn relative_all(logits: &mut [f32], temperature: f32) {
        let highest = max(logits);
        for logit in logits {
            *logit = (*logit - highest) / temperature;
        }
    }
}

multiversion! {
    /// `out[i]` = e to the power of `x[i]`, over the common length.
    pub fn exp_all(x: &[f32], out: &mut [f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = exp(*x);
        }
    }
}

multiversion! {
    /// Adds the rows of `x` to `sums`, in order.
    pub fn add_rows(x: &[f32], sums: &mut [f32]) {
        let width = sums.len();
        for row in x.chunks_exact(width) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rms_norm_by_hand() {
        // Mean square of (3, 4) is 12.5; 3/√12.5 = 0.848528, 4/√12.5 = 1.131371, times (1, 2).
        let mut out = [0.0; 2];
        rms_norm(&[3.0, 4.0], &[1.0, 2.0], 0.0, &mut out);
        assert!((out[0] - 0.848_528).abs() < 1e-6 && (out[1] - 2.262_742).abs() < 1e-6, "{out:?}");
    }

    #[test]
    fn swiglu_by_hand() {
        // 2 sigmoid(2) · 3 = 2 · 0.880797 · 3 = 5.284782.
        let mut out = [0.0];
        swiglu(&[2.0, 3.0], 1, &mut out);
        assert!((out[0] - 5.284_782).abs() < 1e-5, "{out:?}");
    }

    #[test]
    fn log_softmax_by_hand() {
        // Weights 1, 2, 5 of 8: log p = ln(2/8); entropy = −(⅛ ln ⅛ + ¼ ln ¼ + ⅝ ln ⅝) = 0.900256.
        let logits = [0.0, 2.0_f32.ln(), 5.0_f32.ln()];
        let stats = log_softmax_row(&logits, 1);
        assert!((stats.log_prob - 0.25_f32.ln()).abs() < 1e-6, "{stats:?}");
        assert!((stats.entropy - 0.900_256).abs() < 1e-6, "{stats:?}");
        assert!((stats.log_sum_exp - 8.0_f32.ln()).abs() < 1e-6, "{stats:?}");
    }

    #[test]
    fn log_softmax_gradient_by_hand() {
        let mut logits = [0.0, 2.0_f32.ln(), 5.0_f32.ln()];
        log_softmax_row_backward(&mut logits, 1, 8.0_f32.ln(), 2.0);
        for (value, truth) in logits.iter().zip([-0.25, 1.5, -1.25]) {
            assert!((value - truth).abs() < 1e-6, "{logits:?}");
        }
    }

    #[test]
    fn a_nan_logit_gives_a_nan_log_prob() {
        assert!(log_softmax_row(&[0.0, f32::NAN, 1.0], 0).log_prob.is_nan());
    }
}
