//! Each check finds what it looks for: trips that were tampered with do not pass.

use webshop_env::NoopReason;
use webshop_products::{Catalog, GoalKind, GoalSet, Seed, generate};

use super::*;

/// The names of the checks that fail once the trips of a small sound shop were changed.
fn failing(tamper: impl FnOnce(&mut Trips)) -> Vec<&'static str> {
    let raw = generate(Seed(1), 4);
    let catalog = Catalog::from_raw(&raw, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&raw, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let mut trips = Trips::play(&Arc::new(Shop::new(catalog, goals).unwrap())).unwrap();
    tamper(&mut trips);
    let checks = judge(&trips).unwrap();
    checks.into_iter().filter(|check| !check.passed).map(|check| check.check).collect()
}

#[test]
fn a_sound_shop_passes() {
    assert_eq!(failing(|_| ()), [""; 0]);
}

#[test]
fn a_page_that_was_another_is_noticed() {
    let failed = failing(|trips| trips.oracle[0].turns[1].after = trips.oracle[0].start);
    assert_eq!(failed, ["episode_isolation", "replayability"]);
}

#[test]
fn a_draw_that_was_another_is_noticed() {
    let failed = failing(|trips| trips.random[0].turns[0].noop = Some(NoopReason::Malformed));
    assert_eq!(failed, ["seed_control", "replayability"]);
}

#[test]
fn pay_without_a_purchase_is_noticed() {
    let failed = failing(|trips| trips.oracle[0].turns[0].reward = 0.5);
    assert_eq!(failed, ["reward_attribution", "trajectory_record", "replayability"]);
}

#[test]
fn a_purchase_that_was_judged_otherwise_is_noticed() {
    let failed = failing(|trips| {
        let bought = trips.oracle[0].breakdown.as_mut().unwrap();
        bought.attribute_matches -= 1;
    });
    let expected = ["reward_attribution", "oracle_max", "verifier_determinism", "replayability"];
    assert_eq!(failed, expected);
}

#[test]
fn a_turn_that_was_left_out_is_noticed() {
    let failed = failing(|trips| {
        trips.oracle[0].turns.remove(0);
    });
    assert_eq!(failed, ["episode_isolation", "replayability"]);
}

#[test]
fn a_habit_that_pays_is_noticed() {
    let failed = failing(|trips| trips.canaries[1].1 = trips.oracle.clone());
    assert_eq!(failed, ["canary_floor"]);
}

#[test]
fn guessing_that_pays_is_noticed() {
    let failed = failing(|trips| trips.random = trips.oracle.clone());
    assert_eq!(failed, ["seed_control", "floor_gap"]);
}
