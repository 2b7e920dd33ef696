//! Flags that name single-step examples: those of a file, or held-out ones of a shop.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;
use webshop_agent::next_action::Example;
use webshop_env::{RESULTS_PER_PAGE, ShopFingerprint};
use webshop_products::{Split, SplitRule, read_json_lines};
use webshop_training::config::{Config, Mix, ShopR1Config};
use webshop_training::{StepSampler, TaskSet};

use super::shop::{ShopArgs, SplitArg, SplitRuleArgs};

/// Flags that `--data` excludes, by clap's ids.
const OF_A_SHOP: [&str; 8] =
    ["source", "size", "skip_bad", "no_cache", "goals", "split_rule", "mix", "terminate_share"];

/// Which examples.
#[derive(clap::Args)]
pub(crate) struct ExamplesArgs {
    /// Examples in a file, as `webshop shop-r1 data` writes them, instead of those of a shop
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = OF_A_SHOP)]
    data: Option<PathBuf>,
    #[command(flatten)]
    shop: ShopArgs,
    /// Split that the examples are taken from [default: test; of a file: all]
    #[arg(long, value_enum)]
    split: Option<SplitArg>,
    #[command(flatten)]
    split_rule: SplitRuleArgs,
    /// Maximum number of examples, from the start of the file or of the split's fixed order
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    examples: u32,
    /// Proportions of the action types [default: natural]
    #[arg(long, value_enum)]
    mix: Option<MixArg>,
    /// Share of `terminate` examples in the natural mix, from 0 to 1 [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    terminate_share: Option<f64>,
}

/// [`Mix`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
pub(crate) enum MixArg {
    /// As in the episodes, plus the `terminate` examples of `--terminate-share`
    Natural,
    /// As in the paper's test set: about 37 % click, 36 % type_and_submit, 27 % terminate; ignores
    /// `--terminate-share`
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

/// The source of the examples.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// A file.
    File {
        /// Its path, as given.
        path: PathBuf,
        /// The split; all if `None`.
        split: Option<Split>,
    },
    /// Expert episodes and `terminate` examples of a shop.
    Shop {
        /// Split of the goals.
        split: Split,
        /// Rule that divided the goals into splits.
        split_rule: SplitRule,
        /// Proportions of the action types.
        mix: Mix,
        /// Share of `terminate` examples in the natural mix.
        terminate_share: f64,
        /// Digests of the shop, part by part.
        fingerprint: ShopFingerprint,
        /// Digest of the goals.
        goal_fingerprint: String,
    },
}

impl ExamplesArgs {
    /// The examples, at least one, and their source: what the flags name, and where they name nothing what `run` does.
    pub(crate) fn read(&self, run: &Config) -> Result<(Vec<Example>, Origin)> {
        let share = self.terminate_share.unwrap_or_default();
        ensure!((0.0..=1.0).contains(&share), "`--terminate-share` must be from 0 to 1");
        let (examples, origin) = match &self.data {
            Some(path) => self.of_file(path)?,
            None => self.of_shop(run)?,
        };
        ensure!(!examples.is_empty(), "there is no example in {origin}");
        Ok((examples, origin))
    }

    fn of_file(&self, path: &Path) -> Result<(Vec<Example>, Origin)> {
        let split = self.split.map(Split::from).filter(|split| *split != Split::All);
        let mut examples: Vec<Example> = read_json_lines(path)?;
        examples.retain(|example| split.is_none_or(|split| example.split == split.to_string()));
        examples.truncate(self.examples as usize);
        Ok((examples, Origin::File { path: path.to_owned(), split }))
    }

    fn of_shop(&self, run: &Config) -> Result<(Vec<Example>, Origin)> {
        let ground = TaskSet::of_shop(self.shop.open_with_defaults(&run.catalog, self.split_rule)?);
        let split = Split::from(self.split.unwrap_or(SplitArg::Test));
        let mix = self.mix.map_or(run.shop_r1.mix, Mix::from);
        let terminate_share = self.terminate_share.unwrap_or(run.shop_r1.terminate_share);
        let config = ShopR1Config { mix, terminate_share, ..ShopR1Config::default() };
        // The Shop-R1 prompt formats show all results of a page, so the expert may open any of them.
        let held_out =
            StepSampler::held_out(&ground, RESULTS_PER_PAGE, &config, split, self.examples as usize);
        let examples = held_out.into_iter().map(|(_, example)| example).collect();
        let shop = ground.shop();
        let origin = Origin::Shop {
            split,
            split_rule: shop.goals().split_rule(),
            mix,
            terminate_share,
            fingerprint: shop.fingerprint().clone(),
            goal_fingerprint: shop.goals().fingerprint().into(),
        };
        Ok((examples, origin))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, split: None } => write!(f, "`{}`", path.display()),
            Self::File { path, split: Some(split) } => write!(f, "the split {split} of `{}`", path.display()),
            Self::Shop { split, split_rule, mix: Mix::Paper, goal_fingerprint, .. } => {
                write!(
                    f,
                    "the split {split} ({split_rule}), mixed as in the paper, of goals {goal_fingerprint}"
                )
            }
            Self::Shop { split, split_rule, terminate_share, goal_fingerprint, .. } => {
                let percent = 100.0 * terminate_share;
                let goals = format!("goals {goal_fingerprint}");
                write!(f, "the split {split} ({split_rule}), {percent:.0} % terminate examples, of {goals}")
            }
        }
    }
}
