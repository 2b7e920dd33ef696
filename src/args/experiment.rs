//! Flags that name a training configuration and change values of it.

use std::path::PathBuf;

use webshop_training::config::{Config, Preset, text_override};

/// A training configuration: a file or a preset, and overrides.
#[derive(clap::Args)]
pub(crate) struct ExperimentArgs {
    /// Training configuration as a TOML file. A key that it leaves out has the value of
    /// training/configs/tiny.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A built-in training configuration [default: medium; of `shop-r1 train`: shop-r1]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "config")]
    preset: Option<PresetArg>,
    /// Override a configuration value, such as `--set rl.steps=4`; repeatable. `--dry-run` of `webshop
    /// train` prints all keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Start from this model folder, run folder or checkpoint instead of the base model (short for `--set
    /// model.from=DIR`)
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Product catalog: `100` or `1000` for an embedded one, or a folder with the original WebShop's JSON
    /// files (short for `--set catalog.source=…`)
    #[arg(long, value_name = "100|1000|DIR")]
    catalog: Option<String>,
    /// Skip malformed records in a catalog folder and count them (short for `--set catalog.skip_bad=true`)
    #[arg(long)]
    skip_bad: bool,
    /// Seed of all random draws of the run (short for `--set seed=N`)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// [`Preset`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PresetArg {
    /// A few minutes on a CPU: a short warm start and a few steps, to see every part work
    Quick,
    /// The default run with three eighths of its episodes: training/configs/short.toml
    Short,
    /// A small model on the catalog of 100 products: training/configs/tiny.toml
    Medium,
    /// The catalog of 1000 products, with more steps and evaluations
    Full,
    /// The original WebShop's products, none of a test goal in training; with `--catalog DIR`:
    /// training/configs/original.toml
    Original,
    /// The original WebShop's products, rules and goals, split as verl-agent splits them; with `--catalog DIR`:
    /// training/configs/verl_agent.toml
    VerlAgent,
    /// The base model of the program, from random weights: training/configs/base.toml
    Base,
    /// Demonstrations by two experts that know the goal: training/configs/two_habits.toml
    TwoHabits,
    /// Next-action prediction with the Shop-R1 reward: training/configs/shop_r1_tiny.toml
    ShopR1,
}

impl ExperimentArgs {
    /// The resolved and validated configuration; `default` applies if neither a file nor a preset is named.
    pub(crate) fn load(self, default: Preset) -> anyhow::Result<Config> {
        let mut overrides = self.overrides;
        let from = self.model.map(|from| from.to_string_lossy().into_owned());
        overrides.extend(from.map(|from| text_override("model.from", &from)));
        overrides.extend(self.catalog.map(|source| text_override("catalog.source", &source)));
        overrides.extend(self.skip_bad.then(|| "catalog.skip_bad=true".to_owned()));
        overrides.extend(self.seed.map(|seed| format!("seed={seed}")));
        Ok(match self.config {
            Some(file) => Config::load(Some(&file), &overrides)?,
            None => Config::preset(self.preset.map_or(default, Preset::from), &overrides)?,
        })
    }
}

impl From<PresetArg> for Preset {
    fn from(preset: PresetArg) -> Self {
        match preset {
            PresetArg::Quick => Self::Quick,
            PresetArg::Short => Self::Short,
            PresetArg::Medium => Self::Medium,
            PresetArg::Full => Self::Full,
            PresetArg::Original => Self::Original,
            PresetArg::VerlAgent => Self::VerlAgent,
            PresetArg::Base => Self::Base,
            PresetArg::TwoHabits => Self::TwoHabits,
            PresetArg::ShopR1 => Self::ShopR1,
        }
    }
}
