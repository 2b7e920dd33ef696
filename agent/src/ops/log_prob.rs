//! Log-probabilities of chosen tokens at chosen positions, without keeping the logits.
//!
//! From hidden rows h [T, H] and the head W [V, H]: `log p(target) = z_target − log Σ exp z` with
//! `z = W h_position`. Logits exist for [`CHUNK`] positions at a time, in the forward pass and again
//! in the backward pass, where `dz = d (1[target] − p)`, `dh = dz W` and `dW = Σ dzᵀ h`. All of it in
//! f32. The entropy of each distribution comes along as a number without a gradient.

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::{floats, tensor, tensor_floats};
use crate::kernels::matmul::{Packed, Store, View, matmul, matmul_packed};
use crate::kernels::rows::{RowStats, add_rows, log_softmax_row, log_softmax_row_backward};

/// Positions whose logits exist at the same time.
const CHUNK: usize = 96;

/// What a model thinks of given tokens.
#[derive(Clone, Debug)]
pub struct TokenStats {
    /// log p(target) at each asked position, differentiable. // [N]
    pub log_prob: Tensor,
    /// Entropy in nats of the distribution at each asked position. // [N]
    pub entropy: Vec<f32>,
}

/// Scores `targets[i]` as the token that follows `positions[i]`, a row of `hidden` [T, H], under the
/// head `weight` [V, H]. Positions may repeat and come in any order.
pub fn log_probs(hidden: &Tensor, weight: &Tensor, positions: &[u32], targets: &[u32]) -> Result<TokenStats> {
    let (n_tokens, width) = hidden.dims2()?;
    let (vocab_size, head_width) = weight.dims2()?;
    if width != head_width {
        bail!("hidden rows of {width} do not fit a head of {head_width}");
    }
    if positions.len() != targets.len() {
        bail!("{} positions but {} targets", positions.len(), targets.len());
    }
    if let Some(position) = positions.iter().find(|&&p| p as usize >= n_tokens) {
        bail!("position {position} is past the last of {n_tokens} tokens");
    }
    if let Some(target) = targets.iter().find(|&&t| t as usize >= vocab_size) {
        bail!("token {target} is not in a vocabulary of {vocab_size}");
    }
    let asked = positions
        .iter()
        .zip(targets)
        .map(|(&p, &t)| (p as usize, t as usize))
        .collect();
    let stats = Arc::new(OnceLock::new());
    let log_prob = hidden.apply_op2(
        weight,
        LogProb {
            asked,
            stats: Arc::clone(&stats),
        },
    )?; // [N]
    let stats = stats.get().expect("the forward pass has just run");
    Ok(TokenStats {
        log_prob,
        entropy: stats.iter().map(|s| s.entropy).collect(),
    })
}

struct LogProb {
    /// (row of hidden, target token).
    asked: Vec<(usize, usize)>,
    /// Left by the forward pass for the caller and the backward pass.
    stats: Arc<OnceLock<Vec<RowStats>>>,
}

/// Copies the asked rows of `hidden` side by side.
fn gather(hidden: &[f32], width: usize, asked: &[(usize, usize)], rows: &mut Vec<f32>) {
    rows.clear();
    for &(position, _) in asked {
        rows.extend_from_slice(&hidden[position * width..(position + 1) * width]);
    }
}

