//! The trait of prompt encoders.

use webshop_env::Page;
use webshop_lm::{Constraint, Context};

use crate::episode::PromptProvenance;
use crate::error::AgentError;
use crate::policies::policy::LaneView;
use crate::prompt_format::ParsedCompletion;

/// Encodes pages as prompt tokens and parses completion tokens, with a memory for each lane.
pub(super) trait TurnEncoder: std::fmt::Debug {
    /// The prompt format and its version.
    fn provenance(&self) -> PromptProvenance;

    /// The tokens that end a completion.
    fn stop_ids(&self) -> &[u32];

    /// Creates the memories of `n_lanes` lanes.
    fn begin_rollout(&mut self, n_lanes: usize);

    /// Clears the memory of a lane.
    fn begin_episode(&mut self, lane: usize);

    /// The prompt tokens that are new in this turn, and whether they continue the lane's context.
    fn encode(&mut self, view: &LaneView<'_>) -> Result<(Context, Vec<u32>), AgentError>;

    /// The available completions on `page`; `None` without constrained decoding.
    fn constraint(&self, page: &Page) -> Result<Option<Constraint>, AgentError>;

    /// The text and the meaning of a completion, which is added to the lane's memory.
    fn decode(&mut self, view: &LaneView<'_>, ids: &[u32]) -> (String, ParsedCompletion);
}

/// A completion without its stop token, if it has one.
pub(super) fn without_stop<'i>(ids: &'i [u32], stop_ids: &[u32]) -> &'i [u32] {
    match ids.split_last() {
        Some((last, rest)) if stop_ids.contains(last) => rest,
        _ => ids,
    }
}
