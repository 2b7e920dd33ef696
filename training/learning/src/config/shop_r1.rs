//! `[shop_r1]`: single-step examples and their reward, for the Shop-R1 prompt formats.

use serde::{Deserialize, Serialize};

use webshop_evaluation::next_action::RewardConfig;

/// `[shop_r1]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShopR1Config {
    /// The reward of a completion in training.
    pub score: StepScore,
    /// Factor on that reward: 1/1001.1 for losses with V*, which exponentiates rewards. Losses that divide by
    /// the standard deviation of a group do not depend on it.
    pub reward_scale: f64,
    /// File of examples to clone and train on; empty for demonstrations of the training goals.
    pub data: String,
    /// The distribution of action types; natural without terminate examples in layouts, which have no action to terminate.
    pub mix: Mix,
    /// Share of terminate examples in the natural mix, 0 to 1.
    pub terminate_share: f64,
    /// Whether cloned prompts contain past rationales; sampled prompts never do.
    pub history_rationales: bool,
    /// Held-out steps of each evaluation, beside its episodes; 0 for none.
    pub eval_examples: usize,
    /// Parameters of the hierarchical reward.
    pub reward: RewardConfig,
}

/// The reward of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepScore {
    /// The hierarchical reward of Shop-R1.
    Hierarchical,
    /// 1 if the whole action is right, else 0.
    Binary,
}

/// Which steps are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Every step of a demonstrated episode equally likely, with the share `terminate_share` of terminate
    /// examples.
    Natural,
    /// As in the paper's test set, as far as it can be inferred: 690 clicks, 677 searches, 512 terminate.
    Paper,
}

impl Default for ShopR1Config {
    fn default() -> Self {
        Self {
            score: StepScore::Hierarchical,
            reward_scale: 1.0,
            data: String::new(),
            mix: Mix::Natural,
            terminate_share: 0.1,
            history_rationales: false,
            eval_examples: 0,
            reward: RewardConfig::default(),
        }
    }
}
