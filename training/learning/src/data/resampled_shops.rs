//! Auxiliary shops of the products of the evaluated shop that are not held out.
//!
//! Each shop has other products in another order, prices and price limits of its own, and all goals of its products; a
//! share of them has its words permuted ([`ExchangeableWords`]) and only synthetic goals. A product with a validation or test goal is in none of them, nor is one of its family ([`family_members`]) without
//! goals. The other products without goals are among those that results list. A leaky split rule, whose test goals are training
//! goals, holds no product out.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use webshop_env::{Shop, ShopConfig};
use webshop_products::{Catalog, GoalSet, ProductIdx, RawData, Seed, Split, family_members};

use crate::config::CatalogConfig;
use crate::data::permuted_words::ExchangeableWords;
use crate::data::sampling::sample_without_replacement;
use crate::error::{Result, TrainingError};
use crate::purpose;
use crate::setup::open_shop::read_catalog;

/// Seed of products and prices of the first shop, the next of the second: the same for every run.
const FIRST: u64 = 4_000_000;

/// The shops of `config.auxiliary_shops`, each of `config.auxiliary_products` products, or of all that are not held out if
/// there are fewer, drawn from those of `shop`, the shop of `config`.
///
/// # Errors
/// If no product has training goals only.
pub(crate) fn resampled_shops(config: &CatalogConfig, shop: &Shop) -> Result<Vec<Arc<Shop>>> {
    let n = config.auxiliary_shops as u64;
    let mut data = read_catalog(config)?;
    let (training, others) = products(shop);
    if training.is_empty() && n > 0 {
        return Err(TrainingError::InvalidValue {
            key: "catalog.auxiliary_source".into(),
            problem: "must be `generator`, since no product of the catalog has training goals only".into(),
        });
    }
    let is_drawn = |asin: &str| training.contains(asin) || others.contains(asin);
    data.items.retain(|item| is_drawn(&item.asin));
    data.instructions.retain(|asin, _| is_drawn(asin));
    let words = ExchangeableWords::of(&data);
    // What is left of the data, the instructions, is copied for each shop.
    let items = std::mem::take(&mut data.items);
    let of_number = |number: u64| {
        let seed = Seed(FIRST + number);
        let items = sample_without_replacement(
            items.clone(),
            seed.rng(purpose::RESAMPLED_SHOP, &[]),
            config.auxiliary_products,
        );
        // Instructions of products that the shop does not have make no goals.
        let mut part = RawData { items, ..data.clone() };
        if is_permuted(number, config.auxiliary_permuted_share) {
            let words = words.permuted(config.auxiliary_coined_share, seed.rng(purpose::PERMUTED_WORDS, &[]));
            part = words.apply(&part);
        }
        let catalog = Catalog::from_raw(&part, seed)?;
        let goals = GoalSet::from_raw(&part, &catalog, config.goals.kind(), seed)?;
        Ok(Arc::new(Shop::with_config(catalog, goals, ShopConfig::default())?))
    };
    (0..n).into_par_iter().map(of_number).collect()
}

/// Whether the shop of this number is one of `share` of all shops, which are spread evenly.
fn is_permuted(number: u64, share: f64) -> bool {
    let n_before = |number: u64| (number as f64 * share).floor();
    n_before(number + 1) > n_before(number)
}

/// The ASINs of the products with training goals and no others, and of those without goals of which no product with
/// another goal has family.
fn products(shop: &Shop) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let with_goals = |split: Split| -> BTreeSet<ProductIdx> {
        shop.goals().split(split).iter().map(|&goal| shop.goals().get(goal).product).collect()
    };
    let held_out: BTreeSet<ProductIdx> = match shop.goals().split_rule().is_leaky() {
        true => BTreeSet::new(),
        false => &with_goals(Split::Validation) | &with_goals(Split::Test),
    };
    let training = &with_goals(Split::Train) - &held_out;
    let near = family_members(shop.catalog(), &held_out);
    let all = (0..shop.catalog().products().len() as u32).map(ProductIdx);
    let others = all.filter(|product| !training.contains(product) && !near.contains(product));
    let asin = |product: ProductIdx| shop.catalog().get(product).id.as_str();
    (training.iter().copied().map(asin).collect(), others.map(asin).collect())
}

