//! Flags that name a shop and the rules it keeps: ours or the original's, with its draws.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use webshop_env::{Compat, NounTable, Shop, ShopConfig};
use webshop_products::{
    GoalKind, GoalRecord, GoalSet, GoalStyle, OriginalWorld, PythonRandom, RawData, Seed,
};
use webshop_training::{open_stock, read_catalog};

use crate::lines;
use crate::shop::{CatalogArgs, CompatArgs, NEVER_BOTH, cannot_open};

/// A shop, and by which rules it is opened.
#[derive(clap::Args, Clone)]
pub struct RulesArgs {
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Which instructions become goals, or a file that holds the original's goals, one a line [default:
    /// both; with `--compat original`, which has no both, synthetic]
    #[arg(long, value_name = "both|human|synthetic|FILE.jsonl")]
    goals: Option<GoalSource>,
    #[command(flatten)]
    compat: CompatArgs,
    /// Draws prices and price limits; the original is seeded with it before it loads
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    nouns: NounsArgs,
}

/// What nouns are, if not what our tagger says.
#[derive(clap::Args, Clone)]
pub struct NounsArgs {
    /// Nouns of titles by another tagger: lines with `name` and `nouns`
    #[arg(long, value_name = "FILE.jsonl")]
    nouns: Option<PathBuf>,
}

impl NounsArgs {
    /// The table, if a file is named.
    pub fn read(&self) -> Result<Option<NounTable>> {
        let Some(file) = &self.nouns else { return Ok(None) };
        let titles = lines::in_file::<TitleNouns>(file)?;
        Ok(Some(NounTable::new(titles.into_iter().map(|line| (line.name, line.nouns)).collect())))
    }
}

/// Where goals come from.
#[derive(Clone)]
enum GoalSource {
    Made(GoalKind),
    File(PathBuf),
}

impl FromStr for GoalSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "both" => Self::Made(GoalKind::Both),
            "human" => Self::Made(GoalKind::Human),
            "synthetic" => Self::Made(GoalKind::Synthetic),
            file => Self::File(file.into()),
        })
    }
}

/// A line of a table of nouns.
#[derive(Deserialize)]
struct TitleNouns {
    name: String,
    nouns: Vec<String>,
}

/// The original's shop, and what else its server has.
pub struct OriginalShop {
    pub shop: Shop,
    /// How many goals can be asked for by number.
    pub n_goals: usize,
    pub random: PythonRandom,
}

impl RulesArgs {
    /// The rules alone.
    pub fn compat(&self) -> Compat {
        self.compat.rules()
    }

    /// Loads the catalog, makes or reads the goals, and builds the index.
    pub fn open(&self) -> Result<Shop> {
        match self.compat() {
            Compat::Repaired => self.open_repaired().with_context(|| cannot_open(&self.catalog.source)),
            Compat::Original => Ok(self.open_original(&[], false)?.shop),
        }
    }

    /// Opens the original's shop, whatever rules are asked for. `own_goals` stand behind those that can be
    /// asked for.
    pub fn open_original(&self, own_goals: &[GoalRecord], shows_attributes: bool) -> Result<OriginalShop> {
        let open = || {
            let data = self.read()?;
            let mut world = match &self.goals {
                None | Some(GoalSource::Made(GoalKind::Synthetic)) => {
                    OriginalWorld::load(&data, GoalStyle::Synthetic, self.seed)?
                }
                Some(GoalSource::Made(GoalKind::Human)) => {
                    OriginalWorld::load(&data, GoalStyle::Human, self.seed)?
                }
                Some(GoalSource::Made(GoalKind::Both)) => {
                    bail!(NEVER_BOTH)
                }
                Some(GoalSource::File(file)) => {
                    let goals: Vec<GoalRecord> = lines::in_file(file)?;
                    OriginalWorld::with_goals(&data, &goals, self.seed)?
                }
            };
            let n_goals = world.goals.goals().len();
            world.append(own_goals)?;
            let config = ShopConfig { compat: Compat::Original, shows_attributes, ..self.shop_config()? };
            let shop = Shop::with_config(world.catalog, world.goals, config)?;
            Ok(OriginalShop { shop, n_goals, random: world.random })
        };
        open().with_context(|| cannot_open(&self.catalog.source))
    }

    fn open_repaired(&self) -> Result<Shop> {
        let kind = match &self.goals {
            Some(GoalSource::Made(kind)) => *kind,
            None | Some(GoalSource::File(_)) => GoalKind::Both,
        };
        let stock = open_stock(&self.catalog.config(), kind, Seed(self.seed))?;
        let (catalog, goals) = match &self.goals {
            None | Some(GoalSource::Made(_)) => stock.into_goals()?,
            Some(GoalSource::File(file)) => {
                let catalog = stock.into_catalog();
                let goals = lines::in_file::<GoalRecord>(file)?;
                let goals = goals.iter().map(|goal| Ok(goal.to_goal(&catalog)?));
                let goals = GoalSet::numbered(&catalog, goals.collect::<Result<_>>()?);
                (catalog, goals)
            }
        };
        Ok(Shop::with_config(catalog, goals, self.shop_config()?)?)
    }

    fn read(&self) -> Result<RawData> {
        Ok(read_catalog(&self.catalog.config())?)
    }

    /// What holds under either rules.
    fn shop_config(&self) -> Result<ShopConfig> {
        let nouns = self.nouns.read()?.unwrap_or_default();
        let index_cache = self.catalog.config().index_cache;
        Ok(ShopConfig { nouns, index_cache, ..ShopConfig::default() })
    }
}
