//! Limits and sampling of a language model's turns.

use webshop_lm::Sampler;

/// Limits and sampling of a language model's turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LmConfig {
    /// How tokens are sampled.
    pub sampler: Sampler,
    /// The maximum tokens of a context: of an episode, or of a turn in formats with one prompt per turn.
    pub max_context: usize,
    /// The maximum tokens of a completion.
    pub max_turn_tokens: usize,
    /// Whether only available actions can be sampled; completions are then cut only where the context is full. Log-probabilities are
    /// those of the constrained distribution, which training does not use: for rollouts and evaluation only.
    pub constrained: bool,
}
