//! Opens the catalog and the shop of a configuration.

use webshop_env::{Compat, Shop, ShopConfig};
use webshop_products::{CatalogSource, GoalKind, OriginalWorld, RawData, Seed, Skipped, SourceConfig};

use crate::config::CatalogConfig;
use crate::error::{Result, TrainingError};

/// Seed of prices and price limits of the evaluated shop, which is the same for every seed of a run; under the original's
/// rules, of its random generator before it loads its catalog, as in the recorded reference data.
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
    let source = CatalogSource::open_cached(&config.source, source_config, config.cache.as_deref())?;
    log_skipped(source.skipped());
    Ok(source)
}

fn log_skipped(skipped: &Skipped) {
    if skipped.n_records > 0 {
        tracing::warn!("{skipped}");
    }
}

/// The evaluated shop of `config`, with goals and search index.
///
/// # Errors
/// If the catalog cannot be read, or the original's rules are asked for goals of both styles.
pub fn open_shop(config: &CatalogConfig) -> Result<Shop> {
    let (catalog, goals) = match config.compat {
        Compat::Repaired => open_catalog_source(config, config.goals.kind(), SHOP_SEED)?.into_goals()?,
        Compat::Original => {
            let style = config.goals.style().ok_or_else(two_styles)?;
            let world = OriginalWorld::load(&read_catalog(config)?, style, SHOP_SEED.0)?;
            (world.catalog, world.goals)
        }
    };
    let goals = goals.split_by(config.split_rule, &catalog)?;
    let shop_config =
        ShopConfig { compat: config.compat, cache: config.cache.clone(), ..ShopConfig::default() };
    Ok(Shop::with_config(catalog, goals, shop_config)?)
}

fn two_styles() -> TrainingError {
    TrainingError::InvalidValue {
        key: "catalog.goals".into(),
        problem: "must be `human` or `synthetic`: the original's rules have goals of one style".into(),
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::GoalStyle;

    use super::*;
    use crate::config::GoalsChoice;

    #[test]
    fn the_originals_rules_have_its_goals_of_one_style() {
        let config = |goals| CatalogConfig { compat: Compat::Original, goals, ..CatalogConfig::default() };
        let shop = open_shop(&config(GoalsChoice::Synthetic)).unwrap();
        assert_eq!(shop.config().compat, Compat::Original);
        let data = read_catalog(&CatalogConfig::default()).unwrap();
        let world = OriginalWorld::load(&data, GoalStyle::Synthetic, 0).unwrap();
        assert_eq!(shop.goals().fingerprint(), world.goals.fingerprint());
        let refused = open_shop(&config(GoalsChoice::Both)).unwrap_err().to_string();
        assert!(refused.contains("`catalog.goals` must be `human` or `synthetic`"), "{refused}");
    }
}
