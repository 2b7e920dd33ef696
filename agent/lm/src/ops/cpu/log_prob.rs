//! Log-probabilities of given tokens, without keeping the logits.
//!
//! From hidden rows h `[N, H]` and the head W `[V, H]`: `log p(target) = z_target − log Σ exp z` with
//! `z = W h / T` within the nucleus of the [`Sampler`]. Logits exist for [`CHUNK`] rows at a time
//! ([`WIDE_CHUNK`] in a wide model), in the forward pass and again in the backward pass, where
//! `dz = d / T (1[target] − p)`, `dh = dz W` and `dW = Σ dzᵀ h`. All values are f32. The entropy of each
//! distribution is returned too, without a gradient.

use candle_core::{Result, Tensor, bail};
use rayon::prelude::*;

use crate::generation::sampler::Sampler;
use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::matmul::{Packed, Right, matmul_joined, matmul_packed};
use webshop_kernels::cpu::matmul::{Store, View};
use webshop_kernels::cpu::rows::{RowStats, log_softmax_row, log_softmax_row_backward};
use webshop_kernels::cpu::threads::Threads;

/// Number of rows whose logits exist at the same time.
const CHUNK: usize = 96;
/// The same for a wide model. There the head is not kept packed but is packed in parts for every chunk: a
/// packed copy of 151,936 rows would take more memory than all activations.
const WIDE_CHUNK: usize = 192;

/// Log-probabilities and statistics of the targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    /// One for each target.
    pub(crate) rows: Vec<RowStats>,
    /// Whether each target is outside the nucleus and added to it.
    pub(crate) is_outside: Vec<bool>,
}

/// Number of rows whose logits exist at the same time, for a head `[vocab_size, width]`.
pub(crate) fn rows_at_once(vocab_size: usize, width: usize) -> usize {
    Head::new(vocab_size, width).chunk
}

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

/// Scores `targets[i]` as the token that follows row i of `hidden` `[N, H]` under the head `weight` `[V, H]`
/// and the distribution of `sampler`, whose temperature is not 0.
pub(crate) fn forward(hidden: &Tensor, weight: &Tensor, targets: &[u32], sampler: Sampler) -> Result<Scores> {
    let (vocab_size, width) = check(hidden, weight, targets)?;
    let head = Head::new(vocab_size, width);
    let mut scores = (Vec::with_capacity(targets.len()), Vec::with_capacity(targets.len()));
    read([hidden, weight], |[hidden, weight]| {
        let weight = View::new(weight, vocab_size, width, width);
        let packed = head.packed(Right::Beside(&[weight.t()]));
        let mut logits = head.threads.zeros(head.chunk.min(targets.len()) * vocab_size);
        for (rows, targets) in hidden.chunks(head.chunk * width).zip(targets.chunks(head.chunk)) {
            let rows = View::rows_of(rows, width);
            head.multiply(&mut logits, rows, Right::Beside(&[weight.t()]), packed.as_ref());
            let of_row = |(row, &target): (&mut [f32], &u32)| {
                let is_outside = sampler.shape(row, target as usize);
                (log_softmax_row(row, target as usize), is_outside)
            };
            match head.threads {
                Threads::One => scores.extend(logits.chunks_exact_mut(vocab_size).zip(targets).map(of_row)),
                Threads::All => {
                    scores.par_extend(logits.par_chunks_exact_mut(vocab_size).zip(targets).map(of_row))
                }
            }
        }
    })?;
    Ok(Scores { rows: scores.0, is_outside: scores.1 })
}

/// Returns dh `[N, H]` for the gradients of the log-probabilities; adds dW to `d_weight` `[V, H]` if given.
pub(crate) fn backward(
    hidden: &Tensor,
    weight: &Tensor,
    targets: &[u32],
    (stats, sampler): (&[RowStats], Sampler),
    d_log_prob: &[f32],
    mut d_weight: Option<&mut [f32]>,
) -> Result<Tensor> {
    let (vocab_size, width) = check(hidden, weight, targets)?;
    let head = Head::new(vocab_size, width);
    let mut d_hidden = vec![0.0; hidden.elem_count()];
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
                let (target, d_relative) = (targets[i] as usize, d_log_prob[i] / sampler.temperature());
                sampler.shape(logits, target);
                log_softmax_row_backward(logits, target, stats[i].log_sum_exp, d_relative);
            };
            match head.threads {
                Threads::One => logits.chunks_exact_mut(vocab_size).enumerate().for_each(of_row),
                Threads::All => logits.par_chunks_exact_mut(vocab_size).enumerate().for_each(of_row),
            }
            let d_logits = View::rows_of(logits, vocab_size);
            if let Some(d_weight) = d_weight.as_deref_mut() {
                let rows = Right::Below(&[rows]);
                matmul_joined(d_weight, width, d_logits.t(), rows, Store::Add, head.threads);
            }
            head.multiply(d_rows, d_logits, Right::Below(&[weight]), packed.as_ref());
        }
    })?;
    tensor(d_hidden, hidden.shape())
}

