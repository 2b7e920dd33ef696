//! Opens the catalog and the shop of a configuration.

use webshop_env::{Shop, ShopConfig};
use webshop_products::{CatalogSource, GoalKind, RawData, Seed, Skipped, SourceConfig};

use crate::config::CatalogConfig;
use crate::error::Result;

/// Seed of prices and price limits of the evaluated shop, which is the same for every seed of a run.
const SHOP_SEED: Seed = Seed(0);

/// The raw records of the embedded catalog or folder that `config` names. Logs how many malformed records
/// were skipped.
pub fn read_catalog(config: &CatalogConfig) -> Result<RawData> {
    let limit = config.size.limit();
    if !config.skip_bad {
        return Ok(RawData::open(&config.source, limit)?);
    }
    let (data, skipped) = RawData::open_skipping(&config.source, limit)?;
    log_skipped(&skipped);
    Ok(data)
}

/// The products of the embedded catalog or folder that `config` names, for goals of this kind. Logs how many
/// malformed records were skipped.
pub fn open_catalog_source(config: &CatalogConfig, goals: GoalKind, seed: Seed) -> Result<CatalogSource> {
    let source_config = SourceConfig { limit: config.size.limit(), skips_bad: config.skip_bad, goals, seed };
    let source = CatalogSource::open(&config.source, source_config)?;
    log_skipped(source.skipped());
    Ok(source)
}

fn log_skipped(skipped: &Skipped) {
    if skipped.n_records > 0 {
        tracing::warn!("{skipped}");
    }
}

/// The evaluated shop of `config`, with goals and search index.
pub fn open_shop(config: &CatalogConfig) -> Result<Shop> {
    let (catalog, goals) = open_catalog_source(config, config.goals.kind(), SHOP_SEED)?.into_goals()?;
    let goals = goals.split_by(config.split_rule, &catalog)?;
    let shop_config = ShopConfig { index_cache: config.index_cache.clone(), ..ShopConfig::default() };
    Ok(Shop::with_config(catalog, goals, shop_config)?)
}
