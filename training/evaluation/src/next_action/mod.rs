//! What a single next action is worth, as Shop-R1 has it, and how often it is right (arXiv 2507.17842).
//!
//! A model is shown a customer's visit so far and answers with a rationale and an action; what the customer really did is
//! the gold action. [`ShopR1Reward::of`] judges an [`Attempt`] (completion, gold action, certainty of the rationale) and
//! gives a [`ShopR1Breakdown`], whose parts sum to the reward and which prints its formula. [`webshop_lm::generation::self_certainty::Certainty`] tells how sure a
//! model was of a token, [`Similarity`] how alike two texts are. [`judge`] reads a model's answers at recorded steps,
//! [`evaluate`] counts what a set of answers amounts to, [`baselines`] what needs no model, and [`overview`] sets them side by
//! side.
//!
//! ```
//! use webshop_agent::next_action::NextAction;
//! use crate::next_action::{Attempt, RewardConfig, ShopR1Reward};
//!
//! let gold = NextAction::Click { name: "24 inch (pack of 2)".into() };
//! let completion = r#"{"rationale": "Two will do.", "action": {"type": "click", "name": "24 inch (pack of 1)"}}"#;
//! let reward = ShopR1Reward::Hierarchical(RewardConfig::default());
//! let worth = reward.of(&Attempt { completion, gold: &gold, certainty: 0.0, n_prompt_words: 0 });
//! // Four of five words: 2·4 / (5 + 5) = .8 of the 1000 for the right name.
//! assert_eq!(worth.to_string(), "801 = 0.5 × 1 format + 0.3 × 1 type + 0.2 × 1 name + 1000 × 8/10 same name");
//! assert_eq!(worth.total(), 801.0);
//! ```
//!
//! All of it is f64: bf16 has no 1000.8. It reads no pages, keeps no data and trains nothing.

pub mod baselines;
pub mod breakdown;
pub mod config;
pub mod constants;
pub mod evaluation;
pub mod exactness;
pub mod repo_compat;
pub mod reward;
pub mod similarity;
pub mod table;
#[cfg(test)]
mod tests;
pub mod verdict;


pub use crate::next_action::baselines::{baselines, instruction_of};
pub use crate::next_action::breakdown::{Part, ShopR1Breakdown};
pub use crate::next_action::config::{ClassWeights, DarsKind, RewardConfig, SimCmp, SimilarityKind};
pub use crate::next_action::constants::{always, majority_type, most_frequent_action};
pub use crate::next_action::evaluation::{Measured, NextActionScores, TypeScores, WRITTEN_AS, evaluate};
pub use crate::next_action::exactness::{Exactness, is_exact};
pub use crate::next_action::repo_compat::RepoConfig;
pub use crate::next_action::reward::{Attempt, ShopR1Reward};
pub use crate::next_action::similarity::Similarity;
pub use crate::next_action::table::{ScoredRow, by_type, confusion, overview};
pub use crate::next_action::verdict::{Verdict, judge, scores_of};
