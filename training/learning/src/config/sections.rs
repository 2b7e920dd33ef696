//! The sections of a configuration and their defaults, in the order of the file; `[catalog]` is in `catalog`, those of RL
//! are in `rl`, those of evaluations in `evaluation`.
//!
//! A new key is a field here, its default below, and a commented line in `configs/tiny.toml`; nothing else
//! names keys. No ranges here: those are in `validate`.

use serde::{Deserialize, Serialize};
use webshop_agent::{BrowsingHabits, PromptFormat, compact};

/// The name of the base model where a model folder could stand; `./base` names a folder of this name.
pub const BASE_MODEL: &str = "base";

/// `[model]`: a Qwen2 of this shape, field names as in the Hugging Face configuration, or an existing model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// What to begin with: [`BASE_MODEL`], a model folder, a run folder or a checkpoint, whose shape and vocabulary then
    /// hold; empty for random weights of the shape below.
    pub from: String,
    /// Rank of the adapters that are trained instead of all weights; 0 for none.
    pub lora_rank: usize,
    /// Scale of the adapters, before division by their rank.
    pub lora_alpha: f64,
    /// The matrices with an adapter, by the end of their names.
    pub lora_targets: Vec<String>,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even, since rotary positions turn pairs.
    pub head_dim: usize,
    /// Width of the gated feed-forward layer.
    pub intermediate_size: usize,
    /// Entries of the byte-pair vocabulary, special tokens included.
    pub vocab_size: usize,
}

impl ModelConfig {
    /// The sizes of a model with random weights.
    pub(crate) fn shape(&self) -> [usize; 7] {
        let Self { hidden_size, layers, heads, kv_heads, head_dim, intermediate_size, vocab_size, .. } =
            *self;
        [hidden_size, layers, heads, kv_heads, head_dim, intermediate_size, vocab_size]
    }

    /// Name of the model before training, for reports.
    pub fn first_name(&self) -> &'static str {
        match self.from.as_str() {
            "" => "random weights",
            BASE_MODEL => "base model",
            _ => "as it came",
        }
    }
}

/// `[prompt]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptConfig {
    /// The format of prompts and completions. `compact` and `text` need a vocabulary made for them; the others use
    /// the chat template of `model.from`.
    pub format: PromptFormat,
    /// Products of a results page in a prompt; the page itself lists ten.
    pub results_shown: usize,
    /// Prompt format `compact`: whether a price that is a range is shown by both ends, as on the page; else by the highest
    /// alone.
    pub price_ranges: bool,
    /// Prompt format `compact`: the most characters of a description, feature list or attribute page.
    pub detail_chars: usize,
    /// Tokens of one context, prompts and completions: a whole episode, or one turn in formats that begin a new prompt each
    /// turn. An episode that would exceed it is truncated.
    pub max_context: usize,
    /// Tokens the model may write in one turn.
    pub max_turn_tokens: usize,
    /// Few-shot examples in front of every prompt of a chat format, episodes of the browsing expert; 0 for those of the
    /// model folder of `model.from`, if it has any.
    pub few_shot: usize,
}

impl PromptConfig {
    /// How much of a page the format `compact` shows.
    pub(crate) fn compact(&self) -> compact::PromptConfig {
        let Self { results_shown, price_ranges, detail_chars, .. } = *self;
        compact::PromptConfig { results_shown, price_ranges, detail_chars }
    }
}

/// `[warm_start]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarmStartConfig {
    /// Optimizer steps of copy tasks, before the demonstrations.
    pub copy_task_steps: u64,
    /// Share of the copied sequences of copy tasks in which tokens occur several times, in 0..=1.
    pub copy_task_repeats: f64,
    /// Copy tasks beside the demonstrations of a step of cloning, as a share of `batch_episodes`, in 0..=1. Only with
    /// `page_weight` 0.
    pub copy_task_share: f64,
    /// Share of a batch of cloning that are episodes which the model begins and the expert finishes (DAgger), in 0..=1. Needs
    /// a prompt format without a chat template, and the expert of `browsing`.
    pub dagger_share: f64,
    /// Optimizer steps of cloning.
    pub steps: u64,
    /// Demonstrated episodes in one optimizer step.
    pub batch_episodes: usize,
    /// Peak learning rate.
    pub lr: f64,
    /// Steps of linear rise to `lr`, of which the first has `lr / warmup_steps`.
    pub warmup_steps: u64,
    /// How the learning rate ends.
    pub decay: Decay,
    /// Who demonstrates. In the chat formats of Shop-R1, single steps are by the experts of `two-habits` whatever is said here.
    pub demonstrations: DemonstrationKind,
    /// Share of the cloning steps, the last ones, whose demonstrations all have reward 1 (filtered cloning), in 0..=1.
    /// Above 0, so have the demonstrations of `rl.demonstration_share`.
    pub filtered_share: f64,
    /// Weight of the negative log-likelihood of instruction and page tokens in cloning, beside 1 for the agent's.
    pub page_weight: f64,
    /// `browsing`: share of a batch that is reading tasks instead of demonstrations, in 0..=1: episodes in which the
    /// thoughts have a loss and the actions have none. Prompt formats `compact` and `text`.
    pub reading_task_share: f64,
    /// `browsing`: the habits of the expert, each a key of this section. With
    /// [`by_lowest_price`](BrowsingHabits::by_lowest_price) the format `compact` must show both ends of a range
    /// ([`PromptConfig::price_ranges`]).
    #[serde(flatten)]
    pub habits: BrowsingHabits,
    /// `two-habits`: share of demonstrations by the thinking expert, in 0..=1.
    pub thinking_share: f64,
    /// `two-habits`: share of the thinking expert's episodes for which a goal is searched whose episode rejects
    /// a candidate by its title, in 0..=1. Not used for single steps.
    pub rejection_share: f64,
    /// The optimizer.
    pub optimizer: Method,
}

