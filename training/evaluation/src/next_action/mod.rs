//! Reward and metrics of a single next action, as in Shop-R1 (arXiv 2507.17842).
//!
//! The model sees a user's session so far and generates a completion with a rationale and an action. The
//! user's recorded action is the gold action.
//!
//! - [`ShopR1Reward::of`] scores an [`Attempt`] (completion, gold action, self-certainty) and returns a
//!   [`ShopR1Breakdown`], whose parts sum to the reward.
//! - [`Similarity`] is the similarity of two texts as a fraction of integers.
//! - [`score_steps`] compares completions with gold actions, one [`StepResult`] for each step.
//! - [`evaluate`] computes [`NextActionScores`] from predictions; [`baselines`] those of predictions without
//!   a model.
//! - [`overview`], [`by_type`] and [`confusion`] format scores as tables.
//!
//! ```
//! use webshop_agent::next_action::NextAction;
//! use webshop_evaluation::next_action::{Attempt, RewardConfig, ShopR1Reward};
//!
//! let gold = NextAction::Click { name: "24 inch (pack of 2)".into() };
//! let completion = r#"{"rationale": "Two will do.", "action": {"type": "click", "name": "24 inch (pack of 1)"}}"#;
//! let reward = ShopR1Reward::Hierarchical(RewardConfig::default());
//! let breakdown = reward.of(&Attempt { completion, gold: &gold, certainty: 0.0, n_prompt_words: 0 });
//! // Four of five words: 2·4 / (5 + 5) = .8 of the 1000 for the right name.
//! assert_eq!(
//!     breakdown.to_string(),
//!     "801 = 0.5 × 1 format + 0.3 × 1 type + 0.2 × 1 name + 1000 × 8/10 same name"
//! );
//! assert_eq!(breakdown.total(), 801.0);
//! ```
//!
//! Rewards are f64, because bf16 cannot represent 1000.8. Pages are not read here, except for their
//! instruction.

mod attempt;
mod baselines;
mod breakdown;
mod config;
mod exactness;
mod hierarchical;
mod repo_compat;
mod reward;
mod scores;
mod similarity;
mod step_result;
mod table;
#[cfg(test)]
mod tests;

pub use crate::next_action::attempt::Attempt;
pub use crate::next_action::baselines::{always, baselines, instruction_of, majority_type};
pub use crate::next_action::breakdown::{Part, ShopR1Breakdown};
pub use crate::next_action::config::{ClassWeights, DarsKind, RewardConfig, SimilarityKind};
pub use crate::next_action::exactness::{Exactness, is_exact};
pub use crate::next_action::repo_compat::RepoConfig;
pub use crate::next_action::reward::ShopR1Reward;
pub use crate::next_action::scores::{Estimate, NextActionScores, TypeScores, evaluate};
pub use crate::next_action::similarity::{SimCmp, Similarity};
pub use crate::next_action::step_result::{StepResult, score_steps, scores_of};
pub use crate::next_action::table::{ScoredRow, by_type, confusion, overview};
