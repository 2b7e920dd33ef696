//! What is learned from own trips: the sections `[value]` and `[learner]`, and what their words stand for.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::{Decay, Method};
use crate::loss::{Baseline, KlEstimator, Weighting};
use crate::reward::TaskReward;

/// `[value]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    /// β₁: towards 0, V* is the best of the samples; towards infinity, their mean.
    pub beta1: f64,
    /// N: reference rollouts for each goal.
    pub samples: usize,
    /// Whether N falls as training goes on, as founded.
    pub adaptive: bool,
    /// Training goals that the learner trains on, each with a V* where the loss asks for one.
    pub goals: usize,
    /// Share of them that is kept: those whose reference rollouts differ most.
    pub keep_spread: f64,
    /// Learner steps after which the policy becomes the reference and V* is estimated anew; 0 keeps the first.
    pub refresh: u64,
    /// What V* is known of.
    pub credit: Credit,
    /// With credit by state, how many reference trips must have passed a state for its V* to count.
    pub state_samples: usize,
    /// With credit by state, reference trips that are forked from each state of the learner's trips whose V* is not known;
    /// 0 for none.
    pub forks: usize,
    /// A folder in which values are kept from run to run. No part of the experiment, so no key.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
}

/// To what an advantage is credited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// To the whole trip: r − V* of the goal.
    Trip,
    /// To the turns between states of known V*: V*(s′) − V*(s).
    State,
}

/// `[curriculum]`: stages in which there is less to be mistaken about, before the whole ground.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurriculumConfig {
    /// Products in every practice shop of each stage, the judged shop left out; empty for the whole ground.
    pub sizes: Vec<usize>,
    /// Attributes and options that a goal of each stage wants at most; empty for all goals.
    pub wishes: Vec<usize>,
    /// Share of successful trips in a batch at which each stage ends, one a stage; empty for no stages.
    pub thresholds: Vec<f64>,
}

/// `[learner]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnerConfig {
    /// Which loss.
    pub loss: LossName,
    /// What is practised.
    pub practice: Practice,
    /// What a trip is worth.
    pub reward: TaskReward,
    /// What is taken off for each answer that is not of the dialect's form, in chats; evaluations take nothing off.
    pub malformed_penalty: f64,
    /// β₂ of `apo`: the strength of the pull towards the reference.
    pub beta2: f64,
    /// Factor of the KL term of those losses that have one.
    pub kl_coefficient: f64,
    /// How that KL is estimated.
    pub kl: KlEstimator,
    /// ε below and above 1 by which ratios may differ from 1.
    pub clip: [f64; 2],
    /// `reinforce`: what a reward is compared with.
    pub baseline: Baseline,
    /// `raft`: the least reward of a trip that is imitated.
    pub threshold: f64,
    /// `grpo`, `gspo`, `gigpo`: the deviation of a group's rewards below which they count as equal, instead of being divided
    /// by it; 0 for the papers' equations.
    pub min_std: f64,
    /// `gigpo`: what a reward is worth a turn earlier.
    pub discount: f64,
    /// `gigpo`: weight of the comparison of turns beside that of trips.
    pub step_weight: f64,
    /// `wsft`: how an advantage becomes a weight.
    pub weighting: Weighting,
    /// `wsft`: normalized advantages are clipped to ± this.
    pub advantage_clip: f64,
    /// `wsft`, `awr`: scale of the advantage in an exponent, and where a batch of one has no deviation to divide by.
    pub beta: f64,
    /// `wsft`: what an advantage is measured against.
    pub center: Center,
    /// `wsft`: whether batches whose rewards say nothing are skipped; off is the bare formula.
    pub guarded: bool,
    /// Peak learning rate.
    pub lr: f64,
    /// Steps of linear rise from 0 to `lr`.
    pub warmup_steps: u64,
    /// How the learning rate ends.
    pub decay: Decay,
    /// Batches of trips; 0 stops after the warm start.
    pub steps: u64,
    /// Tokens the model may write for learning, those of reference rollouts included; the step that exceeds them is the
    /// last. 0 sets no bound.
    pub max_tokens: u64,
    /// Trips in one batch.
    pub batch_episodes: usize,
    /// G: trips for each goal of a batch; divides `batch_episodes`.
    pub group_size: usize,
    /// Optimizer steps that a batch of trips is parted into, in the order in which goals were drawn.
    pub minibatches: usize,
    /// How often each batch is learned from.
    pub epochs: usize,
    /// Share of the gradient that comes from demonstrations.
    pub demonstration_share: f64,
    /// Tokens of whole trips in one forward and backward pass. It changes memory and speed; the result only by
    /// rounding.
    pub micro_batch_tokens: usize,
    /// Whether a pass keeps only the input of each layer and computes the rest again for the gradient: less memory, a
    /// third more time, the same bits.
    pub recompute: bool,
    /// Sampling temperature of training trips.
    pub temperature: f64,
    /// Nucleus of training trips; 1 keeps the whole vocabulary.
    pub top_p: f64,
    /// How the weights move.
    pub optimizer: Method,
}

