//! Flags that name a shop and its goals, shared by the verbs.

use anyhow::{Context, bail};
use webshop_env::{Compat, Shop, ShopConfig};
use webshop_products::{GoalStyle, OriginalWorld, RawData, Split, SplitRule};
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
    /// Which instructions become goals [default: both; in the original's shop, which has no both, synthetic]
    #[arg(long, value_enum)]
    goals: Option<Goals>,
}

/// Which shop, and by which rules it is kept.
#[derive(clap::Args, Clone)]
pub struct RuledShopArgs {
    #[command(flatten)]
    shop: ShopArgs,
    #[command(flatten)]
    compat: CompatArgs,
}

/// Whose rules.
#[derive(clap::Args, Clone, Copy)]
pub struct CompatArgs {
    /// Whose rules: ours, or the original WebShop's with all its oddities
    #[arg(long, value_enum, default_value = "repaired")]
    compat: CompatArg,
}

/// Rules, as the command line names them.
#[derive(clap::ValueEnum, Clone, Copy)]
enum CompatArg {
    Repaired,
    Original,
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
            None | Some(Goals::Both) => GoalsChoice::Both,
            Some(Goals::Human) => GoalsChoice::Human,
            Some(Goals::Synthetic) => GoalsChoice::Synthetic,
        };
        let config = CatalogConfig { goals, splits, ..self.catalog.config() };
        open_shop(&config).with_context(|| cannot_open(&self.catalog.source))
    }
}

impl RuledShopArgs {
    /// Opens the shop with goals parted by our own rule.
    pub fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRule::default())
    }

    /// As [`RuledShopArgs::open`], with goals parted by `splits`.
    pub fn open_split_by(&self, splits: SplitRule) -> anyhow::Result<Shop> {
        match self.compat.rules() {
            Compat::Repaired => self.shop.open_split_by(splits),
            Compat::Original => {
                self.open_original(splits).with_context(|| cannot_open(&self.shop.catalog.source))
            }
        }
    }

    fn open_original(&self, splits: SplitRule) -> anyhow::Result<Shop> {
        let style = match self.shop.goals {
            None | Some(Goals::Synthetic) => GoalStyle::Synthetic,
            Some(Goals::Human) => GoalStyle::Human,
            Some(Goals::Both) => bail!(NEVER_BOTH),
        };
        let config = self.shop.catalog.config();
        let world = OriginalWorld::load(&read_catalog(&config)?, style, ORIGINAL_SEED)?;
        let goals = world.goals.split_by(splits, &world.catalog)?;
        let shop_config =
            ShopConfig { compat: Compat::Original, index_cache: config.index_cache, ..ShopConfig::default() };
        Ok(Shop::with_config(world.catalog, goals, shop_config)?)
    }
}

impl CompatArgs {
    /// The rules.
    pub fn rules(self) -> Compat {
        match self.compat {
            CompatArg::Repaired => Compat::Repaired,
            CompatArg::Original => Compat::Original,
        }
    }
}

/// What the original is seeded with before it loads, as for the recordings.
const ORIGINAL_SEED: u64 = 0;

/// Why `--goals both` is refused under the original's rules.
pub const NEVER_BOTH: &str = "the original has human goals or synthetic ones, never both";

/// What an error is about, when a shop does not open.
pub fn cannot_open(source: &str) -> String {
    format!("cannot open the shop of catalog `{source}`")
}
