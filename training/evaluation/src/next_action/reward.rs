//! Chooses between the two reward functions.

use webshop_agent::next_action::NextActionCompletion;
use webshop_lm::{Certainty, CertaintyKind};

use crate::next_action::attempt::{Attempt, ParsedAttempt};
use crate::next_action::breakdown::ShopR1Breakdown;
use crate::next_action::config::{DarsKind, RewardConfig};
use crate::next_action::hierarchical;
use crate::next_action::repo_compat::{self, RepoConfig};

/// A reward function of an [`Attempt`].
#[derive(Clone, Debug, PartialEq)]
pub enum ShopR1Reward {
    /// The hierarchical reward of the paper.
    Hierarchical(RewardConfig),
    /// The reward of a public re-implementation, for comparison with its numbers.
    RepoCompat(RepoConfig),
}

impl ShopR1Reward {
    /// The measure of self-certainty to record for each generated token.
    pub fn certainty(&self) -> Certainty {
        match self {
            Self::Hierarchical(rule) => rule.certainty(),
            Self::RepoCompat(_) => {
                Certainty { kind: CertaintyKind::Normalized, ..RewardConfig::default().certainty() }
            }
        }
    }

    /// The reward of an attempt, part by part.
    pub fn of(&self, attempt: &Attempt<'_>) -> ShopR1Breakdown {
        match self {
            Self::Hierarchical(rule) => {
                let factor = match rule.dars_kind {
                    DarsKind::Constant => 1.0,
                    DarsKind::RepoCompat => repo_compat::difficulty_factor(&RepoConfig::default(), attempt),
                };
                hierarchical::score(rule, factor, parse(attempt.completion, rule), attempt)
            }
            Self::RepoCompat(config) => repo_compat::score(config, attempt),
        }
    }
}

fn parse(completion: &str, rule: &RewardConfig) -> ParsedAttempt {
    match NextActionCompletion::read(completion, rule.format_mode) {
        Ok(parsed) => ParsedAttempt { problem: None, action: Some(parsed.action) },
        Err(problem) => ParsedAttempt { problem: Some(problem), action: None },
    }
}
