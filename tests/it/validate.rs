//! The embedded catalogs make shops that are fit to learn in, and a shop that is not is found out.

use std::sync::Arc;

use webshop_training::{CatalogConfig, open_shop};
use webshop_evaluation::{Check, env_checks as validate};

fn checks(catalog: &str) -> Vec<Check> {
    let config = CatalogConfig { source: catalog.into(), ..CatalogConfig::default() };
    let shop = open_shop(&config).expect("an embedded catalog");
    validate(&Arc::new(shop)).expect("policies without a model do not fail")
}

/// Asserts that a catalog passes every check, under the names by which others know them.
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
        "canary_floor",
        "no_solution_leakage",
        "verifier_determinism",
        "replayability",
        "reward_reachability",
        "adversarial_floor",
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
