//! Flags of the commands that compare with the original WebShop: any goals, either rules, and the original's
//! seed.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use webshop_env::{Compat, NounTable, Shop, ShopConfig};
use webshop_products::{
    GoalKind, GoalRecord, GoalSet, GoalStyle, OriginalWorld, RawData, Seed, read_json_lines,
};
use webshop_pycompat::PythonRandom;
use webshop_training::{open_catalog_source, read_catalog};

use super::shop::{CatalogArgs, CompatArgs, NOT_BOTH_STYLES, cannot_open};

/// A catalog, its goals, and the rules of the shop.
#[derive(clap::Args, Clone)]
pub(crate) struct RulesArgs {
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Which instructions become goals: written by people, generated, or both; or a file of goals in the
    /// original WebShop's form, one JSON object per line [default: both; with `--compat original`: synthetic]
    #[arg(long, value_name = "both|human|synthetic|FILE.jsonl")]
    goals: Option<GoalSource>,
    #[command(flatten)]
    compat: CompatArgs,
    /// Seed of prices and price limits; with `--compat original`, of Python's generator before the shop loads
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    nouns: NounsArgs,
}

/// Nouns of product titles, if not by the built-in tagger.
#[derive(clap::Args, Clone)]
pub(crate) struct NounsArgs {
    /// Nouns of product titles by another part-of-speech tagger, which the title part of the reward uses: one
    /// JSON object per line with `name` (the title) and `nouns` (a list)
    #[arg(long, value_name = "FILE.jsonl")]
    nouns: Option<PathBuf>,
}

impl NounsArgs {
    /// The table of the file; `None` if no file is given.
    pub(crate) fn read(&self) -> Result<Option<NounTable>> {
        Ok(self.nouns.as_deref().map(NounTable::read).transpose()?)
    }
}

/// The source of goals.
#[derive(Clone)]
enum GoalSource {
    Instructions(GoalKind),
    File(PathBuf),
}

impl FromStr for GoalSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "both" => Self::Instructions(GoalKind::Both),
            "human" => Self::Instructions(GoalKind::Human),
            "synthetic" => Self::Instructions(GoalKind::Synthetic),
            file => Self::File(file.into()),
        })
    }
}

/// The goals of a file.
fn read_goals(file: &Path) -> Result<Vec<GoalRecord>> {
    let read = read_json_lines(file);
    read.context("`--goals` takes `both`, `human`, `synthetic` or a file of goals")
}

/// A shop under the original rules, with the state of the original's server.
pub(crate) struct OriginalShop {
    pub(crate) shop: Shop,
    /// Number of goals that a session may name by number; appended goals come after them.
    pub(crate) n_goals: usize,
    /// Python's generator, in its state after loading.
    pub(crate) random: PythonRandom,
}

impl RulesArgs {
    /// The rules.
    pub(crate) fn compat(&self) -> Compat {
        self.compat.rules()
    }

    /// Loads the catalog, makes or reads the goals, and builds the index.
    pub(crate) fn open(&self) -> Result<Shop> {
        match self.compat() {
            Compat::Repaired => {
                self.open_repaired().with_context(|| cannot_open(&self.catalog.config().source))
            }
            Compat::Original => Ok(self.open_original(&[], false)?.shop),
        }
    }

    /// Opens the shop under the original rules, whatever `--compat` says. `own_goals` are appended to the
    /// goals that sessions may name by number.
    pub(crate) fn open_original(
        &self,
        own_goals: &[GoalRecord],
        shows_attributes: bool,
    ) -> Result<OriginalShop> {
        let open = || {
            let data = self.read()?;
            let mut world = match &self.goals {
                None | Some(GoalSource::Instructions(GoalKind::Synthetic)) => {
                    OriginalWorld::load(&data, GoalStyle::Synthetic, self.seed)?
                }
                Some(GoalSource::Instructions(GoalKind::Human)) => {
                    OriginalWorld::load(&data, GoalStyle::Human, self.seed)?
                }
                Some(GoalSource::Instructions(GoalKind::Both)) => {
                    bail!(NOT_BOTH_STYLES)
                }
                Some(GoalSource::File(file)) => {
                    let goals = read_goals(file)?;
                    OriginalWorld::with_goals(&data, &goals, self.seed)?
                }
            };
            let n_goals = world.goals.goals().len();
            world.append(own_goals)?;
            let config = ShopConfig { compat: Compat::Original, shows_attributes, ..self.shop_config()? };
            let shop = Shop::with_config(world.catalog, world.goals, config)?;
            Ok(OriginalShop { shop, n_goals, random: world.random })
        };
        open().with_context(|| cannot_open(&self.catalog.config().source))
    }

    fn open_repaired(&self) -> Result<Shop> {
        let kind = match &self.goals {
            Some(GoalSource::Instructions(kind)) => *kind,
            None | Some(GoalSource::File(_)) => GoalKind::Both,
        };
        let source = open_catalog_source(&self.catalog.config(), kind, Seed(self.seed))?;
        let (catalog, goals) = match &self.goals {
            None | Some(GoalSource::Instructions(_)) => source.into_goals()?,
            Some(GoalSource::File(file)) => {
                let catalog = source.into_catalog();
                let goals = read_goals(file)?;
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

    /// The part of the configuration that both rules share.
    fn shop_config(&self) -> Result<ShopConfig> {
        let nouns = self.nouns.read()?.unwrap_or_default();
        let cache = self.catalog.config().cache;
        Ok(ShopConfig { nouns, cache, ..ShopConfig::default() })
    }
}