/// The product of rows with the head of a model.
struct Head {
    threads: Threads,
    chunk: usize,
}

impl Head {
    fn new(vocab_size: usize, width: usize) -> Self {
        let threads = Threads::for_width(width.min(vocab_size));
        Self { threads, chunk: if threads == Threads::One { CHUNK } else { WIDE_CHUNK } }
    }

    /// The packed `weight`, reused for all chunks; `None` if it is too large.
    fn packed(&self, weight: Right) -> Option<Packed> {
        (self.threads == Threads::One).then(|| Packed::new(weight))
    }

    /// Writes `rows` times `weight` to `out`, using `packed` if present.
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
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    fn log_probs(hidden: &Tensor, weight: &Tensor, targets: &[u32], sampler: Sampler) -> Vec<f32> {
        let scores = forward(hidden, weight, targets, sampler).unwrap();
        scores.rows.iter().map(|row| row.log_prob).collect()
    }

    /// Returns how many targets are outside their nuclei.
    fn check_gradient(n_rows: usize, sampler: Sampler) -> usize {
        let (h, w, d) = (wave(1, (n_rows, 3)), wave(2, (5, 3)), wave(3, n_rows));
        let targets: Vec<u32> = (0..n_rows as u32).map(|i| i * 3 % 5).collect();
        let scores = forward(&h, &w, &targets, sampler).unwrap();
        let (scored, d_values) = ((&scores.rows[..], sampler), d.to_vec1::<f32>().unwrap());
        let mut d_w = vec![0.0; 15];
        let d_h = backward(&h, &w, &targets, scored, &d_values, Some(&mut d_w)).unwrap();
        let alone = backward(&h, &w, &targets, scored, &d_values, None).unwrap();
        assert_eq!(alone.to_vec2::<f32>().unwrap(), d_h.to_vec2::<f32>().unwrap());
        let d_w = tensor(d_w, (5, 3)).unwrap();
        let at = |[h, w]: &[Tensor; 2]| tensor(log_probs(h, w, &targets, sampler), n_rows);
        gradients_match([h, w], &d, at, [d_h, d_w]);
        scores.is_outside.iter().filter(|outside| **outside).count()
    }

    #[test]
    fn gradients_match_finite_differences() {
        assert_eq!(check_gradient(4, Sampler::UNTEMPERED), 0);
    }

    #[test]
    fn gradients_match_finite_differences_across_chunks() {
        check_gradient(CHUNK + 3, Sampler::UNTEMPERED);
    }

    #[test]
    fn gradients_match_finite_differences_under_the_sampled_distribution() {
        assert_eq!(check_gradient(4, Sampler::new(0.7, 1.0).unwrap()), 0);
        // Some of the four targets are in their nucleus, some are not.
        assert_eq!(check_gradient(4, Sampler::new(0.9, 0.6).unwrap()), 2);
    }

    #[test]
    fn the_chunk_size_does_not_change_results() {
        // 250 rows take three chunks; each row must equal the same row computed alone.
        let (h, w) = (wave(1, (250, 6)), wave(2, (9, 6)));
        let targets: Vec<u32> = (0..250).map(|i| (i * 5) % 9).collect();
        for sampler in [Sampler::UNTEMPERED, Sampler::new(0.8, 0.9).unwrap()] {
            let all = forward(&h, &w, &targets, sampler).unwrap();
            for i in [0, 95, 96, 191, 192, 249] {
                let one = forward(&h.narrow(0, i, 1).unwrap(), &w, &targets[i..=i], sampler).unwrap();
                assert_eq!((one.rows[0], one.is_outside[0]), (all.rows[i], all.is_outside[i]));
            }
        }
    }

    #[test]
    fn no_targets_give_no_scores() {
        let scores = forward(&wave(1, (0, 5)), &wave(2, (7, 5)), &[], Sampler::UNTEMPERED).unwrap();
        assert_eq!(scores, Scores::default());
    }

    #[test]
    fn targets_that_do_not_fit_are_refused() {
        let (h, w) = (wave(1, (1, 5)), wave(2, (7, 5)));
        assert!(forward(&h, &w, &[7], Sampler::UNTEMPERED).unwrap_err().to_string().contains("token 7"));
        assert!(forward(&h, &w, &[1, 2], Sampler::UNTEMPERED).is_err());
    }
}
