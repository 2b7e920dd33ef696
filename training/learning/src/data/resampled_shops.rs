//! Auxiliary shops of the products of the evaluated shop that are not held out.
//!
//! Each shop has other products in another order, prices and price limits of its own, and all goals of its products. A
//! product with a validation or test goal is in none of them, nor is one of its family ([`family_members`]) without
//! goals. The other products without goals are among those that results list.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use webshop_env::{Shop, ShopConfig};
use webshop_products::{Catalog, GoalSet, ProductIdx, RawData, Seed, Split, family_members};

use crate::config::CatalogConfig;
use crate::data::held_out::drawn;
use crate::error::{Result, TrainingError};
use crate::purpose;
use crate::setup::open_shop::read_catalog;

/// Seed of products and prices of the first shop, the next of the second: the same for every run.
const FIRST: u64 = 4_000_000;

/// `n` shops of `n_products` products each, or of all that are not held out if there are fewer, drawn from those of `shop`,
/// the shop of `config`.
///
/// # Errors
/// If no product has training goals only.
pub(crate) fn resampled_shops(
    config: &CatalogConfig,
    shop: &Shop,
    n: usize,
    n_products: usize,
) -> Result<Vec<Arc<Shop>>> {
    let mut data = read_catalog(config)?;
    let (training, others) = products(shop);
    if training.is_empty() && n > 0 {
        return Err(TrainingError::InvalidValue {
            key: "catalog.auxiliary_source".into(),
            problem: "must be `generator`, since no product of the catalog has training goals only".into(),
        });
    }
    // What is left of the data, the instructions, is copied for each shop.
    let mut items = std::mem::take(&mut data.items);
    items.retain(|item| [&training, &others].iter().any(|asins| asins.contains(item.asin.as_str())));
    let of_number = |number: u64| {
        let seed = Seed(FIRST + number);
        let items = drawn(items.clone(), seed.rng(purpose::RESAMPLED_SHOP, &[]), n_products);
        // Instructions of products that the shop does not have make no goals.
        let part = RawData { items, ..data.clone() };
        let catalog = Catalog::from_raw(&part, seed)?;
        let goals = GoalSet::from_raw(&part, &catalog, config.goals.kind(), seed)?;
        Ok(Arc::new(Shop::with_config(catalog, goals, ShopConfig::default())?))
    };
    (0..n as u64).into_par_iter().map(of_number).collect()
}

/// The ASINs of the products with training goals and no others, and of those without goals of which no product with
/// another goal has family.
fn products(shop: &Shop) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let with_goals = |split: Split| -> BTreeSet<ProductIdx> {
        shop.goals().split(split).iter().map(|&goal| shop.goals().get(goal).product).collect()
    };
    let held_out: BTreeSet<ProductIdx> = &with_goals(Split::Validation) | &with_goals(Split::Test);
    let training = &with_goals(Split::Train) - &held_out;
    let near = family_members(shop.catalog(), &held_out);
    let all = (0..shop.catalog().products().len() as u32).map(ProductIdx);
    let others = all.filter(|product| !training.contains(product) && !near.contains(product));
    let asin = |product: ProductIdx| shop.catalog().get(product).id.as_str();
    (training.iter().copied().map(asin).collect(), others.map(asin).collect())
}

#[cfg(test)]
mod tests {
    use webshop_products::Price;

    use super::*;
    use crate::config::Config;
    use crate::setup::open_shop::open_shop;

    #[test]
    fn they_have_no_held_out_product_and_differ() {
        let config = Config::default().catalog;
        let shop = open_shop(&config).unwrap();
        let shops = resampled_shops(&config, &shop, 3, 20).unwrap();
        let (training, others) = products(&shop);
        let allowed = &training | &others;
        let n_training = shop.goals().split(Split::Train).len();
        assert!(training.len() > 20 && training.len() < n_training);
        let of = |shop: &Shop| -> Vec<(String, Price)> {
            let products = shop.catalog().products().iter();
            products.map(|product| (product.id.as_str().to_owned(), product.price.clone())).collect()
        };
        for (number, drawn) in shops.iter().enumerate() {
            let products = of(drawn);
            assert_eq!(products.len(), 20);
            assert!(products.iter().all(|(asin, _)| allowed.contains(asin.as_str())));
            assert!(shops[..number].iter().all(|other| of(other) != products));
            assert!(!drawn.goals().goals().is_empty());
        }
        let again = resampled_shops(&config, &shop, 3, 20).unwrap();
        assert!(shops.iter().zip(&again).all(|(one, other)| of(one) == of(other)));
        let all = resampled_shops(&config, &shop, 1, 1000).unwrap();
        assert_eq!(all[0].catalog().products().len(), allowed.len());
    }
}
