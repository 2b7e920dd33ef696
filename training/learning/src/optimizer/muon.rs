//! The step of a weight matrix under Muon: momentum, made orthogonal.
//!
//! Source: Keller Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; the scale
//! that lets it share AdamW's learning rate is equation 4 of "Muon is Scalable for LLM Training", arXiv
//! 2502.16982. For a matrix of r rows and c columns:
//!
//! ```text
//! m ← μ m + (1 − μ) g                      m — momentum, μ = .95
//! u = μ m + (1 − μ) g                      Nesterov's look ahead
//! X ← u / ‖u‖, five times X ← aX + (bA + cA²)X with A = XXᵀ       (a, b, c) = (3.4445, −4.7750, 2.0315)
//! w ← w − lr · λ w − lr · 0.2 √max(r, c) · X
//! ```
//!
//! The iteration moves every singular value of u to about 1, so that directions seldom seen in the gradient
//! are learned as fast as those seen always. Deviations: none; all arithmetic is f32, where the sources use
//! bf16.

use webshop_kernels::cpu::matmul::{Store, View, matmul};

/// μ: decay of the momentum.
pub(super) const MOMENTUM: f32 = 0.95;
/// Coefficients of the quintic iteration: steepest at 0 without leaving (0.7, 1.2) at the end.
pub(super) const QUINTIC: (f32, f32, f32) = (3.4445, -4.7750, 2.0315);
/// Number of iterations.
pub(super) const ITERATIONS: usize = 5;
/// Root mean square of an update relative to AdamW's usual one.
const MATCHED_RMS: f64 = 0.2;

/// Whether the parameter of this name and shape is a weight matrix between hidden layers: Muon is for those
/// only, not for embeddings, gains and biases.
pub(crate) fn is_hidden_matrix(name: &str, shape: &[usize]) -> bool {
    shape.len() == 2 && name.ends_with("proj.weight")
}

/// Adds `gradient` to `momentum`, both `[rows, cols]`, and returns the step to subtract for a learning rate
/// of 1.
pub(crate) fn direction(momentum: &mut [f32], gradient: &[f32], cols: usize) -> Vec<f32> {
    let mut ahead = Vec::with_capacity(momentum.len());
    for (m, &g) in momentum.iter_mut().zip(gradient) {
        *m = MOMENTUM * *m + (1.0 - MOMENTUM) * g;
        ahead.push(MOMENTUM * *m + (1.0 - MOMENTUM) * g);
    }
    let scale = matched_scale(momentum.len() / cols.max(1), cols);
    orthogonalize(&mut ahead, cols);
    ahead.iter_mut().for_each(|x| *x *= scale);
    ahead
}

/// The scale of an orthogonal matrix of this shape, 0.2 √max(r, c).
pub(super) fn matched_scale(rows: usize, cols: usize) -> f32 {
    (MATCHED_RMS * f64::sqrt(rows.max(cols) as f64)) as f32
}

