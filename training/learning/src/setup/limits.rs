//! Model shape, generation options and rollout limits of a configuration.

use webshop_agent::{AgentError, Layout, LmConfig, RolloutConfig};
use webshop_lm::{Qwen2Config, Sampler};

use crate::config::{Config, ModelConfig};

/// Episodes in parallel on the CPU; a wider batch keeps matrix products busy.
pub(crate) const LANES: usize = 128;

/// Number of episodes in parallel whose contexts of `max_context` tokens fit into `bytes`, from 1 to
/// [`LANES`].
pub(crate) fn lanes_within(bytes: usize, bytes_per_token: usize, max_context: usize) -> usize {
    (bytes / (bytes_per_token * max_context)).clamp(1, LANES)
}

/// The model shape as a checkpoint states it.
pub fn qwen2_config(model: &ModelConfig, vocab_size: usize, max_context: usize) -> Qwen2Config {
    Qwen2Config {
        hidden_size: model.hidden_size,
        intermediate_size: model.intermediate_size,
        num_hidden_layers: model.layers,
        num_attention_heads: model.heads,
        num_key_value_heads: Some(model.kv_heads),
        head_dim: Some(model.head_dim),
        max_position_embeddings: max_context,
        ..Qwen2Config::small(vocab_size)
    }
}

/// Sampling and limits of the language model, at this temperature and nucleus.
pub(crate) fn lm_config(config: &Config, temperature: f64, top_p: f64) -> Result<LmConfig, AgentError> {
    Ok(LmConfig {
        sampler: Sampler::new(temperature as f32, top_p as f32)?,
        max_context: config.prompt.max_context,
        max_turn_tokens: config.prompt.max_turn_tokens,
        constrained: false,
    })
}

/// The layout of contexts; `None` in a chat format.
pub(crate) fn layout(config: &Config) -> Option<Layout> {
    config.prompt.format.layout(config.prompt.compact())
}

/// Limits of rollouts.
pub(crate) fn rollout_config(config: &Config) -> RolloutConfig {
    RolloutConfig { max_steps: config.run.max_steps, lanes: LANES }
}
