//! Shops of generated products, which their generator's seed and size name.
//!
//! A [`GeneratedCatalog`] is part of the fingerprint of a shop that [`Shop::generated`] made, and so of every episode
//! there: a recording names its shop, and [`replay_in`](crate::replay_in) opens it again. The embedded catalogs and
//! catalogs of files have none.

use webshop_products::{Catalog, GoalKind, GoalSet, Seed, generate};

use crate::fingerprint::GeneratedCatalog;
use crate::shop::{EnvError, Shop};

/// The most products of a generated shop.
const MAX_PRODUCTS: usize = 1_000_000;

impl Shop {
    /// The shop of a generated catalog, with human and synthetic goals, the default split and the default rules.
    ///
    /// # Errors
    /// [`EnvError`], if there is no product, or more than a million.
    pub fn generated(of: GeneratedCatalog) -> Result<Shop, EnvError> {
        if of.products > MAX_PRODUCTS {
            return Err(EnvError::TooManyProducts { n_products: of.products, max: MAX_PRODUCTS });
        }
        let seed = Seed(of.seed);
        let raw = generate(seed, of.products);
        let catalog = Catalog::from_raw(&raw, seed)?;
        let goals = GoalSet::from_raw(&raw, &catalog, GoalKind::Both, seed)?;
        Ok(Shop::new(catalog, goals)?.of_generator(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_shop_names_its_generator() {
        let of = GeneratedCatalog { seed: 7, products: 12 };
        let shop = Shop::generated(of).unwrap();
        assert_eq!((shop.catalog().len(), shop.fingerprint().generated), (12, Some(of)));
        let json = serde_json::to_value(shop.fingerprint()).unwrap();
        assert_eq!(json["generated"], serde_json::json!({ "seed": 7, "products": 12 }));
        let again = Shop::generated(of).unwrap();
        assert_eq!(again.fingerprint(), shop.fingerprint());
        let other = Shop::generated(GeneratedCatalog { seed: 8, ..of }).unwrap();
        assert_ne!(other.goals().fingerprint(), shop.goals().fingerprint());
    }

    #[test]
    fn sizes_that_no_shop_can_have_are_refused() {
        let refusal =
            |products| Shop::generated(GeneratedCatalog { seed: 0, products }).unwrap_err().to_string();
        assert_eq!(refusal(0), "the catalog is empty");
        assert_eq!(refusal(1_000_001), "a generated shop has at most 1000000 products, not 1000001");
    }
}
