//! Properties of generated catalogs, on several seeds.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{Catalog, CatalogReport, GoalKind, GoalSet, GoalStyle, Product};

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
fn every_size_has_that_many_products_with_names_of_their_own() {
    for n_products in [0, 1, 2, 7, 99, 2_500] {
        let data = generate(Seed(2), n_products);
        assert_eq!(data.items.len(), n_products);
        assert_eq!(Catalog::from_raw(&data, Seed(0)).unwrap().len(), n_products);
    }
}

fn offers(product: &Product, value: &str) -> bool {
    product.options.iter().flat_map(|group| &group.values).any(|offered| *offered.text == *value)
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
fn a_small_shop_has_every_department_and_many_kinds() {
    for seed in 0..5 {
        let report = Shop::new(seed, 100).report();
        assert_eq!((report.n_products, report.departments.len()), (100, 5));
        assert!((25..=35).contains(&report.n_kinds), "{} kinds", report.n_kinds);
        let n_goals = report.n_human_goals + report.n_synthetic_goals;
        assert!((450..=1_000).contains(&n_goals), "{n_goals} goals");
    }
}

#[test]
fn a_larger_shop_has_products_of_every_sort() {
    let report = Shop::new(1, 1_000).report();
    assert!(report.n_kinds >= 200, "{} kinds", report.n_kinds);
    assert!(report.n_price_ranges > 0 && report.n_shared_values > 0);
    assert!(
        report.n_option_groups.iter().all(|&n_products| n_products >= 20),
        "{:?}",
        report.n_option_groups
    );
}

#[test]
fn no_product_makes_more_than_twelve_goals() {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for goal in Shop::new(2, 1_000).goals.goals() {
        *counts.entry(goal.product).or_default() += 1;
    }
    assert_eq!(counts.len(), 1_000);
    assert_eq!(counts.into_values().max(), Some(12));
}

#[test]
fn a_human_goal_wants_attributes_and_options_of_its_product() {
    let shop = Shop::new(0, 100);
    for goal in shop.goals.goals().iter().filter(|goal| goal.style == GoalStyle::Human) {
        let product = shop.catalog.get(goal.product);
        assert!(goal.attributes.iter().all(|attribute| product.attributes.contains(attribute)));
        for option in &goal.options {
            assert!(offers(product, &option.value), "{}: {}", option.value, goal.instruction);
        }
    }
}

#[test]
fn a_third_of_the_human_goals_paraphrase() {
    let shop = Shop::new(0, 1_000);
    let human: Vec<_> = shop.goals.goals().iter().filter(|goal| goal.style == GoalStyle::Human).collect();
    let is_literal = |goal: &&&crate::Goal| {
        let options = goal.options.iter().map(|option| &option.value);
        let mut texts = goal.attributes.iter().chain(options).chain([&goal.query]);
        texts.all(|text| goal.instruction.contains(&**text))
    };
    let n_literal = human.iter().filter(is_literal).count();
    let share = 1.0 - n_literal as f64 / human.len() as f64;
    assert!((0.25..=0.45).contains(&share), "{share:.2} of the goals");
}

#[test]
fn the_words_of_every_attribute_can_be_read_somewhere() {
    let shop = Shop::new(4, 200);
    for product in shop.catalog.products() {
        let bullets = product.bullets.join(" ");
        let text = format!("{} {bullets} {}", product.title, product.description).to_lowercase();
        for attribute in &product.attributes {
            assert!(attribute.split(' ').all(|word| text.contains(word)), "{attribute}: {text}");
        }
    }
}

#[test]
fn no_group_offers_a_value_twice() {
    let shop = Shop::new(0, 1_000);
    for group in shop.catalog.products().iter().flat_map(|product| &product.options) {
        let different: BTreeSet<_> = group.values.iter().map(|value| &value.text).collect();
        assert_eq!(group.values.len(), different.len(), "{}", group.name);
    }
}

#[test]
fn most_goals_have_a_rival_that_only_its_bullets_tell_apart() {
    // A rival has the kind, every wanted option, and a title with no wanted attribute that the goal's lacks.
    for seed in 0..3 {
        let shop = Shop::new(seed, 100);
        let goals = shop.goals.goals();
        let is_rival = |goal: &crate::Goal, rival: &Product| {
            let own = shop.catalog.get(goal.product);
            let shown = |product: &Product, attribute: &str| product.title.to_lowercase().contains(attribute);
            rival.id != own.id
                && rival.query == own.query
                && goal.options.iter().all(|option| offers(rival, &option.value))
                && goal.attributes.iter().all(|one| shown(own, one) == shown(rival, one))
                && goal.attributes.iter().any(|one| !rival.attributes.contains(one))
        };
        let has_rival =
            |goal: &&crate::Goal| shop.catalog.products().iter().any(|rival| is_rival(goal, rival));
        let n_rivalled = goals.iter().filter(has_rival).count();
        assert!(100 * n_rivalled >= 55 * goals.len(), "seed {seed}: {n_rivalled} of {}", goals.len());
    }
}

#[test]
fn texts_are_bounded() {
    for product in Shop::new(0, 1_000).catalog.products() {
        let n_words = product.title.split(' ').count();
        assert!((3..=30).contains(&n_words), "{}", product.title);
        let n_chars = product.bullets.iter().map(|bullet| bullet.chars().count()).sum::<usize>();
        assert!(n_chars <= 480, "{n_chars} characters: {:?}", product.bullets);
    }
}