impl CustomOp2 for LogProb {
    fn name(&self) -> &'static str {
        "log-prob"
    }

    fn cpu_fwd(
        &self,
        h: &CpuStorage,
        lh: &Layout,
        w: &CpuStorage,
        lw: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (hidden, weight) = (floats(h, lh)?, floats(w, lw)?);
        let (vocab_size, width) = lw.shape().dims2()?;
        let head = Packed::new(View::new(weight, vocab_size, width, width).t());
        let (mut rows, mut logits) = (Vec::new(), vec![0.0; CHUNK * vocab_size]);
        let mut stats = Vec::with_capacity(self.asked.len());
        for asked in self.asked.chunks(CHUNK) {
            gather(hidden, width, asked, &mut rows);
            matmul_packed(
                &mut logits,
                vocab_size,
                View::rows_of(&rows, width),
                &head,
                vocab_size,
                Store::Set,
            );
            let logits = logits.chunks_exact(vocab_size);
            stats.extend(
                logits
                    .zip(asked)
                    .map(|(row, &(_, target))| log_softmax_row(row, target)),
            );
        }
        let log_prob: Vec<f32> = stats.iter().map(|s| s.log_prob).collect();
        self.stats.get_or_init(|| stats);
        let n_asked = log_prob.len();
        Ok((CpuStorage::F32(log_prob), n_asked.into()))
    }

    fn bwd(
        &self,
        hidden: &Tensor,
        weight: &Tensor,
        _: &Tensor,
        d: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d_log_prob = d.to_vec1::<f32>()?;
        let stats = self
            .stats
            .get()
            .expect("candle runs the forward pass before the backward pass");
        let (n_tokens, width) = hidden.dims2()?;
        let vocab_size = weight.dim(0)?;
        let (h_storage, h_layout) = hidden.storage_and_layout();
        let (w_storage, w_layout) = weight.storage_and_layout();
        let hidden = tensor_floats(&h_storage, h_layout)?;
        let weight = View::new(tensor_floats(&w_storage, w_layout)?, vocab_size, width, width);
        let (head, head_rows) = (Packed::new(weight.t()), Packed::new(weight));
        let mut d_hidden = vec![0.0; n_tokens * width];
        let mut d_weight = vec![0.0; vocab_size * width];
        let (mut rows, mut logits) = (Vec::new(), vec![0.0; CHUNK * vocab_size]);
        let mut d_rows = vec![0.0; CHUNK * width];
        for (i, asked) in self.asked.chunks(CHUNK).enumerate() {
            gather(hidden, width, asked, &mut rows);
            let rows = View::rows_of(&rows, width);
            matmul_packed(&mut logits, vocab_size, rows, &head, vocab_size, Store::Set);
            for (j, (&(_, target), logits)) in
                asked.iter().zip(logits.chunks_exact_mut(vocab_size)).enumerate()
            {
                let n = i * CHUNK + j;
                log_softmax_row_backward(logits, target, stats[n].log_sum_exp, d_log_prob[n]);
            }
            let d_logits = View::new(&logits, asked.len(), vocab_size, vocab_size);
            matmul(&mut d_weight, width, d_logits.t(), rows, Store::Add);
            matmul_packed(&mut d_rows, width, d_logits, &head_rows, width, Store::Set);
            for (&(position, _), d_row) in asked.iter().zip(d_rows.chunks_exact(width)) {
                add_rows(d_row, &mut d_hidden[position * width..(position + 1) * width]);
            }
        }
        let d_hidden = tensor(d_hidden, (n_tokens, width))?;
        Ok((Some(d_hidden), Some(tensor(d_weight, (vocab_size, width))?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_gradients, variable, weighted_sum};
    use super::*;

    #[test]
    fn gradients_match_finite_differences() {
        let (h, w) = (variable(1, (4, 5)), variable(2, (7, 5)));
        check_gradients(&[&h, &w], || {
            weighted_sum(&log_probs(&h, &w, &[3, 0, 3, 2], &[6, 1, 0, 1])?.log_prob)
        });
    }

    #[test]
    fn chunks_do_not_show() {
        // 250 questions take three chunks; each must be answered as if asked alone.
        let (h, w) = (variable(1, (50, 6)), variable(2, (9, 6)));
        let positions: Vec<u32> = (0..250).map(|i| (i * 7) % 50).collect();
        let targets: Vec<u32> = (0..250).map(|i| (i * 5) % 9).collect();
        let all = log_probs(&h, &w, &positions, &targets).unwrap();
        let all_log_probs = all.log_prob.to_vec1::<f32>().unwrap();
        for i in [0, 95, 96, 191, 192, 249] {
            let one = log_probs(&h, &w, &positions[i..=i], &targets[i..=i]).unwrap();
            assert_eq!(one.log_prob.to_vec1::<f32>().unwrap(), [all_log_probs[i]]);
            assert_eq!(one.entropy, [all.entropy[i]]);
        }
    }

    #[test]
    fn nothing_asked_is_nothing_answered() {
        let stats = log_probs(&variable(1, (4, 5)), &variable(2, (7, 5)), &[], &[]).unwrap();
        assert_eq!(stats.log_prob.dims(), [0]);
        assert!(stats.entropy.is_empty());
    }

    #[test]
    fn questions_out_of_range_are_refused() {
        let (h, w) = (variable(1, (4, 5)), variable(2, (7, 5)));
        for (positions, targets) in [(&[4][..], &[0][..]), (&[0], &[7]), (&[0, 1], &[0])] {
            assert!(log_probs(&h, &w, positions, targets).is_err());
        }
    }
}
