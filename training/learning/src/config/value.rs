//! `[value]` and `[curriculum]`: V* from reference rollouts, and which goals are trained on when.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[value]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueConfig {
    /// β₁ > 0: near 0, V* is the best reward of the samples; for large values it is their mean.
    pub beta1: f64,
    /// N ≥ 1: reference rollouts per goal.
    pub samples: usize,
    /// Whether N falls during training: N until step 30, then N/2, from step 100 on N/4.
    pub adaptive: bool,
    /// Number of training goals that reinforcement learning draws from, if the loss needs V*, `keep_spread` is below 1
    /// or the rollouts are single steps; it draws from all training goals otherwise.
    pub goals: usize,
    /// Share of these goals that is kept, above 0 to 1: those whose reference rewards have the largest
    /// spread.
    pub keep_spread: f64,
    /// RL steps after which the policy becomes the reference and V* is estimated again; 0 keeps the first
    /// reference.
    pub refresh: u64,
    /// Whether an advantage belongs to an episode or to the turns between states.
    pub credit: Credit,
    /// With credit by state: number of reference episodes through a state that make its V* known, at least 1.
    pub state_samples: usize,
    /// With credit by state: reference episodes forked from each state of unknown V*; 0 forks none.
    pub forks: usize,
    /// Folder that keeps values between runs. It does not change results, so it is not a configuration key.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
}

/// What an advantage is assigned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// The whole episode: r − V* of the goal.
    Episode,
    /// The turns between two states of known V*: V*(s′) − V*(s).
    State,
}

/// `[curriculum]`: easier stages before training on all goals.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurriculumConfig {
    /// Products in every auxiliary shop, one entry per stage; the evaluated shop is not trained on. Empty:
    /// all products.
    pub sizes: Vec<usize>,
    /// Largest number of attributes and options of a goal, one entry per stage. Empty: all goals.
    pub requirements: Vec<usize>,
    /// Success rate of a batch that ends each stage. Empty: no stages.
    pub thresholds: Vec<f64>,
}

impl Default for ValueConfig {
    fn default() -> Self {
        Self {
            beta1: 0.5,
            samples: 2,
            adaptive: false,
            goals: 4096,
            keep_spread: 1.0,
            refresh: 0,
            credit: Credit::Episode,
            state_samples: 2,
            forks: 0,
            cache: None,
        }
    }
}
