//! How much memory a pass takes, counted from what it keeps.

use crate::qwen2::Qwen2;
use crate::ops::cpu::log_prob::rows_at_once;

impl Qwen2 {
    /// Bytes that a recorded pass over `n_tokens` tokens with `n_asked` questions holds at its peak, in the backward
    /// pass, beside weights and gradients; the forward pass of another model of this shape over the same tokens, a
    /// reference, fits in between.
    pub fn pass_bytes(&self, n_tokens: usize, n_asked: usize) -> u64 {
        let (config, heads) = (&self.config, self.config.heads());
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let attention = heads.qkv_width() + heads.out_width() + heads.n_heads;
        // Residual stream and norms before and behind attention, gate and up, their product.
        let layer = n_tokens * (4 * hidden + attention + 3 * inner);
        let last =
            n_tokens * (2 * hidden + attention) + n_asked * (heads.out_width() + 2 * hidden + 3 * inner);
        let before = config.num_hidden_layers - 1;
        let kept =
            if self.recomputes { (before + 1) * n_tokens * hidden + layer } else { before * layer + last };
        let backward = n_tokens * (4 * hidden + attention + 3 * inner);
        let head = rows_at_once(config.vocab_size, hidden).min(n_asked) * config.vocab_size;
        let packed = if self.is_wide() { 0 } else { 2 * config.vocab_size * hidden };
        let values = kept + 2 * n_asked * hidden + backward.max(head + packed).max(layer + head);
        (values * size_of::<f32>()) as u64
    }
}
