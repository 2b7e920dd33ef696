//! `[rl]`: reinforcement learning on the policy's own rollouts. The parameters of its loss are in `loss`.

use serde::{Deserialize, Serialize};

use crate::config::{Decay, LossConfig, Method};
use crate::reward::TaskReward;

/// `[rl]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RlConfig {
    /// What one rollout is: an episode or a single completion.
    pub mode: RlMode,
    /// The reward of an episode.
    pub reward: TaskReward,
    /// Subtracted for each malformed completion in a chat format. Evaluations do not subtract it.
    pub malformed_penalty: f64,
    /// Peak learning rate.
    pub lr: f64,
    /// Steps of linear warm-up to `lr`, of which the first has `lr / warmup_steps`.
    pub warmup_steps: u64,
    /// Schedule of the learning rate after the warm-up.
    pub decay: Decay,
    /// Number of batches; 0 stops after the warm start.
    pub steps: u64,
    /// Generated tokens, reference rollouts included, or, with cloning alone, those of the completions that are cloned; the
    /// step that exceeds them is the last. 0 sets no limit.
    pub max_tokens: u64,
    /// Rollouts per batch.
    pub batch_episodes: usize,
    /// G: rollouts per goal of a batch; divides `batch_episodes`.
    pub group_size: usize,
    /// Goals of one product of one shop that batches of episodes draw from, at most; 0 for all.
    pub goals_per_product: usize,
    /// Optimizer steps per batch, in the order in which goals were drawn.
    pub minibatches: usize,
    /// Passes over each batch.
    pub epochs: usize,
    /// Share of the gradient that comes from demonstrations, from 0 to 1. With 1 nothing is sampled. A batch whose rewards carry
    /// no signal is learned from its demonstrations alone.
    pub demonstration_share: f64,
    /// Tokens of one forward and backward pass. Changes memory and speed; changes results only by rounding.
    pub micro_batch_tokens: usize,
    /// Whether a pass keeps only the input of each layer and computes the rest again for the gradient: less
    /// memory, a third more time, the same bits.
    pub recompute: bool,
    /// Sampling temperature of rollouts.
    pub temperature: f64,
    /// Nucleus of rollouts; 1 keeps the whole vocabulary.
    pub top_p: f64,
    /// The optimizer.
    pub optimizer: Method,
    /// The loss and its parameters.
    pub loss: LossConfig,
}

impl RlConfig {
    /// Goals of one batch.
    pub(crate) fn goals_per_step(&self) -> usize {
        self.batch_episodes / self.group_size
    }

    /// What the steps are, for titles: the loss, or "Cloning" if they clone demonstrations alone.
    pub fn method_title(&self) -> &'static str {
        if self.is_cloning_alone() { "Cloning" } else { self.loss.kind().title() }
    }

    /// The same for names of folders and lines of a terminal: the kind of the loss, or "cloning".
    pub fn method(&self) -> String {
        if self.is_cloning_alone() { "cloning".into() } else { self.loss.kind().to_string() }
    }

    /// Whether steps clone demonstrations and sample nothing.
    pub(crate) fn is_cloning_alone(&self) -> bool {
        self.demonstration_share == 1.0
    }
}

/// What the policy is trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RlMode {
    /// Whole episodes with the shop's reward.
    MultiTurn,
    /// One completion at a step of a demonstration, with the Shop-R1 reward against the demonstrated action.
    /// Settings that count episodes then count completions.
    SingleStep,
}

impl Default for RlConfig {
    fn default() -> Self {
        Self {
            mode: RlMode::MultiTurn,
            reward: TaskReward::Blend,
            malformed_penalty: 0.1,
            lr: 6e-4,
            warmup_steps: 4,
            decay: Decay::Linear,
            steps: 64,
            max_tokens: 0,
            batch_episodes: 512,
            group_size: 1,
            goals_per_product: 0,
            minibatches: 4,
            epochs: 1,
            demonstration_share: 0.0,
            micro_batch_tokens: 1024,
            recompute: false,
            temperature: 1.0,
            top_p: 1.0,
            optimizer: Method::Muon,
            loss: LossConfig::default(),
        }
    }
}
