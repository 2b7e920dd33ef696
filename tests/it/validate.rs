//! The shops of the embedded catalogs pass every check of the environment.

use std::sync::Arc;
use webshop_evaluation::{Check, validate};
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

fn checks(catalog: &str) -> Vec<Check> {
    let config = CatalogConfig { source: catalog.into(), ..CatalogConfig::default() };
    let shop = open_shop(&config).expect("an embedded catalog");
    validate(&Arc::new(shop)).expect("policies without a model do not fail")
}

/// Asserts that a catalog passes every check, by the names of the checks.
fn assert_all_pass(catalog: &str) {
    let checks = checks(catalog);
    let failed: Vec<String> = checks.iter().filter(|check| !check.passed).map(Check::to_string).collect();
    assert_eq!(failed, [""; 0], "catalog {catalog}");
    let names: Vec<&str> = checks.iter().map(|check| check.check).collect();
    let expected = [
        "seed_control",
        "episode_determinism",
        "episode_isolation",
        "reward_attribution",
        "trajectory_record",
        "oracle_max",
        "floor_gap",
        "exploit_floor",
        "no_solution_leakage",
        "verifier_determinism",
        "replayability",
        "reward_reachability",
        "adversarial_floor",
        "search_exactness",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_catalog_of_a_hundred_passes() {
    assert_all_pass("100");
}

#[test]
#[cfg(feature = "exhaustive")]
fn the_catalog_of_a_thousand_passes() {
    assert_all_pass("1000");
}
