//! Causal attention over packed sequences as a differentiable operation; the method is in
//! [`crate::kernels::attention`].

use std::sync::{Arc, OnceLock};

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::{floats, tensor, tensor_floats};
use crate::kernels::attention::{self, Heads};
use crate::kernels::rope::Rope;

/// Rows of q ‖ k ‖ v [T, (H+2K)·D], before rotation, of sequences laid end to end → [T, H·D].
///
/// `lengths` are the sequences' lengths, which sum to T.
pub fn attention(qkv: &Tensor, lengths: &[usize], heads: Heads, rope: &Arc<Rope>) -> Result<Tensor> {
    let lengths = lengths.to_vec();
    qkv.apply_op1(Attention {
        lengths,
        heads,
        rope: Arc::clone(rope),
        log_sums: OnceLock::new(),
    })
}

struct Attention {
    lengths: Vec<usize>,
    heads: Heads,
    rope: Arc<Rope>,
    /// Left by the forward pass for the backward pass. // [T, H]
    log_sums: OnceLock<Vec<f32>>,
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let n_tokens: usize = self.lengths.iter().sum();
        if layout.dims() != [n_tokens, self.heads.qkv_width()] {
            bail!(
                "q, k and v of {n_tokens} tokens expected, got {:?}",
                layout.shape()
            );
        }
        if let Some(length) = self
            .lengths
            .iter()
            .find(|&&length| length > self.rope.n_positions())
        {
            bail!(
                "a sequence of {length} tokens exceeds the model's {} positions",
                self.rope.n_positions()
            );
        }
        let mut out = vec![0.0; n_tokens * self.heads.out_width()];
        let mut log_sums = vec![0.0; n_tokens * self.heads.n_heads];
        let qkv = floats(qkv, layout)?;
        attention::forward(
            qkv,
            &self.lengths,
            self.heads,
            &self.rope,
            &mut out,
            &mut log_sums,
        );
        self.log_sums.get_or_init(|| log_sums);
        Ok((CpuStorage::F32(out), (n_tokens, self.heads.out_width()).into()))
    }

    fn bwd(&self, qkv: &Tensor, out: &Tensor, d_out: &Tensor) -> Result<Option<Tensor>> {
        let d_out = d_out.contiguous()?;
        let log_sums = self
            .log_sums
            .get()
            .expect("candle runs the forward pass before the backward pass");
        let mut d_qkv = vec![0.0; qkv.elem_count()];
        let (qkv_storage, qkv_layout) = qkv.storage_and_layout();
        let (out_storage, out_layout) = out.storage_and_layout();
        let (d_storage, d_layout) = d_out.storage_and_layout();
        attention::backward(
            tensor_floats(&qkv_storage, qkv_layout)?,
            &self.lengths,
            self.heads,
            &self.rope,
            (tensor_floats(&out_storage, out_layout)?, log_sums),
            tensor_floats(&d_storage, d_layout)?,
            &mut d_qkv,
        );
        Ok(Some(tensor(d_qkv, qkv.shape())?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_gradients, variable, weighted_sum};
    use super::*;

    fn attend(qkv: &Tensor, lengths: &[usize], heads: Heads) -> Result<Tensor> {
        let rope = Arc::new(Rope::new(heads.head_dim, 100.0, 64));
        attention(qkv, lengths, heads, &rope)
    }

    #[test]
    fn gradients_match_finite_differences() {
        for (n_heads, n_kv_heads) in [(2, 2), (4, 2), (3, 1)] {
            let heads = Heads {
                n_heads,
                n_kv_heads,
                head_dim: 4,
            };
            let qkv = variable(n_heads, (7, heads.qkv_width()));
            check_gradients(&[&qkv], || weighted_sum(&attend(&qkv, &[4, 1, 2], heads)?));
        }
    }

    #[test]
    fn gradients_match_finite_differences_across_blocks() {
        // 60 tokens need two blocks of queries.
        let heads = Heads {
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: 2,
        };
        let qkv = variable(1, (60, 6));
        check_gradients(&[&qkv], || weighted_sum(&attend(&qkv, &[60], heads)?));
    }

    #[test]
    fn the_first_token_sees_only_itself() {
        let heads = Heads {
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: 2,
        };
        let qkv = tensor(
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 1.0, 9.0, 8.0],
            (2, 6),
        )
        .unwrap();
        let out = attend(&qkv, &[1, 1], heads).unwrap();
        assert_eq!(out.to_vec2::<f32>().unwrap(), [[5.0, 6.0], [9.0, 8.0]]);
    }

    #[test]
    fn packing_is_the_same_as_apart() {
        let heads = Heads {
            n_heads: 4,
            n_kv_heads: 2,
            head_dim: 8,
        };
        let qkv = variable(5, (50 + 13, heads.qkv_width()));
        let packed = attend(&qkv, &[50, 13], heads).unwrap();
        let first = attend(&qkv.narrow(0, 0, 50).unwrap(), &[50], heads).unwrap();
        let second = attend(&qkv.narrow(0, 50, 13).unwrap(), &[13], heads).unwrap();
        let apart = Tensor::cat(&[first, second], 0).unwrap();
        assert_eq!(packed.to_vec2::<f32>().unwrap(), apart.to_vec2::<f32>().unwrap());
    }

    #[test]
    fn a_sequence_beyond_the_table_is_refused() {
        let heads = Heads {
            n_heads: 1,
            n_kv_heads: 1,
            head_dim: 2,
        };
        let message = attend(&variable(1, (65, 6)), &[65], heads)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("65 tokens") && message.contains("64 positions"),
            "{message}"
        );
    }
}
