//! What a trip is worth to the learner.
//!
//! The shop's reward in three readings, and none at all. Partial credit is only ever for what was bought, never for clicks. What malformed
//! answers cost is counted apart ([`malformed_turns`]), so that no score is mixed with it.

use serde::{Deserialize, Serialize};
use webshop_agent::Episode;

/// A reading of the shop's reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskReward {
    /// The shop's reward as it is, 0 to 1: the share of what was wanted, times the type.
    Score,
    /// 1 if the shop's reward is exactly 1, else 0.
    Success,
    /// The mean of both: partial credit, and a step for the whole.
    Blend,
    /// 0 whatever was bought: what a learner does when nothing is to be learned.
    Zero,
}

impl TaskReward {
    /// The worth of `episode`, 0 to 1.
    pub fn of(self, episode: &Episode) -> f64 {
        match self {
            Self::Score => episode.reward,
            Self::Success => f64::from(u8::from(episode.is_success())),
            Self::Zero => 0.0,
            Self::Blend => 0.5 * (Self::Score.of(episode) + Self::Success.of(episode)),
        }
    }
}

/// Answers of `episode` that did not have the form which its dialect asks for.
pub fn malformed_turns(episode: &Episode) -> usize {
    episode.turns.iter().filter(|turn| !turn.is_well_formed).count()
}
