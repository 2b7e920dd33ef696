//! Causal attention over packed sequences; the method is in [`webshop_kernels::cpu::attention`].

use candle_core::{Result, Tensor, bail};

use crate::ops::cpu::{read, tensor};
use webshop_kernels::cpu::attention;
use webshop_kernels::cpu::attention::{Heads, Sequences};
use webshop_kernels::cpu::rope::Rope;

/// Output of a forward pass, and the values that the backward pass needs.
#[derive(Clone, Debug)]
pub(crate) struct Attended {
    /// The attention output. `[T, H·D]`
    pub(crate) out: Tensor,
    /// Logarithms of the softmax sums. `[T, H]`
    log_sums: Tensor,
}

/// Attention of rows of q ‖ k ‖ v `[T, (H+2K)·D]`, before rotation, of `sequences`.
pub(crate) fn forward(qkv: &Tensor, sequences: Sequences<'_>, heads: Heads, rope: &Rope) -> Result<Attended> {
    let n_tokens: usize = sequences.lengths.iter().sum();
    if qkv.dims() != [n_tokens, heads.qkv_width()] {
        bail!("q, k and v of {n_tokens} tokens expected, got {:?}", qkv.shape());
    }
    let reaches = (0..sequences.lengths.len()).map(|sequence| sequences.reach(sequence));
    if let Some(length) = reaches.max().filter(|&length| length > rope.n_positions()) {
        bail!("a sequence of {length} tokens exceeds the model's {} positions", rope.n_positions());
    }
    let mut out = vec![0.0; n_tokens * heads.out_width()];
    let mut log_sums = vec![0.0; n_tokens * heads.n_heads];
    read([qkv], |[qkv]| attention::forward(qkv, sequences, heads, rope, &mut out, &mut log_sums))?;
    Ok(Attended {
        out: tensor(out, (n_tokens, heads.out_width()))?,
        log_sums: tensor(log_sums, (n_tokens, heads.n_heads))?,
    })
}

