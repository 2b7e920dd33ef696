//! The configuration of an experiment.
//!
//! A [`Config`] is read from a TOML file laid over the defaults, then changed by `key=value` overrides, then
//! validated. It is saved with the run as TOML and reads back to the same value. The defaults are those of
//! `configs/tiny.toml`, which states the unit and source of each. `catalog`, `sections`, `rl`, `loss`, `value`,
//! `evaluation` and `shop_r1` define the keys and their defaults, `preset` the named experiments, `keys` the resolution of
//! keys, `validate` the ranges.
//!
//! Nothing is read from the disk except that file. There are no derived values: they are computed where they
//! are used.

mod catalog;
mod evaluation;
mod keys;
mod loss;
mod preset;
mod rl;
mod sections;
mod shop_r1;
mod validate;
mod value;
mod warnings;

pub use crate::config::catalog::{AuxiliarySource, CatalogConfig, CatalogSize, GoalsChoice};
pub use crate::config::evaluation::{EvaluationConfig, JudgementConfig, SplitName};
pub(crate) use crate::config::keys::KeyDifference;
pub use crate::config::loss::{LossConfig, LossKind};
pub use crate::config::preset::Preset;
pub use crate::config::rl::{RlConfig, RlMode};
pub use crate::config::sections::{
    BASE_MODEL, CheckpointConfig, Decay, DemonstrationKind, Method, ModelConfig, OptimizerConfig,
    PromptConfig, RunConfig, WarmStartConfig,
};
pub use crate::config::shop_r1::{Mix, ShopR1Config, StepScore};
pub use crate::config::value::{Credit, CurriculumConfig, ValueConfig};
pub use crate::reward::TaskReward;

use std::path::Path;

use serde::{Deserialize, Serialize};
use webshop_agent::{BrowsingHabits, Episode};

use crate::error::{Result, TrainingError};
use crate::loss::Loss;
use crate::reward::malformed_turns;

/// One experiment: shop, model, training and evaluation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The root of all randomness; at most `i64::MAX`, since TOML has no larger integer.
    pub seed: u64,
    /// The catalog and its goals.
    pub catalog: CatalogConfig,
    /// The shape of a model made from random weights.
    pub model: ModelConfig,
    /// The prompt format and its token limits.
    pub prompt: PromptConfig,
    /// Copy tasks, then cloning of demonstrations.
    pub warm_start: WarmStartConfig,
    /// V* from reference rollouts.
    pub value: ValueConfig,
    /// Easier shops and goals at the start of reinforcement learning.
    pub curriculum: CurriculumConfig,
    /// Reinforcement learning on own rollouts.
    pub rl: RlConfig,
    /// Single-step examples and their reward.
    pub shop_r1: ShopR1Config,
    /// The constants of AdamW and gradient clipping, for the warm start and RL.
    pub optimizer: OptimizerConfig,
    /// Held-out evaluations.
    pub evaluation: EvaluationConfig,
    /// The measurement at the end, on test goals and on shops of the run's own seed.
    pub judgement: JudgementConfig,
    /// Checkpoints.
    pub checkpoint: CheckpointConfig,
    /// Limits of an episode.
    pub run: RunConfig,
}

impl Config {
    /// The defaults, overlaid by `file` if one is given, then by each `key=value` of `overrides` in order,
    /// validated. Nothing else is read.
    pub fn load(file: Option<&Path>, overrides: &[String]) -> Result<Self> {
        let text = match file {
            Some(path) => std::fs::read_to_string(path).map_err(|e| TrainingError::io("read", path, e))?,
            None => String::new(),
        };
        let origin = file.map_or("defaults".into(), |path| path.display().to_string());
        Self::resolve(&origin, &text, overrides)
    }

