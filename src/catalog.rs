//! `webshop catalog`: makes catalogs and looks at them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use webshop_env::{DeviationReport, NounReference};
use webshop_products::{CatalogReport, GoalStyle, OriginalWorld, Seed, write_generated};

use crate::answer::answer;
use crate::rules::NounsArgs;
use crate::shop::{ShopArgs, SplitsArgs};

/// What to do with a catalog.
#[derive(clap::Subcommand)]
pub enum CatalogVerb {
    /// Write a generated catalog as the original's three JSON files
    Generate {
        /// The seed; the embedded catalogs have seed 0
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// How many products
        #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        products: u64,
        /// How many of them people ask for, each in a dozen ways; all, unless given. Of the original's million it is
        /// some thousands
        #[arg(long, value_name = "N")]
        instructed: Option<usize>,
        /// The folder to write; must not hold a catalog yet
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print what a catalog holds: departments, types, options, prices, goals, near-duplicates, fingerprint
    Inspect {
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        splits: SplitsArgs,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Count the goals that each deviation of the shop from the original touches, and the pairs of products whose
    /// likeness hangs on what a noun is
    Deviations {
        #[command(flatten)]
        shop: ShopArgs,
        #[command(flatten)]
        nouns: NounsArgs,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// Carries out the verb.
pub fn run(verb: CatalogVerb) -> anyhow::Result<ExitCode> {
    match verb {
        CatalogVerb::Generate { seed, products, instructed, out } => {
            if out.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
                bail!("`{}` is not empty; give another folder with `--out`", out.display());
            }
            let n_products = usize::try_from(products)?;
            write_generated(Seed(seed), n_products, instructed.unwrap_or(n_products), &out)
                .with_context(|| format!("cannot write the catalog to `{}`", out.display()))?;
            answer!("{products} products in {}", out.display())?;
        }
        CatalogVerb::Inspect { shop, splits, json } => {
            let shop = shop.open_split_by(splits.rule())?;
            let report = CatalogReport::new(shop.catalog(), shop.goals());
            if json {
                answer!("{}", serde_json::to_string(&report)?)?;
            } else {
                answer!("{report}")?;
            }
        }
        CatalogVerb::Deviations { shop, nouns, json } => {
            let world = OriginalWorld::load(&shop.read()?, GoalStyle::Synthetic, 0)?;
            let nouns = nouns.read()?.map_or(NounReference::EveryWord, NounReference::Table);
            let report = DeviationReport::new(&shop.open()?, &world, &nouns)?;
            if json {
                answer!("{}", serde_json::to_string(&report)?)?;
            } else {
                answer!("{report}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
