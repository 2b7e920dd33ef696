//! The memory of a training pass, computed from the sizes of its activations.

use crate::ops::cpu::log_prob::rows_at_once;
use crate::qwen2::Qwen2;

impl Qwen2 {
    /// Peak memory in bytes of a recorded pass over `n_tokens` tokens with `n_scored` scored positions,
    /// without weights and gradients. The peak is in the backward pass; a forward pass of a reference model
    /// of this shape fits into it.
    pub fn pass_bytes(&self, n_tokens: usize, n_scored: usize) -> u64 {
        let (config, heads) = (&self.config, self.config.heads());
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let attention = heads.qkv_width() + heads.out_width() + heads.n_heads;
        // Residual stream and norms before and after attention, gate and up, their product.
        let layer = n_tokens * (4 * hidden + attention + 3 * inner);
        let last =
            n_tokens * (2 * hidden + attention) + n_scored * (heads.out_width() + 2 * hidden + 3 * inner);
        let before = config.num_hidden_layers - 1;
        let kept =
            if self.recomputes { (before + 1) * n_tokens * hidden + layer } else { before * layer + last };
        let backward = n_tokens * (4 * hidden + attention + 3 * inner);
        let head = rows_at_once(config.vocab_size, hidden).min(n_scored) * config.vocab_size;
        let packed = if self.is_wide() { 0 } else { 2 * config.vocab_size * hidden };
        let values = kept + 2 * n_scored * hidden + backward.max(head + packed).max(layer + head);
        (values * size_of::<f32>()) as u64
    }
}