impl LearnerConfig {
    /// Goals of one batch.
    pub fn goals_per_step(&self) -> usize {
        self.batch_episodes / self.group_size
    }
}

/// What a learner makes to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Practice {
    /// Whole trips, judged by what was bought.
    Trips,
    /// Single answers at steps of demonstrations, judged by what was done there: Shop-R1. A trip's place in all that counts
    /// trips has then an answer.
    Steps,
}

/// The losses of this crate, by the names used in configurations and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossName {
    /// A*-PO: regression of the log-ratio on the optimal advantage.
    Apo,
    /// A*-PO against a reference that follows the policy.
    ApoLagged,
    /// Weighted supervised fine-tuning with a KL term.
    Wsft,
    /// Advantage-weighted regression.
    Awr,
    /// Filtered supervised fine-tuning.
    Raft,
    /// REINFORCE.
    Reinforce,
    /// REINFORCE leave-one-out.
    Rloo,
    /// Group-relative policy optimization.
    Grpo,
    /// GRPO without its divisions.
    DrGrpo,
    /// GRPO with one ratio a trip.
    Gspo,
    /// GRPO with groups of turns at equal states.
    Gigpo,
    /// PPO with V* as its value.
    Ppo,
}

impl LossName {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::Apo,
        Self::ApoLagged,
        Self::Wsft,
        Self::Awr,
        Self::Raft,
        Self::Reinforce,
        Self::Rloo,
        Self::Grpo,
        Self::DrGrpo,
        Self::Gspo,
        Self::Gigpo,
        Self::Ppo,
    ];

    /// The name as it is written in prose.
    pub fn title(self) -> &'static str {
        match self {
            Self::Apo => "A*-PO",
            Self::ApoLagged => "lagged A*-PO",
            Self::Wsft => "weighted SFT",
            Self::Awr => "AWR",
            Self::Raft => "RAFT",
            Self::Reinforce => "REINFORCE",
            Self::Rloo => "RLOO",
            Self::Grpo => "GRPO",
            Self::DrGrpo => "Dr. GRPO",
            Self::Gspo => "GSPO",
            Self::Gigpo => "GiGPO",
            Self::Ppo => "PPO",
        }
    }

    /// Whether it compares trips for one goal with each other.
    pub fn is_by_group(self) -> bool {
        use LossName::{ApoLagged, DrGrpo, Gigpo, Grpo, Gspo, Rloo};
        matches!(self, ApoLagged | Rloo | Grpo | DrGrpo | Gspo | Gigpo)
    }
}

impl fmt::Display for LossName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apo => "apo",
            Self::ApoLagged => "apo-lagged",
            Self::Wsft => "wsft",
            Self::Awr => "awr",
            Self::Raft => "raft",
            Self::Reinforce => "reinforce",
            Self::Rloo => "rloo",
            Self::Grpo => "grpo",
            Self::DrGrpo => "dr-grpo",
            Self::Gspo => "gspo",
            Self::Gigpo => "gigpo",
            Self::Ppo => "ppo",
        })
    }
}

/// What the weights of `wsft` are centred on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Center {
    /// The batch's mean advantage, as the variant was founded.
    Batch,
    /// Each prompt's own V*: no mean is subtracted, and a trip that did exactly as expected weighs nothing.
    Prompt,
}

impl Default for ValueConfig {
    fn default() -> Self {
        Self {
            beta1: 0.5,
            samples: 8,
            adaptive: false,
            goals: 1024,
            keep_spread: 1.0,
            refresh: 0,
            credit: Credit::Trip,
            state_samples: 2,
            forks: 0,
            cache: None,
        }
    }
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self {
            loss: LossName::Apo,
            practice: Practice::Trips,
            reward: TaskReward::Success,
            malformed_penalty: 0.1,
            beta2: 1e-3,
            kl_coefficient: 0.02,
            kl: KlEstimator::K2,
            clip: [0.2, 0.28],
            baseline: Baseline::Value,
            threshold: 1.0,
            min_std: 0.0,
            discount: 0.95,
            step_weight: 1.0,
            weighting: Weighting::Normalized,
            advantage_clip: 3.0,
            beta: 0.5,
            center: Center::Batch,
            guarded: true,
            lr: 1e-4,
            warmup_steps: 10,
            decay: Decay::None,
            steps: 60,
            max_tokens: 0,
            batch_episodes: 256,
            group_size: 1,
            minibatches: 1,
            epochs: 1,
            demonstration_share: 0.0,
            micro_batch_tokens: 1024,
            recompute: false,
            temperature: 1.0,
            top_p: 1.0,
            optimizer: Method::Adamw,
        }
    }
}
