//! Flags that name a shop and its goals, shared by the verbs.

use anyhow::Context;
use webshop_env::Shop;
use webshop_products::{RawData, Split, SplitRule};
use webshop_training::{CatalogConfig, CatalogSize, GoalsChoice, open_shop, read_catalog};

use crate::cache::CacheArgs;

/// What is sold.
#[derive(clap::Args, Clone)]
pub struct CatalogArgs {
    /// `100` or `1000` for an embedded catalog, or a folder with the original's three JSON files
    #[arg(long = "catalog", default_value = "100", value_name = "100|1000|DIR")]
    pub source: String,
    /// Keep only the first N products
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Drop malformed records of a folder and count them, instead of refusing the first
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    cache: CacheArgs,
}

impl CatalogArgs {
    /// What is sold, as an experiment would say it.
    pub fn config(&self) -> CatalogConfig {
        CatalogConfig {
            source: self.source.clone(),
            size: self.size.map_or(CatalogSize::All, CatalogSize::First),
            skip_bad: self.skip_bad,
            index_cache: self.cache.folder_for(&self.source),
            ..CatalogConfig::default()
        }
    }
}

/// Which shop.
#[derive(clap::Args, Clone)]
pub struct ShopArgs {
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Which instructions become goals
    #[arg(long, value_enum, default_value = "both")]
    goals: Goals,
}

/// Goal styles, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum Goals {
    Both,
    Human,
    Synthetic,
}

/// Splits, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
pub enum SplitArg {
    Train,
    Validation,
    Test,
    All,
}

/// Rules to split by, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum Splits {
    /// Disjoint by product: 60 % to train on, 10 % for validation, 30 % for testing
    ByProduct,
    /// The paper's: shuffled, then 500 goals for testing, 1000 for validation, the rest to train on
    Paper,
    /// verl-agent's, leaky: every worker shuffles anew, so that test goals are trained on
    VerlAgent,
}

/// Who is trained on and who is measured on.
#[derive(clap::Args, Clone, Copy)]
pub struct SplitsArgs {
    /// By which rule goals are parted
    #[arg(long, value_enum, default_value = "by-product", value_name = "NAME")]
    splits: Splits,
}

impl SplitsArgs {
    /// The rule.
    pub fn rule(self) -> SplitRule {
        match self.splits {
            Splits::ByProduct => SplitRule::ByProduct,
            Splits::Paper => SplitRule::Paper,
            Splits::VerlAgent => SplitRule::VerlAgent,
        }
    }
}

impl From<SplitArg> for Split {
    fn from(split: SplitArg) -> Self {
        match split {
            SplitArg::Train => Self::Train,
            SplitArg::Validation => Self::Validation,
            SplitArg::Test => Self::Test,
            SplitArg::All => Self::All,
        }
    }
}

impl ShopArgs {
    /// The files, or the embedded catalog.
    pub fn read(&self) -> anyhow::Result<RawData> {
        read_catalog(&self.catalog.config()).with_context(|| cannot_open(&self.catalog.source))
    }

    /// Loads the catalog, makes the goals, parts them by our own rule, and builds the index.
    pub fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRule::default())
    }

    /// As [`ShopArgs::open`], with goals parted by `splits`.
    pub fn open_split_by(&self, splits: SplitRule) -> anyhow::Result<Shop> {
        let goals = match self.goals {
            Goals::Both => GoalsChoice::Both,
            Goals::Human => GoalsChoice::Human,
            Goals::Synthetic => GoalsChoice::Synthetic,
        };
        let config = CatalogConfig { goals, splits, ..self.catalog.config() };
        open_shop(&config).with_context(|| cannot_open(&self.catalog.source))
    }
}

/// What an error is about, when a shop does not open.
pub fn cannot_open(source: &str) -> String {
    format!("cannot open the shop of catalog `{source}`")
}