/// Gradient with respect to q ‖ k ‖ v from d_out `[T, H·D]`.
pub(crate) fn backward(
    qkv: &Tensor,
    sequences: Sequences<'_>,
    heads: Heads,
    rope: &Rope,
    attended: &Attended,
    d_out: &Tensor,
) -> Result<Tensor> {
    let mut d_qkv = vec![0.0; qkv.elem_count()];
    read([qkv, &attended.out, &attended.log_sums, d_out], |[qkv, out, log_sums, d_out]| {
        attention::backward(qkv, sequences, heads, rope, (out, log_sums), d_out, &mut d_qkv);
    })?;
    tensor(d_qkv, qkv.shape())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::checks::{gradients_match, wave};

    fn rope(heads: Heads) -> Rope {
        Rope::new(heads.head_dim, 100.0, 64)
    }

    fn attend(qkv: &Tensor, lengths: &[usize], heads: Heads) -> Result<Tensor> {
        attend_to_all(qkv, Sequences { lengths, prefix_of: &[] }, heads)
    }

    fn attend_to_all(qkv: &Tensor, sequences: Sequences<'_>, heads: Heads) -> Result<Tensor> {
        Ok(forward(qkv, sequences, heads, &rope(heads))?.out)
    }

    fn check_gradient(lengths: &[usize], prefix_of: &[Option<usize>], heads: Heads) {
        let sequences = Sequences { lengths, prefix_of };
        let n_tokens = lengths.iter().sum::<usize>();
        let qkv = wave(heads.n_heads, (n_tokens, heads.qkv_width()));
        let d_out = wave(7, (n_tokens, heads.out_width()));
        let attended = forward(&qkv, sequences, heads, &rope(heads)).unwrap();
        let d_qkv = backward(&qkv, sequences, heads, &rope(heads), &attended, &d_out).unwrap();
        gradients_match([qkv], &d_out, |[qkv]| attend_to_all(qkv, sequences, heads), [d_qkv]);
    }

    #[test]
    fn gradients_match_finite_differences() {
        for (n_heads, n_kv_heads) in [(2, 2), (4, 2), (3, 1)] {
            let heads = Heads { n_heads, n_kv_heads, head_dim: 4 };
            check_gradient(&[4, 1, 2], &[], heads);
            // Two sequences that continue the first one, with an independent sequence between them.
            check_gradient(&[4, 2, 1, 3], &[None, Some(0), None, Some(0)], heads);
        }
    }

    #[test]
    fn gradients_match_finite_differences_across_blocks() {
        // 60 tokens need two blocks of queries.
        let heads = Heads { n_heads: 1, n_kv_heads: 1, head_dim: 2 };
        check_gradient(&[60], &[], heads);
        check_gradient(&[50, 9, 2], &[None, Some(0), Some(0)], heads);
    }

    #[test]
    fn the_first_token_sees_only_itself() {
        let heads = Heads { n_heads: 1, n_kv_heads: 1, head_dim: 2 };
        let qkv = tensor(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 1.0, 9.0, 8.0], (2, 6)).unwrap();
        let out = attend(&qkv, &[1, 1], heads).unwrap();
        assert_eq!(out.to_vec2::<f32>().unwrap(), [[5.0, 6.0], [9.0, 8.0]]);
    }

    #[test]
    fn packed_sequences_equal_separate_ones() {
        let heads = Heads { n_heads: 4, n_kv_heads: 2, head_dim: 8 };
        let qkv = wave(5, (50 + 13, heads.qkv_width()));
        let packed = attend(&qkv, &[50, 13], heads).unwrap();
        let first = attend(&qkv.narrow(0, 0, 50).unwrap(), &[50], heads).unwrap();
        let second = attend(&qkv.narrow(0, 50, 13).unwrap(), &[13], heads).unwrap();
        let apart = Tensor::cat(&[first, second], 0).unwrap();
        assert_eq!(packed.to_vec2::<f32>().unwrap(), apart.to_vec2::<f32>().unwrap());
    }

    #[test]
    fn a_shared_prefix_equals_a_copy_of_it() {
        for heads in [(4, 2, 8), (8, 2, 64)].map(|(n_heads, n_kv_heads, head_dim)| Heads {
            n_heads,
            n_kv_heads,
            head_dim,
        }) {
            let (prefix, continuations) = (30, [20, 1, 9]);
            let qkv = wave(5, (prefix + 30, heads.qkv_width()));
            let lengths = [prefix, continuations[0], continuations[1], continuations[2]];
            let sequences = Sequences { lengths: &lengths, prefix_of: &[None, Some(0), Some(0), Some(0)] };
            let together = attend_to_all(&qkv, sequences, heads).unwrap();
            let before = qkv.narrow(0, 0, prefix).unwrap();
            let mut start = prefix;
            for len in continuations {
                let own = qkv.narrow(0, start, len).unwrap();
                let whole = Tensor::cat(&[&before, &own], 0).unwrap();
                let apart = attend(&whole, &[prefix + len], heads).unwrap();
                let expected = apart.narrow(0, prefix, len).unwrap().to_vec2::<f32>().unwrap();
                let found = together.narrow(0, start, len).unwrap().to_vec2::<f32>().unwrap();
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    assert!((found - expected).abs() < 1e-5, "{found} for {expected}");
                }
                start += len;
            }
        }
    }

    #[test]
    fn a_sequence_beyond_the_table_is_refused() {
        let heads = Heads { n_heads: 1, n_kv_heads: 1, head_dim: 2 };
        let message = attend(&wave(1, (65, 6)), &[65], heads).unwrap_err().to_string();
        assert!(message.contains("65 tokens") && message.contains("64 positions"), "{message}");
        let continued = Sequences { lengths: &[60, 5], prefix_of: &[None, Some(0)] };
        let message = attend_to_all(&wave(1, (65, 6)), continued, heads).unwrap_err().to_string();
        assert!(message.contains("65 tokens") && message.contains("64 positions"), "{message}");
    }
}
