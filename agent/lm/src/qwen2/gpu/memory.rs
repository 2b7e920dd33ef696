//! The device memory of a model on the GPU backend, computed from the sizes of its tensors.
//!
//! Counted are the tensors that live at the same time with the custom kernels, without the workspace of cuBLAS and the memory of
//! the driver.

use crate::device::compute::ComputeDtype;
use crate::ops::gpu::attention::QUERIES;
use crate::ops::gpu::log_prob::rows_at_once;
use crate::qwen2::Qwen2Config;
use crate::qwen2::gpu::decode::TOKENS_AT_ONCE;

const FLOAT: usize = size_of::<f32>();

/// Bytes that a model of some shape needs on a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceMemory<'c> {
    config: &'c Qwen2Config,
    /// Bytes of a weight or an activation.
    value: usize,
}

impl<'c> DeviceMemory<'c> {
    /// For models of this shape with weights and activations of `dtype`.
    pub fn new(config: &'c Qwen2Config, dtype: ComputeDtype) -> Self {
        Self { config, value: dtype.dtype().size_in_bytes() }
    }

    /// Of `n` weights or activations.
    pub fn values(&self, n: usize) -> u64 {
        (n * self.value) as u64
    }

    /// Of a token in a cache.
    pub fn cached_token(&self) -> usize {
        let heads = self.config.heads();
        2 * self.config.num_hidden_layers * heads.n_kv_heads * heads.head_dim * self.value
    }

    /// Of scores of one block of queries over `longest` keys, and the block's queries and results before and after they are
    /// regrouped by head.
    fn block(&self, longest: usize) -> usize {
        let heads = self.config.heads();
        let n_queries = QUERIES.min(longest);
        (n_queries * (heads.n_heads * longest + 3 * heads.out_width())) * self.value
    }

    /// At the peak of a recorded pass and its gradient over sequences of these lengths with `n_scored` scored positions,
    /// without weights and gradients of weights.
    pub fn pass(&self, lengths: &[usize], n_scored: usize) -> u64 {
        let (config, heads) = (self.config, self.config.heads());
        let (n_tokens, longest) = (lengths.iter().sum::<usize>(), lengths.iter().copied().max().unwrap_or(0));
        let (hidden, inner, vocab_size) = (config.hidden_size, config.intermediate_size, config.vocab_size);
        let (qkv, out, kv) = (heads.qkv_width(), heads.out_width(), heads.n_kv_heads * heads.head_dim);
        let per_token = |n_values: usize| n_tokens * n_values * self.value;

        // Of one layer: while it is computed, while its attention is, and what its gradient keeps of it.
        let computed = per_token(4 * hidden + 2 * qkv + 2 * out + 3 * inner);
        let attending = per_token(hidden + 2 * qkv + out + 2 * kv) + self.block(longest);
        let layer = computed.max(attending);
        let activations = per_token(3 * hidden + qkv + out + 3 * inner);
        // Gradients of the layer's output, of the gated product and its factors, and of the input of the attention.
        let d_attended = activations + per_token(3 * hidden + 3 * inner + out);
        let d_attention =
            d_attended + per_token(2 * kv + qkv) + 2 * self.block(longest) + 2 * longest * kv * FLOAT;
        let d_input = d_attended + per_token(2 * qkv + 2 * hidden);
        let d_layer = (per_token(hidden) + layer).max(d_attention).max(d_input);

        let kept = per_token(config.num_hidden_layers * hidden) + 2 * n_scored * hidden * self.value;
        // Gradients at the scored positions, and their sums by token in f32.
        let d_rows = 3 * n_scored * hidden * self.value + n_tokens * hidden * FLOAT;
        let n_rows = rows_at_once(vocab_size).min(n_scored);
        let head = n_rows * vocab_size * (FLOAT + self.value) + 2 * n_scored * hidden * self.value;
        (kept + layer.max(head).max(d_rows + d_layer)) as u64
    }

    /// While `n_tokens` new tokens of `n_lanes` lanes with at most `longest` tokens are appended to a cache, without the cache.
    pub fn decoding(&self, n_tokens: usize, n_lanes: usize, longest: usize) -> u64 {
        let (config, heads) = (self.config, self.config.heads());
        let at_once = n_tokens.min(TOKENS_AT_ONCE);
        let token =
            6 * config.hidden_size + heads.qkv_width() + 2 * heads.out_width() + 3 * config.intermediate_size;
        // The logits of prompts, and those of single tokens, whose memory stays.
        let logits = 2 * n_lanes * config.vocab_size * FLOAT;
        (at_once * token * self.value + self.block(longest) + logits) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_tensors() {
        let config = Qwen2Config { num_hidden_layers: 2, ..Qwen2Config::small(50) };
        let heads = config.heads();
        let (f32, bf16) =
            (DeviceMemory::new(&config, ComputeDtype::F32), DeviceMemory::new(&config, ComputeDtype::Bf16));
        assert_eq!((f32.values(3), bf16.values(3)), (12, 6));
        assert_eq!(f32.cached_token(), 2 * 2 * heads.n_kv_heads * heads.head_dim * 4);
        // With short sequences the peak is the gradient of a layer's input, where all of it is linear in the tokens.
        let grows = f32.pass(&[8; 20], 0) - f32.pass(&[8; 10], 0);
        assert_eq!(grows, f32.pass(&[8; 30], 0) - f32.pass(&[8; 20], 0));
        // What is kept of each further layer is its input.
        let deeper = Qwen2Config { num_hidden_layers: 7, ..config.clone() };
        let more =
            DeviceMemory::new(&deeper, ComputeDtype::Bf16).pass(&[30, 50], 9) - bf16.pass(&[30, 50], 9);
        assert_eq!(more, (5 * 80 * config.hidden_size * 2) as u64);
        // A long sequence needs its scores, which short ones of as many tokens do not.
        let scores = (heads.n_heads * 1000 * 1000 * 4) as u64;
        assert!(f32.pass(&[1000], 0) > f32.pass(&[10; 100], 0) + scores);
        // More new tokens than go through the layers at once need no more.
        assert_eq!(bf16.decoding(TOKENS_AT_ONCE, 4, 90), bf16.decoding(2 * TOKENS_AT_ONCE, 4, 90));
        assert_eq!(bf16.decoding(10, 9, 90) - bf16.decoding(10, 4, 90), 2 * 5 * 50 * 4);
    }
}
