//! `[catalog]`: the evaluated shop, and the shops beside it whose goals are training goals.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webshop_env::Compat;
use webshop_products::{GoalKind, GoalStyle, SplitRule};

/// `[catalog]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogConfig {
    /// `100` or `1000` for an embedded catalog, anything else is a folder with the three JSON files.
    pub source: String,
    /// How many of the source's products to keep, in file order.
    pub size: CatalogSize,
    /// Which of the source's goals to use.
    pub goals: GoalsChoice,
    /// The rules of the source's shop. Those of the original draw prices and goals as the original does.
    pub compat: Compat,
    /// The rule that splits goals into training, validation and test goals.
    pub split_rule: SplitRule,
    /// Whether malformed records are skipped and counted; else the first one is an error.
    pub skip_bad: bool,
    /// Whether the training split of the source is trained on and demonstrated; else only auxiliary shops are.
    pub train_on_source: bool,
    /// Shops whose goals are training goals.
    pub auxiliary_shops: usize,
    /// Where their products come from.
    pub auxiliary_source: AuxiliarySource,
    /// Products in each auxiliary shop, and in each generated shop of evaluations and of the judgement.
    pub auxiliary_products: usize,
    /// `TrainingProducts`: share of these shops whose words are permuted, 0 to 1.
    pub auxiliary_permuted_share: f64,
    /// Share of the permuted words that are coined, so that no other text has them, 0 to 1.
    pub auxiliary_coined_share: f64,
    /// Training goals of one product in each auxiliary shop at most; 0 for all.
    pub auxiliary_goals_per_product: usize,
    /// A folder in which the source and its search index are cached from run to run. No part of the experiment, so no
    /// key.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self {
            source: "100".into(),
            size: CatalogSize::All,
            goals: GoalsChoice::Both,
            compat: Compat::Repaired,
            split_rule: SplitRule::ByFamily,
            skip_bad: false,
            train_on_source: false,
            auxiliary_shops: 120,
            auxiliary_source: AuxiliarySource::Generator,
            auxiliary_products: 100,
            auxiliary_permuted_share: 0.0,
            auxiliary_coined_share: 0.0,
            auxiliary_goals_per_product: 0,
            cache: None,
        }
    }
}

/// How many products of a source are kept; written `"all"` or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CatalogSize {
    /// Every product of the source.
    All,
    /// The first so many, at least one.
    First(usize),
}

impl CatalogSize {
    /// The number of products to keep, or `None` for all of them.
    pub fn limit(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::First(n) => Some(n),
        }
    }
}

impl TryFrom<String> for CatalogSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse() {
            Ok(n) if n > 0 => Ok(Self::First(n)),
            _ if text == "all" => Ok(Self::All),
            _ => Err(format!("must be `all` or a number of products from 1, not `{text}`")),
        }
    }
}

impl From<CatalogSize> for String {
    fn from(size: CatalogSize) -> Self {
        match size {
            CatalogSize::All => "all".into(),
            CatalogSize::First(n) => n.to_string(),
        }
    }
}

/// Where the products of auxiliary shops come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuxiliarySource {
    /// The generator; none of them is in the source's shop.
    Generator,
    /// The source's products without validation or test goals, drawn anew for each shop.
    TrainingProducts,
}

/// Which instructions become goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalsChoice {
    /// Human and synthetic ones.
    Both,
    /// Only those that people wrote.
    Human,
    /// Only those made from attributes and options.
    Synthetic,
}

impl GoalsChoice {
    /// The one style of the goals; `None` for both.
    pub(crate) fn style(self) -> Option<GoalStyle> {
        match self {
            Self::Both => None,
            Self::Human => Some(GoalStyle::Human),
            Self::Synthetic => Some(GoalStyle::Synthetic),
        }
    }

    /// The same for a goal set.
    pub(crate) fn kind(self) -> GoalKind {
        match self {
            Self::Both => GoalKind::Both,
            Self::Human => GoalKind::Human,
            Self::Synthetic => GoalKind::Synthetic,
        }
    }
}
