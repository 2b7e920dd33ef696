//! The settings of a generator, the turns requested of it, and their completions.

use serde::{Deserialize, Serialize};
use webshop_products::Seed;

use crate::generation::constraint::Constraint;
use crate::generation::sampler::{Sampler, SamplingCoordinates};
use crate::generation::self_certainty::Certainty;

/// Settings of all turns.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorConfig {
    /// Number of lanes.
    pub n_lanes: usize,
    /// Maximum number of tokens of a context; limited to the model's number of positions.
    pub capacity: usize,
    /// The sampling distribution.
    pub sampler: Sampler,
    /// The seed of all draws.
    pub seed: Seed,
    /// Tokens that end a turn, such as `<|im_end|>`.
    pub stop_ids: Vec<u32>,
    /// The self-certainty to record for each token; `None` records none.
    pub certainty: Option<Certainty>,
}

/// The context that a prompt is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// All earlier prompts and completions of the lane.
    Continue,
    /// The prompt is the whole context.
    Fresh,
}

/// The next turn of a lane.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the lane, less than [`GeneratorConfig::n_lanes`].
    pub lane: usize,
    /// The context that the prompt is appended to.
    pub context: Context,
    /// Tokens appended before sampling; may be empty if the context is not.
    pub prompt_ids: Vec<u32>,
    /// Coordinates of the turn's first draw; `token` counts up from there.
    pub coordinates: SamplingCoordinates,
    /// The admissible completions; `None` admits all.
    pub constraint: Option<Constraint>,
    /// Maximum number of tokens of the completion.
    pub max_new_tokens: usize,
}

/// The sampled tokens of one turn. All lists have the same length, except an empty `certainty`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The tokens, including the stop token.
    pub ids: Vec<u32>,
    /// Log-probability of each token under the sampled distribution.
    pub log_probs: Vec<f32>,
    /// Entropy of that distribution in nats.
    pub entropy: Vec<f32>,
    /// Self-certainty of the model's distribution before temperature, if recorded; 0 for a forced token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainty: Vec<f64>,
    /// Why the turn ended.
    pub stop: StopReason,
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A stop token was sampled, or the constraint is complete.
    EndOfTurn,
    /// `max_new_tokens` were sampled.
    Length,
    /// The context is full. If the completion is empty, the prompt left no room for a token and was not
    /// appended.
    ContextFull,
}