    /// As [`Config::load`], on a text that is already read; `origin` names it in messages.
    ///
    /// ```
    /// use webshop_training::config::{Config, LossKind};
    /// let config = Config::resolve("example", "seed = 7", &["loss=wsft".into()]).unwrap();
    /// assert_eq!((config.seed, config.rl.loss.kind()), (7, LossKind::Wsft));
    /// let error = Config::resolve("example", "", &["rl.lrr=1".into()]).unwrap_err();
    /// assert_eq!(error.to_string(), "unknown configuration key `rl.lrr` (did you mean `rl.lr`?)");
    /// ```
    pub fn resolve(origin: &str, text: &str, overrides: &[String]) -> Result<Self> {
        let file = toml::from_str(text).map_err(|e: toml::de::Error| TrainingError::ConfigSyntax {
            origin: format!("`{origin}`"),
            problem: e.to_string().trim_end().to_string(),
        })?;
        let mut resolved = keys::Resolver::new(Self::default());
        resolved.overlay(&file)?;
        for text in overrides {
            resolved.set(text)?;
        }
        let config = resolved.finish();
        config.validate()?;
        Ok(config)
    }

    /// The reward of `episode` in training, minus the penalty for its malformed completions.
    pub(crate) fn reward(&self, episode: &Episode) -> f64 {
        self.rl.reward.of(episode) - self.malformed_penalty() * malformed_turns(episode) as f64
    }

    /// Penalty of a malformed completion, subtracted from the reward of its episode. 0 in a layout, in which a malformed
    /// completion uses up the turn.
    pub(crate) fn malformed_penalty(&self) -> f64 {
        if self.prompt.format.is_chat() { self.rl.malformed_penalty } else { 0.0 }
    }

    /// The habits of the browsing expert, if it demonstrates. In the chat formats of Shop-R1 the experts of `two-habits` do,
    /// whatever the kind of demonstrations.
    pub fn browsing_demonstrator(&self) -> Option<BrowsingHabits> {
        let is_browsing = self.warm_start.demonstrations == DemonstrationKind::Browsing;
        (is_browsing && !self.prompt.format.is_shop_r1()).then_some(self.warm_start.habits)
    }

    /// The loss of reinforcement learning.
    pub(crate) fn loss(&self) -> Box<dyn Loss> {
        self.rl.loss.loss(self.value.beta1)
    }

    /// The whole configuration as TOML; [`Config::resolve`] reads it back to an equal value.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a validated configuration has no value TOML cannot hold")
    }
}

/// The override that sets `key` to this text, which is never read as a number or a table.
pub fn text_override(key: &str, text: &str) -> String {
    format!("{key}={}", toml::Value::String(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &str = include_str!("../../../configs/tiny.toml");
    const WSFT: &str = include_str!("../../../configs/wsft.toml");

    #[test]
    fn tiny_states_every_default() {
        let tiny = Config::resolve("tiny.toml", TINY, &[]).unwrap();
        assert_eq!(tiny, Config::default());
        assert_eq!(tiny.unstated_keys(TINY), Vec::<String>::new());
    }

    #[test]
    fn tiny_comments_every_key() {
        for line in TINY.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')) {
            assert!(line.contains(" # "), "`{line}` has no comment");
        }
    }

    #[test]
    fn wsft_is_the_original_recipe() {
        let config = Config::resolve("wsft.toml", WSFT, &[]).unwrap();
        let LossConfig::Wsft(loss) = config.rl.loss else { panic!("not `wsft`") };
        assert_eq!((loss.kl_coefficient, loss.advantage_clip), (0.02, 3.0));
        assert_eq!((config.value.beta1, config.value.samples), (0.5, 8));
    }

    #[test]
    fn a_saved_configuration_reads_back_equal() {
        let mut config = Config { seed: 42, ..Config::default() };
        config.rl.lr = 0.1 + 0.2; // 0.30000000000000004: no digit may be lost
        config.catalog.size = CatalogSize::First(25);
        assert_eq!(Config::resolve("saved", &config.to_toml(), &[]).unwrap(), config);
    }
}
