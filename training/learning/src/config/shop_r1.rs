//! `[shop_r1]`: learning from and being judged by single steps, in the dialects of Shop-R1.

use serde::{Deserialize, Serialize};

use webshop_evaluation::next_action::RewardConfig;

/// `[shop_r1]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShopR1Config {
    /// How a single answer is judged where it is learned from.
    pub score: StepScore,
    /// Factor between what an answer is worth and what is learned from: 1/1001.1 where rewards are exponents (V*). Groups
    /// that divide by their deviation do not see it.
    pub reward_scale: f64,
    /// A file of steps to learn from, as `webshop shop-r1 data` writes them; empty for demonstrations of the training goals.
    pub data: String,
    /// Which steps of demonstrations there are.
    pub mix: Mix,
    /// Share of dead ends among the steps of the natural mix.
    pub terminate_share: f64,
    /// Whether demonstrations that are cloned tell past rationales; what is answered, learned from and judged never does.
    pub history_rationales: bool,
    /// Held-out steps judged in an evaluation; 0 for none.
    pub eval_examples: usize,
    /// The letters of the hierarchical reward.
    pub reward: RewardConfig,
}

/// What an answer is worth to the learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepScore {
    /// The hierarchical reward.
    Hierarchical,
    /// 1 if the whole action is right, else 0.
    Binary,
}

/// Which steps are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Every step of a demonstrated trip as likely as the others, and the stated share of dead ends.
    Natural,
    /// As in the paper's test set, as far as it can be made out: 690 clicks to 677 searches to 512 dead ends.
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
            eval_examples: 300,
            reward: RewardConfig::default(),
        }
    }
}
