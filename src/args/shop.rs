//! Flags that name a catalog, the goals over it, and the rules of the shop.

use std::path::Path;

use anyhow::{Context, bail};
use webshop_env::{Compat, Shop};
use webshop_products::{EmbeddedCatalog, RawData, Split, SplitRule};
use webshop_training::config::{CatalogConfig, CatalogSize, GoalsChoice};
use webshop_training::{open_shop, read_catalog};

use super::cache::CacheArgs;

/// The catalog.
#[derive(clap::Args, Clone)]
pub(crate) struct CatalogArgs {
    /// Product catalog: `100` or `1000` for an embedded generated one of that many products, or a folder with
    /// the original WebShop's three JSON files [default: 100]
    #[arg(long = "catalog", value_name = "100|1000|DIR")]
    source: Option<String>,
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
        self.config_or(&CatalogConfig::default())
    }

    /// The catalog of `run`, unless the flags name one, and its other keys.
    fn config_or(&self, run: &CatalogConfig) -> CatalogConfig {
        let (source, size, skip_bad) = match &self.source {
            Some(source) => (source, CatalogSize::All, false),
            None => (&run.source, run.size, run.skip_bad),
        };
        CatalogConfig {
            source: source.clone(),
            size: self.size.map_or(size, CatalogSize::First),
            skip_bad: self.skip_bad || skip_bad,
            cache: self.cache.folder_for(source),
            ..run.clone()
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
#[derive(clap::Args, Clone, Copy, Default)]
pub(crate) struct CompatArgs {
    /// Rules of the shop [default: repaired]
    #[arg(long, value_enum, value_name = "RULES")]
    compat: Option<CompatArg>,
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
#[derive(clap::Args, Clone, Copy, Default)]
pub(crate) struct SplitRuleArgs {
    /// Rule that divides the goals into train, validation and test [default: by-family]
    #[arg(long = "split-rule", value_enum, value_name = "NAME")]
    split_rule: Option<SplitRuleArg>,
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
    /// The rule of a run, unless the flag names one.
    fn rule_or(self, run: SplitRule) -> SplitRule {
        match self.split_rule {
            None => run,
            Some(SplitRuleArg::ByFamily) => SplitRule::ByFamily,
            Some(SplitRuleArg::ByProduct) => SplitRule::ByProduct,
            Some(SplitRuleArg::Paper) => SplitRule::Paper,
            Some(SplitRuleArg::VerlAgent) => SplitRule::VerlAgent,
        }
    }
}

impl ShopArgs {
    /// The catalog's name as it was given.
    pub(crate) fn source(&self) -> String {
        self.catalog.config().source
    }

    /// The same with another catalog, whole.
    pub(crate) fn of_catalog(&self, source: String) -> Self {
        let catalog = CatalogArgs { source: Some(source), size: None, ..self.catalog.clone() };
        Self { catalog, ..self.clone() }
    }

    /// The raw records of the catalog.
    pub(crate) fn read(&self) -> anyhow::Result<RawData> {
        read_catalog(&self.catalog.config()).with_context(|| cannot_open(&self.source()))
    }

    /// Loads the catalog, makes the goals, splits them by the default rule, and builds the search index.
    pub(crate) fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRuleArgs::default())
    }

    /// Like [`ShopArgs::open`], with another split rule.
    pub(crate) fn open_split_by(&self, rule: SplitRuleArgs) -> anyhow::Result<Shop> {
        self.open_with_defaults(&CatalogConfig::default(), rule)
    }

    /// The shop of a run, where the flags name no other.
    pub(crate) fn open_with_defaults(
        &self,
        run: &CatalogConfig,
        rule: SplitRuleArgs,
    ) -> anyhow::Result<Shop> {
        self.open_with(CompatArgs::default(), run, rule)
    }

    fn open_with(&self, rules: CompatArgs, run: &CatalogConfig, rule: SplitRuleArgs) -> anyhow::Result<Shop> {
        let goals = match (self.goals, rules.compat) {
            (Some(GoalsArg::Both), _) | (None, Some(CompatArg::Repaired)) => GoalsChoice::Both,
            (Some(GoalsArg::Synthetic), _) | (None, Some(CompatArg::Original)) => GoalsChoice::Synthetic,
            (Some(GoalsArg::Human), _) => GoalsChoice::Human,
            (None, None) => run.goals,
        };
        let config = CatalogConfig {
            goals,
            compat: rules.rules_or(run.compat),
            split_rule: rule.rule_or(run.split_rule),
            ..self.catalog.config_or(run)
        };
        let open = || match (config.compat, config.goals) {
            (Compat::Original, GoalsChoice::Both) => bail!(NOT_BOTH_STYLES),
            _ => Ok(open_shop(&config)?),
        };
        open().with_context(|| cannot_open(&config.source))
    }
}

impl RuledShopArgs {
    /// Opens the shop with goals split by the default rule.
    pub(crate) fn open(&self) -> anyhow::Result<Shop> {
        self.open_split_by(SplitRuleArgs::default())
    }

    /// Like [`RuledShopArgs::open`], with another split rule.
    pub(crate) fn open_split_by(&self, rule: SplitRuleArgs) -> anyhow::Result<Shop> {
        self.open_with_defaults(&CatalogConfig::default(), rule)
    }

    /// The shop of a run, where the flags name no other. Goals are those of the run only under its own rules.
    pub(crate) fn open_with_defaults(
        &self,
        run: &CatalogConfig,
        rule: SplitRuleArgs,
    ) -> anyhow::Result<Shop> {
        self.shop.open_with(self.compat, run, rule)
    }
}

impl CompatArgs {
    /// The rules.
    pub(crate) fn rules(self) -> Compat {
        self.rules_or(Compat::Repaired)
    }

    /// The rules of a run, unless the flag names others.
    fn rules_or(self, run: Compat) -> Compat {
        match self.compat {
            None => run,
            Some(CompatArg::Repaired) => Compat::Repaired,
            Some(CompatArg::Original) => Compat::Original,
        }
    }
}

/// Error of `--goals both` with `--compat original`.
pub(crate) const NOT_BOTH_STYLES: &str =
    "the original rules have human goals or synthetic goals, not both; give `--goals human` or `synthetic`";

/// Error context when a shop cannot be opened.
pub(crate) fn cannot_open(source: &str) -> String {
    let is_known = EmbeddedCatalog::named(source).is_some() || Path::new(source).is_dir();
    let other =
        if is_known { "" } else { ", which is no folder and neither `100` nor `1000`, the embedded ones" };
    format!("cannot open the shop of catalog `{source}`{other}")
}
