//! Each check fails for episodes that were changed in the way it looks for.

use webshop_env::NoopReason;
use webshop_products::{Catalog, GoalKind, GoalSet, Seed, generate};

use super::*;

/// Names of the checks that fail after `change` was applied to the episodes of a small valid shop.
fn failing(change: impl FnOnce(&mut Episodes)) -> Vec<&'static str> {
    let raw = generate(Seed(2), 4);
    let catalog = Catalog::from_raw(&raw, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&raw, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let mut episodes = Episodes::collect(&Arc::new(Shop::new(catalog, goals).unwrap())).unwrap();
    change(&mut episodes);
    let checks = check_all(&episodes).unwrap();
    checks.into_iter().filter(|check| !check.passed).map(|check| check.check).collect()
}

#[test]
fn a_valid_shop_passes_all_checks() {
    assert_eq!(failing(|_| ()), [""; 0]);
}

#[test]
fn a_different_page_is_detected() {
    let failed = failing(|episodes| episodes.oracle[0].turns[1].after = episodes.oracle[0].start);
    assert_eq!(failed, ["episode_isolation", "replayability"]);
}

#[test]
fn a_different_random_draw_is_detected() {
    let failed = failing(|episodes| episodes.random[0].turns[0].noop = Some(NoopReason::Malformed));
    assert_eq!(failed, ["seed_control", "replayability"]);
}

#[test]
fn a_reward_without_a_purchase_is_detected() {
    let failed = failing(|episodes| episodes.oracle[0].turns[0].reward = 0.5);
    assert_eq!(failed, ["reward_attribution", "trajectory_record", "replayability"]);
}

#[test]
fn a_changed_breakdown_is_detected() {
    let failed = failing(|episodes| {
        let breakdown = episodes.oracle[0].breakdown.as_mut().unwrap();
        breakdown.attribute_matches -= 1;
    });
    let expected = ["reward_attribution", "oracle_max", "verifier_determinism", "replayability"];
    assert_eq!(failed, expected);
}

#[test]
fn a_missing_turn_is_detected() {
    let failed = failing(|episodes| {
        episodes.oracle[0].turns.remove(0);
    });
    assert_eq!(failed, ["episode_isolation", "replayability"]);
}

#[test]
fn a_successful_exploit_is_detected() {
    let failed = failing(|episodes| episodes.exploits[1].1 = episodes.oracle.clone());
    assert_eq!(failed, ["exploit_floor"]);
}

#[test]
fn a_successful_random_policy_is_detected() {
    let failed = failing(|episodes| episodes.random = episodes.oracle.clone());
    assert_eq!(failed, ["seed_control", "floor_gap"]);
}