impl WarmStartConfig {
    /// Whether demonstrations of `step` are filtered by reward; steps after the warm start are those of
    /// reinforcement learning.
    pub(crate) fn is_filtered(&self, step: u64) -> bool {
        let filtered = (self.filtered_share * self.steps as f64).round() as u64;
        self.filtered_share > 0.0 && step >= self.all_steps() - filtered
    }

    /// Optimizer steps of copy tasks and cloning; 0 leaves the model unchanged.
    pub fn all_steps(&self) -> u64 {
        self.copy_task_steps + self.steps
    }
}

/// Who demonstrates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemonstrationKind {
    /// An expert that knows the instruction and the pages ([`webshop_agent::BrowsingExpert`]).
    Browsing,
    /// Two experts that know the goal's criteria; one thinks, the other does not ([`webshop_agent::Expert`]).
    TwoHabits,
}

/// An optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// AdamW for all weights.
    Adamw,
    /// Muon for matrices between hidden layers, AdamW for the rest.
    Muon,
}

/// The schedule of a learning rate after its warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// Constant.
    None,
    /// Linear decay to 0 at the step after the last.
    Linear,
}

/// `[optimizer]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Decay of the averages of gradient and squared gradient.
    pub betas: [f64; 2],
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay; not applied to norms and biases.
    pub weight_decay: f64,
    /// Global gradient norm above which gradients are scaled down; 0 turns clipping off.
    pub grad_clip: f64,
    /// Quantile of all gradient norms of reinforcement learning so far that replaces `grad_clip` after the first ten of them; 0
    /// keeps `grad_clip`, which cloning before it always has.
    pub grad_clip_quantile: f64,
}

/// `[checkpoint]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointConfig {
    /// RL steps between checkpoints; 0 writes only the first and the last.
    pub every: u64,
    /// Warm-start steps between checkpoints; 0 writes only the last.
    pub warm_start_every: u64,
    /// Checkpoints that are kept, the newest; 0 keeps all.
    pub keep: usize,
    /// Whether the checkpoint of the best evaluation is kept too, as `best`.
    pub best: bool,
}

/// `[run]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
}

impl Default for ModelConfig {
    fn default() -> Self {
        let targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
        Self {
            from: BASE_MODEL.into(),
            lora_rank: 0,
            lora_alpha: 32.0,
            lora_targets: targets.map(String::from).into(),
            hidden_size: 128,
            layers: 3,
            heads: 4,
            kv_heads: 2,
            head_dim: 32,
            intermediate_size: 320,
            vocab_size: 2048,
        }
    }
}

impl Default for PromptConfig {
    fn default() -> Self {
        Self {
            format: PromptFormat::Compact,
            results_shown: 5,
            price_ranges: false,
            detail_chars: compact::DETAIL_CHARS,
            max_context: 1536,
            max_turn_tokens: 96,
            few_shot: 0,
        }
    }
}

impl Default for WarmStartConfig {
    fn default() -> Self {
        Self {
            copy_task_steps: 0,
            copy_task_repeats: 0.0,
            copy_task_share: 0.0,
            dagger_share: 0.0,
            steps: 400,
            batch_episodes: 20,
            lr: 1e-3,
            warmup_steps: 50,
            decay: Decay::Linear,
            demonstrations: DemonstrationKind::Browsing,
            filtered_share: 1.0,
            page_weight: 0.0,
            reading_task_share: 0.25,
            habits: BrowsingHabits::default(),
            thinking_share: 0.45,
            rejection_share: 0.7,
            optimizer: Method::Muon,
        }
    }
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            weight_decay: 0.01,
            grad_clip: 1.0,
            grad_clip_quantile: 0.0,
        }
    }
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { every: 8, warm_start_every: 50, keep: 3, best: false }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { max_steps: 15 }
    }
}
