//! Log-probabilities of given tokens, without keeping the logits.
//!
//! From hidden rows h `[N, H]` and the head W `[V, H]`: `log p(target) = z_target − log Σ exp z` with
//! `z = W h`. Logits exist for [`CHUNK`] rows at a time, in the forward pass and again in the backward
//! pass, where `dz = d (1[target] − p)`, `dh = dz W` and `dW = Σ dzᵀ h`. All of it in f32. The entropy
//! of each distribution comes along as a number without a gradient.

use candle_core::{Result, Tensor, bail};
use rayon::prelude::*;

use super::{read, tensor};
use crate::kernels::matmul::{Packed, Right, Store, View, matmul_joined, matmul_packed};
use crate::kernels::rows::{RowStats, log_softmax_row, log_softmax_row_backward};
use crate::kernels::threads::Threads;

/// Rows whose logits exist at the same time.
const CHUNK: usize = 96;

fn check(hidden: &Tensor, weight: &Tensor, targets: &[u32]) -> Result<(usize, usize)> {
    let (vocab_size, width) = weight.dims2()?;
    if hidden.dims() != [targets.len(), width] {
        bail!("{} rows of {width} expected, one for each target, got {:?}", targets.len(), hidden.shape());
    }
    if let Some(target) = targets.iter().find(|&&target| target as usize >= vocab_size) {
        bail!("token {target} is not in a vocabulary of {vocab_size}");
    }
    Ok((vocab_size, width))
}

/// Scores `targets[i]` as the token that follows row i of `hidden` `[N, H]` under the head `weight` `[V, H]`.
pub fn forward(hidden: &Tensor, weight: &Tensor, targets: &[u32]) -> Result<Vec<RowStats>> {
    let (vocab_size, width) = check(hidden, weight, targets)?;
    let threads = Threads::for_width(width.min(vocab_size));
    let mut stats = Vec::with_capacity(targets.len());
    read([hidden, weight], |[hidden, weight]| {
        let head = Packed::new(Right::Beside(&[View::new(weight, vocab_size, width, width).t()]));
        let mut logits = vec![0.0; CHUNK.min(targets.len()) * vocab_size];
        for (rows, targets) in hidden.chunks(CHUNK * width).zip(targets.chunks(CHUNK)) {
            let rows = View::rows_of(rows, width);
            matmul_packed(&mut logits, vocab_size, rows, &head, vocab_size, Store::Set, threads);
            let of_row = |(row, &target): (&[f32], &u32)| log_softmax_row(row, target as usize);
            match threads {
                Threads::One => stats.extend(logits.chunks_exact(vocab_size).zip(targets).map(of_row)),
                Threads::All => {
                    stats.par_extend(logits.par_chunks_exact(vocab_size).zip(targets).map(of_row))
                }
            }
        }
    })?;
    Ok(stats)
}

/// (dh `[N, H]`, dW `[V, H]` flat) from the gradients of the log-probabilities.
pub fn backward(
    hidden: &Tensor,
    weight: &Tensor,
    targets: &[u32],
    stats: &[RowStats],
    d_log_prob: &[f32],
) -> Result<(Tensor, Vec<f32>)> {
    let (vocab_size, width) = check(hidden, weight, targets)?;
    let threads = Threads::for_width(width.min(vocab_size));
    let mut d_hidden = vec![0.0; hidden.elem_count()];
    let mut d_weight = vec![0.0; weight.elem_count()];
    read([hidden, weight], |[hidden, weight]| {
        let weight = View::new(weight, vocab_size, width, width);
        let (head, head_rows) =
            (Packed::new(Right::Beside(&[weight.t()])), Packed::new(Right::Below(&[weight])));
        let mut logits = vec![0.0; CHUNK.min(targets.len()) * vocab_size];
        let mut start = 0;
        for (rows, d_rows) in hidden.chunks(CHUNK * width).zip(d_hidden.chunks_mut(CHUNK * width)) {
            let n_rows = d_rows.len() / width;
            let asked = start..start + n_rows;
            start = asked.end;
            let rows = View::rows_of(rows, width);
            let logits = &mut logits[..n_rows * vocab_size];
            matmul_packed(logits, vocab_size, rows, &head, vocab_size, Store::Set, threads);
            let of_row = |(logits, i): (&mut [f32], usize)| {
                log_softmax_row_backward(logits, targets[i] as usize, stats[i].log_sum_exp, d_log_prob[i]);
            };
            match threads {
                Threads::One => logits.chunks_exact_mut(vocab_size).zip(asked).for_each(of_row),
                Threads::All => logits.par_chunks_exact_mut(vocab_size).zip(asked).for_each(of_row),
            }
            let d_logits = View::rows_of(logits, vocab_size);
            matmul_joined(&mut d_weight, width, d_logits.t(), Right::Below(&[rows]), Store::Add, threads);
            matmul_packed(d_rows, width, d_logits, &head_rows, width, Store::Set, threads);
        }
    })?;
    Ok((tensor(d_hidden, hidden.shape())?, d_weight))
}

#[cfg(test)]
mod tests {
    use super::super::checks::{gradients_match, wave};
    use super::*;

    fn log_probs(hidden: &Tensor, weight: &Tensor, targets: &[u32]) -> Vec<f32> {
        forward(hidden, weight, targets).unwrap().iter().map(|stats| stats.log_prob).collect()
    }

    fn check_gradient(n_rows: usize) {
        let (h, w, d) = (wave(1, (n_rows, 3)), wave(2, (5, 3)), wave(3, n_rows));
        let targets: Vec<u32> = (0..n_rows as u32).map(|i| i * 3 % 5).collect();
        let stats = forward(&h, &w, &targets).unwrap();
        let (d_h, d_w) = backward(&h, &w, &targets, &stats, &d.to_vec1::<f32>().unwrap()).unwrap();
        let d_w = tensor(d_w, (5, 3)).unwrap();
        gradients_match([h, w], &d, |[h, w]| tensor(log_probs(h, w, &targets), n_rows), [d_h, d_w]);
    }

    #[test]
    fn gradients_match_finite_differences() {
        check_gradient(4);
    }

    #[test]
    fn gradients_match_finite_differences_across_chunks() {
        check_gradient(CHUNK + 3);
    }

    #[test]
    fn chunks_do_not_show() {
        // 250 rows take three chunks; each must be answered as if asked alone.
        let (h, w) = (wave(1, (250, 6)), wave(2, (9, 6)));
        let targets: Vec<u32> = (0..250).map(|i| (i * 5) % 9).collect();
        let all = forward(&h, &w, &targets).unwrap();
        for i in [0, 95, 96, 191, 192, 249] {
            let one = forward(&h.narrow(0, i, 1).unwrap(), &w, &targets[i..=i]).unwrap();
            assert_eq!(one, [all[i]]);
        }
    }

    #[test]
    fn nothing_asked_is_nothing_answered() {
        assert_eq!(forward(&wave(1, (0, 5)), &wave(2, (7, 5)), &[]).unwrap(), []);
    }

    #[test]
    fn targets_that_do_not_fit_are_refused() {
        let (h, w) = (wave(1, (1, 5)), wave(2, (7, 5)));
        assert!(forward(&h, &w, &[7]).unwrap_err().to_string().contains("token 7"));
        assert!(forward(&h, &w, &[1, 2]).is_err());
    }
}
