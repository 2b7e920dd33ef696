//! Flags that name a shop and its goals, shared by the verbs.

use anyhow::Context;
use webshop_env::Shop;
use webshop_products::Split;
use webshop_training::{CatalogConfig, CatalogSize, GoalsChoice, open_shop};

/// What is sold.
#[derive(clap::Args, Clone)]
pub struct CatalogArgs {
    /// `100` or `1000` for an embedded catalog, or a folder with the original's three JSON files
    #[arg(long = "catalog", default_value = "100", value_name = "100|1000|DIR")]
    pub source: String,
    /// Keep only the first N products
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
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
    /// Loads the catalog, makes the goals and builds the index.
    pub fn open(&self) -> anyhow::Result<Shop> {
        let goals = match self.goals {
            Goals::Both => GoalsChoice::Both,
            Goals::Human => GoalsChoice::Human,
            Goals::Synthetic => GoalsChoice::Synthetic,
        };
        let CatalogArgs { source, size } = &self.catalog;
        let size = size.map_or(CatalogSize::All, CatalogSize::First);
        let config = CatalogConfig { source: source.clone(), size, goals, ..CatalogConfig::default() };
        open_shop(&config).with_context(|| cannot_open(source))
    }
}

/// What an error is about, when a shop does not open.
pub fn cannot_open(source: &str) -> String {
    format!("cannot open the shop of catalog `{source}`")
}
