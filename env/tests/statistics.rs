//! The embedded catalogs are like the original's first 1,000 products.
//!
//! The original's numbers are `CatalogStatistics` of the first 1,000 products of the original WebShop with their
//! instructions; the two of search were counted on the same products by another program. They are statistics; no
//! text of that data is here. `webshop catalog inspect --catalog 100 --against DIR` prints both columns.

use webshop_env::{SearchStatistics, Shop};
use webshop_products::{Catalog, CatalogStatistics, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed};

fn statistics(which: EmbeddedCatalog) -> (CatalogStatistics, SearchStatistics) {
    let data = RawData::embedded(which);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("embedded catalogs are sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("and so are their goals");
    let statistics = CatalogStatistics::new(&catalog, &goals);
    (statistics, SearchStatistics::new(&Shop::new(catalog, goals).expect("it has products")))
}

/// Asserts that `found` is within `factor` of the original's number.
#[track_caller]
fn check(what: &str, found: f64, original: f64, factor: f64) {
    let is_near = original / factor <= found && found <= original * factor;
    assert!(is_near, "{what}: {found:.2}, the original has {original}, factor {factor}");
}

#[test]
fn both_embedded_catalogs_are_like_the_original() {
    for which in [EmbeddedCatalog::Hundred, EmbeddedCatalog::Thousand] {
        let (catalog, search) = statistics(which);
        check("values of a group", catalog.group_values.mean, 5.7, 1.3);
        check("groups of a product", catalog.n_groups, 0.62, 1.6);
        check("products without options", catalog.without_options, 0.58, 1.5);
        check("values that contain another", catalog.containing_values, 0.17, 1.7);
        check("values with punctuation or digits", catalog.marked_values, 0.56, 1.4);
        check("required attributes in the title", catalog.attributes_in_title, 0.22, 1.7);
        check("required attributes in the bullets", catalog.attributes_in_bullets, 0.50, 1.4);
        check("scattered required attributes", catalog.attributes_scattered, 0.25, 1.5);
        check("attributes of a human goal", catalog.human_attributes, 1.3, 1.2);
        check("attributes of a synthetic goal", catalog.synthetic_attributes, 4.0, 1.4);
        check("words of a title", catalog.title_words.mean, 18.0, 1.3);
        check("products of a kind", catalog.kind_products, 4.1, 1.3);
        check("looseness of human goals", catalog.human_looseness, 2.4, 1.4);
        check("looseness of synthetic goals", catalog.synthetic_looseness, 2.9, 1.4);
        check("results of the same kind", search.same_kind, 0.22, 1.8);
        check("own product in ten results", search.own_in_ten, 0.93, 1.2);
    }
}

#[test]
fn the_larger_catalog_has_the_words_of_the_original() {
    let (catalog, _) = statistics(EmbeddedCatalog::Thousand);
    check("kinds", catalog.n_kinds as f64, 246.0, 1.3);
    check("word types", catalog.n_word_types as f64, 5_995.0, 2.2);
    check("words seen once", catalog.words_seen_once, 0.59, 1.2);
    check("the longest group", catalog.group_values.max as f64, 45.0, 2.0);
}
