//! Which experiment is meant: the flags of all verbs that train.

use std::path::PathBuf;

use webshop_training::{Config, Preset};

/// An experiment and what is changed of it.
#[derive(clap::Args)]
pub struct ExperimentArgs {
    /// The experiment as a file; what it does not state is as in training/configs/tiny.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One of those that come with the program [default: medium; `shop-r1 train`: shop-r1]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "config")]
    preset: Option<PresetArg>,
    /// Change a value of the experiment; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Short for `--set model.from=…`: begin with this model folder, run or checkpoint instead of random weights
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Short for `--set catalog.source=…`: 100, 1000 or a folder with the original's files
    #[arg(long, value_name = "100|1000|DIR")]
    catalog: Option<String>,
    /// Short for `--set catalog.skip_bad=true`: drop malformed records of a folder and count them
    #[arg(long)]
    skip_bad: bool,
    /// Short for `--set seed=N`
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Experiments, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum PresetArg {
    /// A few minutes: a short warm start and a few batches, to see all parts at work
    Quick,
    /// The default: training/configs/tiny.toml
    Medium,
    /// The 1000-product shop, and more of everything
    Full,
    /// Single steps and the hierarchical reward: training/configs/shop_r1_tiny.toml
    ShopR1,
}

impl ExperimentArgs {
    /// The experiment, resolved and checked; `default` is what it is if neither a file nor a preset is named.
    pub fn load(self, default: Preset) -> anyhow::Result<Config> {
        let mut overrides = self.overrides;
        let from = self.model.map(|from| from.to_string_lossy().into_owned());
        overrides.extend(from.map(|from| format!("model.from={}", toml_string(&from))));
        overrides.extend(self.catalog.map(|source| format!("catalog.source={}", toml_string(&source))));
        overrides.extend(self.skip_bad.then(|| "catalog.skip_bad=true".to_owned()));
        overrides.extend(self.seed.map(|seed| format!("seed={seed}")));
        Ok(match (self.config, self.preset) {
            (Some(file), _) => Config::load(Some(&file), &overrides)?,
            (None, preset) => Config::preset(preset.map_or(default, Preset::from), &overrides)?,
        })
    }
}

impl From<PresetArg> for Preset {
    fn from(preset: PresetArg) -> Self {
        match preset {
            PresetArg::Quick => Self::Quick,
            PresetArg::Medium => Self::Medium,
            PresetArg::Full => Self::Full,
            PresetArg::ShopR1 => Self::ShopR1,
        }
    }
}

/// A TOML basic string, so that a path is never read as a number or a table.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