#[cfg(test)]
mod tests {
    use webshop_products::{GoalStyle, Price, SplitRule};

    use super::*;
    use crate::config::Config;
    use crate::setup::open_shop::open_shop;

    fn config(n: usize, products: usize, permuted_share: f64) -> CatalogConfig {
        CatalogConfig {
            auxiliary_shops: n,
            auxiliary_products: products,
            auxiliary_permuted_share: permuted_share,
            ..Config::default().catalog
        }
    }

    #[test]
    fn they_have_no_held_out_product_and_differ() {
        let config = config(3, 20, 0.0);
        let shop = open_shop(&config).unwrap();
        let shops = resampled_shops(&config, &shop).unwrap();
        let (training, others) = products(&shop);
        let allowed = &training | &others;
        let n_training = shop.goals().split(Split::Train).len();
        assert!(training.len() > 20 && training.len() < n_training);
        let held_out: BTreeSet<ProductIdx> = [Split::Validation, Split::Test]
            .into_iter()
            .flat_map(|split| shop.goals().split(split))
            .map(|&goal| shop.goals().get(goal).product)
            .collect();
        assert!(held_out.len() > 20);
        let asins = |products: &BTreeSet<ProductIdx>| -> BTreeSet<&str> {
            products.iter().map(|&product| shop.catalog().get(product).id.as_str()).collect()
        };
        assert!(allowed.is_disjoint(&asins(&held_out)), "a product of a held-out goal is trained on");
        let near = &family_members(shop.catalog(), &held_out) - &held_out;
        assert!(others.is_disjoint(&asins(&near)), "a product of the family of a held-out one is trained on");
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
        let again = resampled_shops(&config, &shop).unwrap();
        assert!(shops.iter().zip(&again).all(|(one, other)| of(one) == of(other)));
        let all = CatalogConfig { auxiliary_shops: 1, auxiliary_products: 1000, ..config };
        let all = resampled_shops(&all, &shop).unwrap();
        assert_eq!(all[0].catalog().products().len(), allowed.len());
    }

    #[test]
    fn a_leaky_split_rule_holds_no_product_out() {
        let leaky = CatalogConfig { split_rule: SplitRule::VerlAgent, ..config(1, 20, 0.0) };
        let shop = open_shop(&leaky).unwrap();
        let with_goals: BTreeSet<&str> =
            shop.goals().goals().iter().map(|goal| shop.catalog().get(goal.product).id.as_str()).collect();
        let (training, others) = products(&shop);
        assert_eq!(training, with_goals);
        assert_eq!(training.len() + others.len(), shop.catalog().products().len());
    }

    #[test]
    fn a_share_of_them_has_the_same_products_in_other_words() {
        let (plain, half) = (config(4, 30, 0.0), config(4, 30, 0.5));
        let shop = open_shop(&plain).unwrap();
        let (plain, half) = (resampled_shops(&plain, &shop).unwrap(), resampled_shops(&half, &shop).unwrap());
        for (number, (plain, half)) in plain.iter().zip(&half).enumerate() {
            let products = || plain.catalog().products().iter().zip(half.catalog().products());
            assert!(products().all(|(one, other)| one.id == other.id));
            let n_equal = products().filter(|(one, other)| one.title == other.title).count();
            assert_eq!(n_equal, if number % 2 == 0 { 30 } else { 0 });
            let n_synthetic = |shop: &Shop| {
                shop.goals().goals().iter().filter(|goal| goal.style == GoalStyle::Synthetic).count()
            };
            assert_eq!(n_synthetic(plain), n_synthetic(half));
        }
    }
}
