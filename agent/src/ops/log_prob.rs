//! Log-probabilities of given tokens, without keeping the logits.
//!
//! From hidden rows h `[N, H]` and the head W `[V, H]`: `log p(target) = z_target − log Σ exp z` with
//! `z = W h`. Logits exist for [`CHUNK`] rows at a time (of a wide model [`WIDE_CHUNK`]), in the forward pass and again in the backward
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
/// The same in a wide model, where the head is not kept packed but packed again for every chunk, in parts: a
/// copy of 151,936 rows would take more memory than all activations.
const WIDE_CHUNK: usize = 192;

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
    let head = Head::new(vocab_size, width);
    let mut stats = Vec::with_capacity(targets.len());
    read([hidden, weight], |[hidden, weight]| {
        let weight = View::new(weight, vocab_size, width, width);
        let packed = head.packed(Right::Beside(&[weight.t()]));
        let mut logits = head.threads.zeros(head.chunk.min(targets.len()) * vocab_size);
        for (rows, targets) in hidden.chunks(head.chunk * width).zip(targets.chunks(head.chunk)) {
            let rows = View::rows_of(rows, width);
            head.multiply(&mut logits, rows, Right::Beside(&[weight.t()]), packed.as_ref());
            let of_row = |(row, &target): (&[f32], &u32)| log_softmax_row(row, target as usize);
            match head.threads {
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
    let head = Head::new(vocab_size, width);
    let mut d_hidden = vec![0.0; hidden.elem_count()];
    let mut d_weight = head.threads.zeros(weight.elem_count());
    read([hidden, weight], |[hidden, weight]| {
        let weight = View::new(weight, vocab_size, width, width);
        let transposed = head.packed(Right::Beside(&[weight.t()]));
        let packed = head.packed(Right::Below(&[weight]));
        let mut logits = head.threads.zeros(head.chunk.min(targets.len()) * vocab_size);
        let chunks = hidden.chunks(head.chunk * width).zip(d_hidden.chunks_mut(head.chunk * width));
        for (chunk_idx, (rows, d_rows)) in chunks.enumerate() {
            let rows = View::rows_of(rows, width);
            let logits = &mut logits[..d_rows.len() / width * vocab_size];
            head.multiply(logits, rows, Right::Beside(&[weight.t()]), transposed.as_ref());
            let of_row = |(i, logits): (usize, &mut [f32])| {
                let i = chunk_idx * head.chunk + i;
                log_softmax_row_backward(logits, targets[i] as usize, stats[i].log_sum_exp, d_log_prob[i]);
            };
            match head.threads {
                Threads::One => logits.chunks_exact_mut(vocab_size).enumerate().for_each(of_row),
                Threads::All => logits.par_chunks_exact_mut(vocab_size).enumerate().for_each(of_row),
            }
            let d_logits = View::rows_of(logits, vocab_size);
            let rows = Right::Below(&[rows]);
            matmul_joined(&mut d_weight, width, d_logits.t(), rows, Store::Add, head.threads);
            head.multiply(d_rows, d_logits, Right::Below(&[weight]), packed.as_ref());
        }
    })?;
    Ok((tensor(d_hidden, hidden.shape())?, d_weight))
}

/// How the head of a model is multiplied with.
struct Head {
    threads: Threads,
    chunk: usize,
}

impl Head {
    fn new(vocab_size: usize, width: usize) -> Self {
        let threads = Threads::for_width(width.min(vocab_size));
        Self { threads, chunk: if threads == Threads::One { CHUNK } else { WIDE_CHUNK } }
    }

    /// `weight` packed for all chunks, unless it is too large for that.
    fn packed(&self, weight: Right) -> Option<Packed> {
        (self.threads == Threads::One).then(|| Packed::new(weight))
    }

    /// `out` = `rows` times `weight`, from its `packed` form if there is one.
    fn multiply(&self, out: &mut [f32], rows: View, weight: Right, packed: Option<&Packed>) {
        let n_cols = weight.size().1;
        match packed {
            Some(packed) => matmul_packed(out, n_cols, rows, packed, n_cols, Store::Set, self.threads),
            None => matmul_joined(out, n_cols, rows, weight, Store::Set, self.threads),
        }
    }
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
