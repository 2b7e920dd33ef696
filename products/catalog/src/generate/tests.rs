//! Properties of generated catalogs, on several seeds.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{Catalog, CatalogReport, GoalKind, GoalSet, GoalStyle, Product, Split};

struct Shop {
    catalog: Catalog,
    goals: GoalSet,
}

impl Shop {
    fn new(seed: u64, n_products: usize) -> Self {
        let data = generate(Seed(seed), n_products);
        let catalog = Catalog::from_raw(&data, Seed(seed)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(seed)).unwrap();
        Self { catalog, goals }
    }

    fn report(&self) -> CatalogReport {
        CatalogReport::new(&self.catalog, &self.goals)
    }
}

fn brand(product: &Product) -> &str {
    product.title.split(' ').next().unwrap()
}

#[test]
fn a_small_shop_has_every_department_and_a_thousand_goals_in_few_words() {
    for seed in 0..5 {
        let report = Shop::new(seed, 100).report();
        assert_eq!((report.n_products, report.departments.len()), (100, 5));
        assert!((18..=24).contains(&report.n_kinds), "{} kinds", report.n_kinds);
        assert!(report.n_human_goals + report.n_synthetic_goals >= 1_000);
        assert!(report.n_words <= 900, "{} words", report.n_words);
    }
}

#[test]
fn a_larger_shop_has_sixty_kinds_and_eight_thousand_goals() {
    let report = Shop::new(1, 1_000).report();
    assert!(report.n_kinds >= 60, "{} kinds", report.n_kinds);
    assert!(report.n_human_goals + report.n_synthetic_goals >= 8_000);
    assert!(report.n_words <= 1_900, "{} words", report.n_words);
    assert!(report.n_price_ranges > 0 && report.n_shared_values > 0);
    assert!(report.n_option_groups.iter().all(|&n_products| n_products >= 100));
}

#[test]
fn most_goals_have_three_near_duplicates() {
    for seed in 0..5 {
        let shop = Shop::new(seed, 100);
        assert!(10 * shop.report().n_confusable_goals >= 8 * shop.goals.goals().len());
    }
}

#[test]
fn every_size_has_that_many_products_with_names_of_their_own() {
    for n_products in [0, 1, 2, 7, 99, 2_500] {
        let data = generate(Seed(2), n_products);
        assert_eq!(data.items.len(), n_products);
        assert_eq!(Catalog::from_raw(&data, Seed(0)).unwrap().len(), n_products);
    }
}

#[test]
fn a_human_instruction_spells_its_requirements_as_pages_do() {
    let shop = Shop::new(0, 100);
    for goal in shop.goals.goals().iter().filter(|goal| goal.style == GoalStyle::Human) {
        let product = shop.catalog.get(goal.product);
        assert!(goal.instruction.contains(&*product.query));
        for attribute in goal.attributes.iter() {
            assert!(goal.instruction.contains(&**attribute) && product.attributes.contains(attribute));
        }
        for option in &goal.options {
            assert!(goal.instruction.contains(&*option.value), "{}: {}", option.value, goal.instruction);
            assert!(offers(product, &option.value));
        }
    }
}

fn offers(product: &Product, value: &str) -> bool {
    product.options.iter().flat_map(|group| &group.values).any(|offered| *offered.text == *value)
}

#[test]
fn every_attribute_can_be_read_somewhere() {
    let shop = Shop::new(4, 200);
    for product in shop.catalog.products() {
        let text = [&*product.title, &*product.description, &*product.bullets.join(" ")]
            .map(|part| part.to_lowercase());
        for attribute in &product.attributes {
            assert!(text.iter().any(|part| part.contains(&**attribute)), "{attribute}: {text:?}");
        }
    }
}

#[test]
fn no_text_claims_an_attribute_that_the_product_lacks() {
    let shop = Shop::new(4, 200);
    let all: BTreeSet<_> = shop.catalog.products().iter().flat_map(|product| &product.attributes).collect();
    for product in shop.catalog.products() {
        let text = [&*product.title, &*product.description, &*product.bullets.join(" ")]
            .map(|part| part.to_lowercase());
        for attribute in all.iter().filter(|attribute| !product.attributes.contains(attribute)) {
            assert!(text.iter().all(|part| !part.contains(&***attribute)), "{attribute}: {text:?}");
        }
    }
}

#[test]
fn no_product_offers_a_value_twice() {
    let shop = Shop::new(0, 1_000);
    for product in shop.catalog.products() {
        let values: Vec<_> = product.options.iter().flat_map(|group| &group.values).collect();
        let different: BTreeSet<_> = values.iter().map(|value| &value.text).collect();
        assert_eq!(values.len(), different.len(), "{}", product.title);
    }
}

#[test]
fn titles_are_short() {
    let shop = Shop::new(0, 1_000);
    let lengths = shop.catalog.products().iter().map(|product| product.title.split(' ').count());
    let lengths: Vec<_> = lengths.collect();
    let fitting = lengths.iter().filter(|length| (6..=11).contains(*length)).count();
    assert!(fitting >= 950, "{fitting} of 1000");
}

#[test]
fn siblings_rarely_stand_side_by_side() {
    let shop = Shop::new(0, 1_000);
    let products = shop.catalog.products();
    let side_by_side = products
        .windows(2)
        .filter(|pair| pair[0].query == pair[1].query && brand(&pair[0]) == brand(&pair[1]));
    assert!(side_by_side.count() < 20);
    assert!(!products.is_sorted_by_key(|product| &product.id));
}

#[test]
fn shops_of_different_seeds_have_few_titles_in_common() {
    let titles = |seed| -> BTreeSet<String> {
        Shop::new(seed, 1_000).catalog.products().iter().map(|product| product.title.to_string()).collect()
    };
    assert!(titles(0).intersection(&titles(1)).count() < 10);
}

#[test]
fn almost_every_word_of_test_products_is_met_in_training() {
    for seed in 0..5 {
        let shop = Shop::new(seed, 100);
        let words = |split| -> BTreeMap<&str, usize> {
            let mut words = BTreeMap::new();
            for &id in shop.goals.split(split) {
                for word in shop.goals.get(id).instruction.split([' ', ',', '.']) {
                    *words.entry(word).or_default() += 1;
                }
            }
            words
        };
        let (known, met) = (words(Split::Train), words(Split::Test));
        let new =
            met.iter().filter(|(word, _)| !known.contains_key(*word)).map(|(_, count)| count).sum::<usize>();
        let all = met.values().sum::<usize>();
        assert!(100 * new <= 4 * all, "seed {seed}: {new} of {all}");
    }
}

#[test]
fn a_price_change_is_clear() {
    let mut paid: BTreeMap<(String, String), Vec<i64>> = BTreeMap::new();
    for product in Shop::new(0, 1_000).catalog.products() {
        if product.price.low == product.price.high && *product.price.tag != *"$100.0" {
            let family = (product.query.to_string(), brand(product).to_owned());
            paid.entry(family).or_default().push(product.price.paid.0);
        }
    }
    for prices in paid.values_mut() {
        prices.sort_unstable();
        assert!(
            prices.windows(2).all(|pair| pair[1] == pair[0] || 100 * pair[1] >= 120 * pair[0]),
            "{prices:?}"
        );
    }
}
