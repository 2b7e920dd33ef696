//! `webshop catalog`: generates and inspects product catalogs.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use webshop_env::{DeviationReport, NounReference, SearchStatistics};
use webshop_products::{
    CatalogReport, CatalogStatistics, GoalStyle, OriginalWorld, PARTIAL, Seed, write_generated,
};

use crate::args::rules::NounsArgs;
use crate::args::shop::{ShopArgs, SplitRuleArgs};
use crate::output::outln;

/// Widths of the columns of a comparison.
const WHAT_WIDTH: usize = 52;
const NUMBER_WIDTH: usize = 20;
/// The most products of a generated catalog: several times those of the full original.
const MAX_PRODUCTS: u64 = 10_000_000;

/// The commands of `webshop catalog`.
#[derive(clap::Subcommand)]
pub(crate) enum CatalogCommand {
    /// Generate a catalog and write it as three JSON files in the original WebShop's form
    Generate {
        /// Seed of the generator; the embedded catalogs have seed 0
        #[arg(long, default_value_t = 0, value_name = "N")]
        seed: u64,
        /// Number of products
        #[arg(long, default_value_t = 1000, value_name = "N",
              value_parser = clap::value_parser!(u64).range(1..=MAX_PRODUCTS))]
        products: u64,
        /// Number of products that have human instructions, two to twelve each; some thousands of the
        /// original's million products do [default: all]
        #[arg(long, value_name = "N")]
        instructed: Option<usize>,
        /// Folder to write; must be empty or absent
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print statistics of a catalog: departments, product types, options, prices, goals, near-duplicates,
    /// digest
    Inspect {
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        split_rule: SplitRuleArgs,
        /// Compare with the catalog of this folder: what makes a shop easy or hard, in two columns
        #[arg(long, value_name = "DIR")]
        against: Option<String>,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Count, for each deviation from the original WebShop, the goals it affects, and the product pairs whose
    /// title reward depends on the part-of-speech tagger
    Deviations {
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        nouns: NounsArgs,
        /// Print one JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// Runs a command.
pub(crate) fn run(command: CatalogCommand) -> anyhow::Result<ExitCode> {
    match command {
        CatalogCommand::Generate { seed, products, instructed, out } => {
            generate(Seed(seed), usize::try_from(products)?, instructed, &out)?;
        }
        CatalogCommand::Inspect { shop, split_rule, against: None, json } => {
            let shop = shop.open_split_by(split_rule)?;
            print(&CatalogReport::new(shop.catalog(), shop.goals()), json)?;
        }
        CatalogCommand::Inspect { shop, split_rule, against: Some(other), json } => {
            let catalogs =
                [Column::open(&shop, split_rule)?, Column::open(&shop.of_catalog(other), split_rule)?];
            print(&Comparison { catalogs }, json)?;
        }
        CatalogCommand::Deviations { shop, nouns, json } => {
            let world = OriginalWorld::load(&shop.read()?, GoalStyle::Synthetic, 0)?;
            let nouns = nouns.read()?.map_or(NounReference::EveryWord, NounReference::Table);
            print(&DeviationReport::new(&shop.open()?, &world, &nouns)?, json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(seed: Seed, n_products: usize, n_instructed: Option<usize>, out: &Path) -> anyhow::Result<()> {
    // An interrupted command may have left incomplete files, which are written again.
    let is_incomplete = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PARTIAL);
    if out.read_dir().is_ok_and(|entries| entries.flatten().any(|entry| !is_incomplete(&entry))) {
        bail!("`{}` is not empty; name another folder with `--out`", out.display());
    }
    write_generated(seed, n_products, n_instructed.unwrap_or(n_products), out)
        .with_context(|| format!("cannot write the catalog to `{}`", out.display()))?;
    outln!("{n_products} products in {}", out.display())
}

/// Two catalogs side by side.
#[derive(Serialize)]
struct Comparison {
    catalogs: [Column; 2],
}

/// The statistics of one of them.
#[derive(Serialize)]
struct Column {
    name: String,
    #[serde(flatten)]
    catalog: CatalogStatistics,
    search: SearchStatistics,
}

impl Column {
    fn open(shop: &ShopArgs, rule: SplitRuleArgs) -> anyhow::Result<Self> {
        let name = shop.source();
        let shop = shop.open_split_by(rule)?;
        let catalog = CatalogStatistics::new(shop.catalog(), shop.goals());
        Ok(Self { name, catalog, search: SearchStatistics::new(&shop) })
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.catalogs;
        let rows = |column: &Column| {
            let name = [("", column.name.clone())];
            name.into_iter().chain(column.catalog.rows()).chain(column.search.rows())
        };
        let lines = rows(one).zip(rows(other)).map(|((what, one), (_, other))| {
            format!("{what:<WHAT_WIDTH$}  {one:<NUMBER_WIDTH$}  {other}").trim_end().to_owned()
        });
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

fn print(report: &(impl Display + Serialize), as_json: bool) -> anyhow::Result<()> {
    if as_json { outln!("{}", serde_json::to_string(report)?) } else { outln!("{report}") }
}
