//! `[evaluation]` and `[judgement]`: what is measured during a run, and once at its end.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_products::Split;

/// `[evaluation]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// RL steps between evaluations; 0 evaluates only at the ends.
    pub every: u64,
    /// Steps of the warm start between evaluations; 0 evaluates only at its ends.
    pub warm_start_every: u64,
    /// Goals tried in one evaluation.
    pub episodes: usize,
    /// Which goals of the source.
    pub split: SplitName,
    /// Generated shops whose goals join those of the split `validation`; not used with `test`.
    pub shops: usize,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f64,
    /// Nucleus; 1 keeps the whole vocabulary.
    pub top_p: f64,
}

impl EvaluationConfig {
    /// Whether goals of generated shops are evaluated.
    pub(crate) fn has_validation_shops(&self) -> bool {
        self.split == SplitName::Validation && self.shops > 0
    }

    /// The evaluated goals in words: ``split `validation` and 4 generated shops``.
    pub fn goals_in_words(&self) -> String {
        match self.has_validation_shops() {
            true if self.shops == 1 => format!("split `{}` and one generated shop", self.split),
            true => format!("split `{}` and {} generated shops", self.split, self.shops),
            false => format!("split `{}`", self.split),
        }
    }
}

/// The held-out splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitName {
    /// Goals to choose settings on.
    Validation,
    /// Goals to report.
    Test,
}

impl fmt::Display for SplitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Validation => "validation",
            Self::Test => "test",
        })
    }
}

/// `[judgement]`: the last measurement of a run, on test goals and on shops of its own seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgementConfig {
    /// The most test goals of the source, and the most goals of the fresh shops; 0 for no judgement.
    pub episodes: usize,
    /// Shops that are generated for the run's seed, and that no other seed has; 0 for test goals alone.
    pub shops: usize,
}

impl JudgementConfig {
    /// Whether goals of fresh shops are judged.
    pub(crate) fn has_shops(&self) -> bool {
        self.episodes > 0 && self.shops > 0
    }
}

impl From<SplitName> for Split {
    fn from(name: SplitName) -> Self {
        match name {
            SplitName::Validation => Self::Validation,
            SplitName::Test => Self::Test,
        }
    }
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        Self {
            every: 16,
            warm_start_every: 200,
            episodes: 300,
            split: SplitName::Validation,
            shops: 4,
            temperature: 1.0,
            top_p: 1.0,
        }
    }
}

impl Default for JudgementConfig {
    fn default() -> Self {
        Self { episodes: 300, shops: 5 }
    }
}
