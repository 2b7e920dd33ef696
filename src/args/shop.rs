//! Flags that name a catalog, the goals over it, and the rules of the shop.

use anyhow::{Context, bail};
use webshop_env::{Compat, Shop};
use webshop_products::{RawData, Split, SplitRule};
use webshop_training::config::{CatalogConfig, CatalogSize, GoalsChoice};
use webshop_training::{open_shop, read_catalog};

use super::cache::CacheArgs;

/// The catalog.
#[derive(clap::Args, Clone)]
pub(crate) struct CatalogArgs {
    /// Product catalog: `100` or `1000` for an embedded generated one of that many products, or a folder with
    /// the original WebShop's three JSON files
    #[arg(long = "catalog", default_value = "100", value_name = "100|1000|DIR")]
    pub(crate) source: String,
    /// Use only the first N products of the catalog [default: all]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Skip malformed records in a catalog folder and count them, instead of stopping at the first
    #[arg(long)]
    skip_bad: bool,
    #[command(flatten)]
    cache: CacheArgs,
}

impl CatalogArgs {
    /// The same catalog as a section of a training configuration.
    pub(crate) fn config(&self) -> CatalogConfig {
        CatalogConfig {
            source: self.source.clone(),
            size: self.size.map_or(CatalogSize::All, CatalogSize::First),
            skip_bad: self.skip_bad,
            cache: self.cache.folder_for(&self.source),
            ..CatalogConfig::default()
        }
    }
}

/// A catalog and its goals, under the repaired rules.
#[derive(clap::Args, Clone)]
pub(crate) struct ShopArgs {
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Which instructions become goals: written by people, generated, or both [default: both; with `--compat
    /// original`: synthetic]
    #[arg(long, value_enum)]
    goals: Option<GoalsArg>,
}

/// A catalog and its goals, under either rules.
#[derive(clap::Args, Clone)]
pub(crate) struct RuledShopArgs {
    #[command(flatten)]
    shop: ShopArgs,
    #[command(flatten)]
    compat: CompatArgs,
}

/// The rules of the shop.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct CompatArgs {
    /// Rules of the shop
    #[arg(long, value_enum, default_value = "repaired", value_name = "RULES")]
    compat: CompatArg,
}

/// [`Compat`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum CompatArg {
    /// The defects of the original WebShop are repaired; `webshop catalog deviations` lists them
    Repaired,
    /// Those of the original WebShop, defects included
    Original,
}

/// [`GoalsChoice`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum GoalsArg {
    Both,
    Human,
    Synthetic,
}

/// [`Split`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
pub(crate) enum SplitArg {
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

/// The rule that divides goals into training, validation and test goals.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct SplitRuleArgs {
    /// Rule that divides the goals into train, validation and test
    #[arg(long = "split-rule", value_enum, default_value = "by-family", value_name = "NAME")]
    split_rule: SplitRuleArg,
}

/// [`SplitRule`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
enum SplitRuleArg {
    /// By family, so that neither a product nor one with the same title, or the same query and brand, has goals
    /// in two splits: 60 % train, 10 % validation, 30 % test
    ByFamily,
    /// By product, so that no product has goals in two splits, but near-copies may: 60 %, 10 %, 30 %
    ByProduct,
    /// As in the WebShop paper: goals are shuffled; 500 test, 1000 validation, the rest train
    Paper,
    /// As in verl-agent, which leaks: each worker shuffles the goals again, so test goals occur in training
    VerlAgent,
}

impl SplitRuleArgs {
    /// The rule.
    pub(crate) fn rule(self) -> SplitRule {
        match self.split_rule {
            SplitRuleArg::ByFamily => SplitRule::ByFamily,
            SplitRuleArg::ByProduct => SplitRule::ByProduct,
            SplitRuleArg::Paper => SplitRule::Paper,
            SplitRuleArg::VerlAgent => SplitRule::VerlAgent,
        }
    }
}

impl ShopArgs {
    /// The catalog's name as it was given.
    pub(crate) fn source(&self) -> &str {
        &self.catalog.source
    }

    /// The same with another catalog, whole.
    pub(crate) fn of_catalog(&self, source: String) -> Self {
        let catalog = CatalogArgs { source, size: None, ..self.catalog.clone() };
        Self { catalog, ..self.clone() }
    }

    /// The raw records of the catalog.
    pub(crate) fn read(&self) -> anyhow::Result<RawData> {
        read_catalog(&self.catalog.config()).with_context(|| cannot_open(&self.catalog.source))
    }

    /// Loads the catalog, makes the goals, splits them by the default rule, and builds the search index.
    pub(crate) fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRule::default())
    }

    /// Like [`ShopArgs::open`], with another split rule.
    pub(crate) fn open_split_by(&self, rule: SplitRule) -> anyhow::Result<Shop> {
        let goals = match self.goals {
            None | Some(GoalsArg::Both) => GoalsChoice::Both,
            Some(GoalsArg::Human) => GoalsChoice::Human,
            Some(GoalsArg::Synthetic) => GoalsChoice::Synthetic,
        };
        let config = CatalogConfig { goals, split_rule: rule, ..self.catalog.config() };
        open_shop(&config).with_context(|| cannot_open(&self.catalog.source))
    }
}

impl RuledShopArgs {
    /// Opens the shop with goals split by the default rule.
    pub(crate) fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRule::default())
    }

    /// Like [`RuledShopArgs::open`], with another split rule.
    pub(crate) fn open_split_by(&self, rule: SplitRule) -> anyhow::Result<Shop> {
        match self.compat.rules() {
            Compat::Repaired => self.shop.open_split_by(rule),
            Compat::Original => {
                self.open_original(rule).with_context(|| cannot_open(&self.shop.catalog.source))
            }
        }
    }

    fn open_original(&self, rule: SplitRule) -> anyhow::Result<Shop> {
        let goals = match self.shop.goals {
            None | Some(GoalsArg::Synthetic) => GoalsChoice::Synthetic,
            Some(GoalsArg::Human) => GoalsChoice::Human,
            Some(GoalsArg::Both) => bail!(NOT_BOTH_STYLES),
        };
        let config = self.shop.catalog.config();
        Ok(open_shop(&CatalogConfig { goals, compat: Compat::Original, split_rule: rule, ..config })?)
    }
}

impl CompatArgs {
    /// The rules.
    pub(crate) fn rules(self) -> Compat {
        match self.compat {
            CompatArg::Repaired => Compat::Repaired,
            CompatArg::Original => Compat::Original,
        }
    }
}

/// Error of `--goals both` with `--compat original`.
pub(crate) const NOT_BOTH_STYLES: &str =
    "the original rules have human goals or synthetic goals, not both; give `--goals human` or `synthetic`";

/// Error context when a shop cannot be opened.
pub(crate) fn cannot_open(source: &str) -> String {
    format!("cannot open the shop of catalog `{source}`")
}