/// Replaces `x`, `[rows, cols]`, by a matrix with the same singular vectors and singular values of about 1;
/// all zeros stay zeros.
fn orthogonalize(x: &mut [f32], cols: usize) {
    let square: f64 = x.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    if square == 0.0 {
        return;
    }
    let shrink = (1.0 / square.sqrt()) as f32;
    x.iter_mut().for_each(|value| *value *= shrink);
    // The product X Xᵀ is taken over the shorter side.
    let rows = x.len() / cols;
    let side = rows.min(cols);
    let (mut gram, mut polynomial) = (vec![0.0; side * side], vec![0.0; side * side]);
    let mut moved = vec![0.0; x.len()];
    let (a, b, c) = QUINTIC;
    for _ in 0..ITERATIONS {
        let view = View::rows_of(x, cols);
        if rows <= cols {
            matmul(&mut gram, side, view, view.t(), Store::Set);
        } else {
            matmul(&mut gram, side, view.t(), view, Store::Set);
        }
        let gram_view = View::rows_of(&gram, side);
        matmul(&mut polynomial, side, gram_view, gram_view, Store::Set);
        polynomial.iter_mut().zip(&gram).for_each(|(square, &first)| *square = b * first + c * *square);
        let polynomial = View::rows_of(&polynomial, side);
        if rows <= cols {
            matmul(&mut moved, cols, polynomial, view, Store::Set);
        } else {
            matmul(&mut moved, cols, view, polynomial, Store::Set);
        }
        x.iter_mut().zip(&moved).for_each(|(value, &moved)| *value = a * *value + moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X Xᵀ for the shorter side, `[side, side]`.
    fn gram(x: &[f32], rows: usize, cols: usize) -> Vec<f32> {
        let at = |i: usize, j: usize| x[i * cols + j];
        let side = rows.min(cols);
        let entry = |i: usize, j: usize| -> f32 {
            if rows <= cols {
                (0..cols).map(|k| at(i, k) * at(j, k)).sum()
            } else {
                (0..rows).map(|k| at(k, i) * at(k, j)).sum()
            }
        };
        (0..side * side).map(|at| entry(at / side, at % side)).collect()
    }

    #[test]
    fn all_singular_values_become_about_1() {
        for (rows, cols) in [(4, 4), (3, 7), (7, 3)] {
            // Far from orthogonal: singular values differ a hundredfold.
            let mut x: Vec<f32> = (0..rows * cols)
                .map(|at| {
                    let diagonal = at / cols == at % cols;
                    (at as f32 * 0.7).sin() * 0.05 + if diagonal { (at / cols + 1) as f32 } else { 0.0 }
                })
                .collect();
            orthogonalize(&mut x, cols);
            let side = rows.min(cols);
            for (at, value) in gram(&x, rows, cols).into_iter().enumerate() {
                let (low, high) = if at / side == at % side { (0.4, 1.5) } else { (-0.3, 0.3) };
                assert!((low..high).contains(&value), "{rows}×{cols}, entry {at}: {value}");
            }
        }
    }

    #[test]
    fn a_diagonal_follows_the_quintic() {
        // diag(3, 4) / 5 = diag(.6, .8); each value goes through x ← ax + bx³ + cx⁵ five times on its own.
        let mut x = [3.0, 0.0, 0.0, 4.0];
        orthogonalize(&mut x, 2);
        let (a, b, c) = QUINTIC;
        let followed = |start: f32| (0..5).fold(start, |x, _| a * x + b * x.powi(3) + c * x.powi(5));
        assert!((x[0] - followed(0.6)).abs() < 1e-5 && (x[3] - followed(0.8)).abs() < 1e-5, "{x:?}");
        assert_eq!((x[1], x[2]), (0.0, 0.0));
    }

    #[test]
    fn the_step_depends_on_past_gradients_but_not_on_their_scale() {
        let (small, large) = ([1.0, 2.0, -1.0, 0.5], [100.0, 200.0, -100.0, 50.0]);
        let step = |gradient: &[f32]| direction(&mut [0.0; 4], gradient, 2);
        for (one, other) in step(&small).iter().zip(step(&large)) {
            assert!((one - other).abs() < 1e-4, "{one} is not {other}");
        }
        let mut momentum = [0.0; 4];
        direction(&mut momentum, &small, 2);
        assert_ne!(direction(&mut momentum, &[0.0; 4], 2), [0.0; 4]);
        assert_eq!(step(&[0.0; 4]), [0.0; 4]);
    }

    #[test]
    fn only_matrices_between_hidden_layers_use_muon() {
        assert!(is_hidden_matrix("model.layers.0.self_attn.q_proj.weight", &[128, 128]));
        assert!(!is_hidden_matrix("model.layers.0.self_attn.q_proj.bias", &[128]));
        assert!(!is_hidden_matrix("model.embed_tokens.weight", &[2048, 128]));
    }
}
