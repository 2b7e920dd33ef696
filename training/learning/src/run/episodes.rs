//! Reads the held-out episodes that a run has recorded.

use std::path::Path;

use serde::Deserialize;
use webshop_agent::{EpisodeCoordinates, FailureKind};
use webshop_env::RewardBreakdown;
use webshop_products::{GoalId, read_json_lines};

use crate::error::Result;

/// How a held-out episode ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpisodeOutcome {
    /// The number of the shop in the episode's coordinates; 0 for the configured catalog.
    pub shop: u64,
    /// The goal in that shop.
    pub goal: GoalId,
    /// Reward of the shop, 0 to 1.
    pub reward: f64,
    /// Kind of failure; `None` for a success.
    pub failure: Option<FailureKind>,
}

/// The fields of a recorded episode that are read.
#[derive(Deserialize)]
struct EpisodeLine {
    coordinates: EpisodeCoordinates,
    reward: f64,
    breakdown: Option<RewardBreakdown>,
}

/// The episodes of a file, in its order.
pub(crate) fn read_episodes(path: &Path) -> Result<Vec<EpisodeOutcome>> {
    let episode = |episode: EpisodeLine| {
        let failure = FailureKind::of_purchase(episode.breakdown.as_ref());
        let EpisodeCoordinates { shop, goal, .. } = episode.coordinates;
        EpisodeOutcome { shop, goal, reward: episode.reward, failure }
    };
    Ok(read_json_lines(path)?.into_iter().map(episode).collect())
}
