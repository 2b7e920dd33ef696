//! The reward of an episode in training.
//!
//! Partial credit is given for purchases only, never for clicks. The penalty for malformed completions is
//! counted separately ([`malformed_turns`]), so that no score contains it.

use serde::{Deserialize, Serialize};
use webshop_agent::Episode;
use webshop_agent::EpisodeExt;

/// How the reward of training follows from the shop's reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskReward {
    /// The shop's reward, 0 to 1.
    Score,
    /// 1 if the shop's reward is exactly 1, else 0.
    Success,
    /// The mean of both.
    Blend,
    /// Always 0, to see what a loss does without a signal.
    Zero,
}

impl TaskReward {
    /// The reward of `episode`, 0 to 1.
    pub(crate) fn of(self, episode: &Episode) -> f64 {
        match self {
            Self::Score => episode.reward,
            Self::Success => f64::from(u8::from(episode.is_success())),
            Self::Zero => 0.0,
            Self::Blend => 0.5 * (Self::Score.of(episode) + Self::Success.of(episode)),
        }
    }
}

/// Number of completions of `episode` that do not have the form of the prompt format.
pub(crate) fn malformed_turns(episode: &Episode) -> usize {
    episode.turns.iter().filter(|turn| !turn.agent.is_well_formed).count()
}
