//! The shipped experiments, by name.

use crate::config::Config;
use crate::error::Result;

/// A shipped experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// `configs/quick.toml`: a few minutes, uses all parts.
    Quick,
    /// `configs/short.toml`: the default run with three eighths of its episodes.
    Short,
    /// The defaults, as `configs/tiny.toml` states them.
    Medium,
    /// `configs/full.toml`: the 1000-product shop.
    Full,
    /// `configs/original.toml`: the original's products, none of a test goal in training; needs their folder in
    /// `catalog.source`.
    Original,
    /// `configs/verl_agent.toml`: the original's rules and goals in verl-agent's split; needs their folder in `catalog.source`.
    VerlAgent,
    /// `configs/base.toml`: the base model, from random weights.
    Base,
    /// `configs/two_habits.toml`: demonstrations that know the goal's criteria.
    TwoHabits,
    /// `configs/shop_r1_tiny.toml`: single steps, and Shop-R1's reward.
    ShopR1,
}

impl Config {
    /// The experiment of this name, changed by each `key=value` of `overrides` in order, validated.
    pub fn preset(preset: Preset, overrides: &[String]) -> Result<Self> {
        let (name, text) = match preset {
            Preset::Quick => ("quick.toml", include_str!("../../../configs/quick.toml")),
            Preset::Short => ("short.toml", include_str!("../../../configs/short.toml")),
            Preset::Medium => ("tiny.toml", ""),
            Preset::TwoHabits => ("two_habits.toml", include_str!("../../../configs/two_habits.toml")),
            Preset::ShopR1 => ("shop_r1_tiny.toml", include_str!("../../../configs/shop_r1_tiny.toml")),
            Preset::Original => ("original.toml", include_str!("../../../configs/original.toml")),
            Preset::VerlAgent => ("verl_agent.toml", include_str!("../../../configs/verl_agent.toml")),
            Preset::Base => ("base.toml", include_str!("../../../configs/base.toml")),
            Preset::Full => ("full.toml", include_str!("../../../configs/full.toml")),
        };
        Self::resolve(name, text, overrides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DemonstrationKind, LossKind, RlMode, SplitName};

    #[test]
    fn presets_are_valid_and_rise_in_effort() {
        let presets = [Preset::Quick, Preset::Short, Preset::Medium, Preset::Full];
        let [quick, short, medium, full] = presets.map(|preset| Config::preset(preset, &[]).unwrap());
        assert_eq!(medium, Config::default());
        let steps = |config: &Config| config.warm_start.all_steps() + config.rl.steps;
        assert!([&quick, &short, &medium, &full].map(steps).is_sorted());
        assert_eq!(full.catalog.source, "1000");
        let two_habits = Config::preset(Preset::TwoHabits, &[]).unwrap();
        assert_eq!(two_habits.warm_start.demonstrations, DemonstrationKind::TwoHabits);
        // `two-habits` stays what was recorded, test goals included.
        for (preset, split) in [(Preset::TwoHabits, SplitName::Test), (Preset::ShopR1, SplitName::Validation)]
        {
            let Config { catalog, evaluation, .. } = Config::preset(preset, &[]).unwrap();
            let expected = (true, split, 0);
            assert_eq!((catalog.train_on_source, evaluation.split, evaluation.shops), expected, "{preset:?}");
        }
        let shop_r1 = Config::preset(Preset::ShopR1, &[]).unwrap();
        assert_eq!((shop_r1.rl.mode, shop_r1.rl.loss.kind()), (RlMode::SingleStep, LossKind::Grpo));
    }

    #[test]
    fn of_the_presets_for_the_original_only_verl_agents_split_leaks() {
        for (preset, leaks) in [(Preset::Original, false), (Preset::VerlAgent, true)] {
            let Config { catalog, evaluation, judgement, .. } =
                Config::preset(preset, &["catalog.source=products".to_owned()]).unwrap();
            assert_eq!((catalog.split_rule.is_leaky(), catalog.train_on_source), (leaks, leaks));
            // Generated shops are not the original's.
            assert_eq!((evaluation.shops, judgement.shops), (0, 0));
        }
    }
}
