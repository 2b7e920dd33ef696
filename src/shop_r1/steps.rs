//! Flags that say at which steps a model is judged: those of a file, or held-out ones of a shop.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;
use webshop_agent::shop_r1::Sample;
use webshop_env::{RESULTS_PER_PAGE, ShopFingerprint};
use webshop_products::{Split, SplitRule};
use webshop_training::shop_r1::Steps;
use webshop_training::{Ground, Mix, ShopR1Config};

use crate::lines;
use crate::shop::{ShopArgs, SplitArg, SplitsArgs};

/// What makes no difference to the steps of a file.
const OF_THE_SHOP: [&str; 8] =
    ["source", "size", "skip_bad", "no_cache", "goals", "splits", "mix", "dead_ends"];

/// Which steps.
#[derive(clap::Args)]
pub struct StepArgs {
    /// Steps in a file, one a line as `webshop shop-r1 data` writes them, instead of a shop's
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = OF_THE_SHOP)]
    data: Option<PathBuf>,
    #[command(flatten)]
    shop: ShopArgs,
    /// Steps of which goals [default: test; of a file all]
    #[arg(long, value_enum)]
    split: Option<SplitArg>,
    #[command(flatten)]
    splits: SplitsArgs,
    /// How many at most, the first ones of the file or of the split's fixed order
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// How often each type stands among them
    #[arg(long, value_enum, default_value = "natural")]
    mix: MixArg,
    /// Share of dead ends, where leaving is right, in the natural mix
    #[arg(long, default_value_t = 0.1, value_name = "SHARE")]
    dead_ends: f64,
}

/// Mixes, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
pub enum MixArg {
    /// Steps as they come, with the share of `--dead-ends`
    Natural,
    /// About 37 % clicks, 36 % searches and 27 % leavings, as in the paper's test set; instead of `--dead-ends`
    Paper,
}

impl From<MixArg> for Mix {
    fn from(arg: MixArg) -> Self {
        match arg {
            MixArg::Natural => Self::Natural,
            MixArg::Paper => Self::Paper,
        }
    }
}

/// Where steps come from.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A file.
    File {
        /// Its path, as it was given.
        path: PathBuf,
        /// The split that was taken; all if none.
        split: Option<Split>,
    },
    /// Demonstrated trips and dead ends of a shop.
    Shop {
        /// Of which goals.
        split: Split,
        /// By which rule they were parted.
        splits: SplitRule,
        /// How types are mixed.
        mix: Mix,
        /// Share of dead ends in the natural mix.
        dead_ends: f64,
        /// Whose shop.
        fingerprint: ShopFingerprint,
        /// Over its goals.
        goal_fingerprint: String,
    },
}

impl StepArgs {
    /// The steps, at least one, and where they come from.
    pub fn read(&self) -> Result<(Vec<Sample>, Origin)> {
        ensure!((0.0..=1.0).contains(&self.dead_ends), "`--dead-ends` is a share from 0 to 1");
        let (steps, origin) = match &self.data {
            Some(path) => self.of_file(path)?,
            None => self.of_shop()?,
        };
        ensure!(!steps.is_empty(), "there is no step to judge: {origin} has none");
        Ok((steps, origin))
    }

    fn of_file(&self, path: &Path) -> Result<(Vec<Sample>, Origin)> {
        let split = self.split.map(Split::from).filter(|split| *split != Split::All);
        let mut steps: Vec<Sample> = lines::in_file(path)?;
        steps.retain(|step| split.is_none_or(|split| step.split == split.to_string()));
        steps.truncate(self.steps as usize);
        Ok((steps, Origin::File { path: path.to_owned(), split }))
    }

    fn of_shop(&self) -> Result<(Vec<Sample>, Origin)> {
        let splits = self.splits.rule();
        let ground = Ground::new(self.shop.open_split_by(splits)?, 0, 1)?;
        let split = Split::from(self.split.unwrap_or(SplitArg::Test));
        let mix = Mix::from(self.mix);
        let config = ShopR1Config { mix, dead_ends: self.dead_ends, ..ShopR1Config::default() };
        // The dialects show whole pages, so that whatever a page lists can be demonstrated on it.
        let held_out = Steps::held_out(&ground, RESULTS_PER_PAGE, &config, split, self.steps as usize);
        let steps = held_out.into_iter().map(|(_, step)| step).collect();
        let shop = ground.shop();
        let origin = Origin::Shop {
            split,
            splits,
            mix,
            dead_ends: self.dead_ends,
            fingerprint: shop.fingerprint().clone(),
            goal_fingerprint: shop.goals().fingerprint().into(),
        };
        Ok((steps, origin))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, split: None } => write!(f, "`{}`", path.display()),
            Self::File { path, split: Some(split) } => write!(f, "the split {split} of `{}`", path.display()),
            Self::Shop { split, splits, mix: Mix::Paper, goal_fingerprint, .. } => {
                write!(f, "the split {split} ({splits}), mixed as in the paper, of goals {goal_fingerprint}")
            }
            Self::Shop { split, splits, dead_ends, goal_fingerprint, .. } => {
                let percent = 100.0 * dead_ends;
                write!(
                    f,
                    "the split {split} ({splits}), {percent:.0} % dead ends, of goals {goal_fingerprint}"
                )
            }
        }
    }
}
