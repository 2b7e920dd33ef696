//! Whole shopping trips, told as stories.
//!
//! Each snapshot in `snapshots/episodes/` is one trip: what was wanted, every action, what each page
//! showed in short, and what came of it.

use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use webshop_env::{Action, Compat, RewardBreakdown, Session, Shop, transcript};
use webshop_products::Goal;

/// Takes the trip, snapshots its story, and returns how the purchase was judged.
fn check(name: &str, shop: &Shop, goal: &Goal, said: &[&str]) -> Option<RewardBreakdown> {
    in_area("episodes", || {
        insta::assert_snapshot!(name, transcript(shop, goal.id, said));
    });
    let mut session = Session::start(goal.id);
    let mut outcomes = said.iter().map(|text| session.act(shop, &Action::parse(text, Compat::Repaired)));
    outcomes.find_map(|outcome| outcome.breakdown)
}

#[test]
fn a_careful_customer_gets_everything() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0SNEAK001", &["navy blue", "9"]);
    let trip = [
        "search[men's sneakers with rubber sole]",
        "click[b0sneak003]",
        "click[features]",
        "click[< prev]",
        "click[< prev]",
        "click[b0sneak001]",
        "click[navy blue]",
        "click[9]",
        "click[buy now]",
    ];
    let judged = check("a_careful_customer", &shop, goal, &trip).expect("something was bought");
    assert!(judged.is_success());
}

#[test]
fn a_hasty_customer_gets_less() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0SNEAK001", &["navy blue", "9"]);
    let trip = [
        "search[canvas sneakers memory foam]",
        "click[b0sneak002]",
        "click[9]",
        "click[buy now]",
        "click[back to search]",
    ];
    let judged = check("a_hasty_customer", &shop, goal, &trip).expect("something was bought");
    // No attribute, one option, and the price, of five wishes.
    assert_eq!(judged.total(), 0.4);
}

#[test]
fn equal_values_of_two_groups_can_both_be_chosen() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0CASE0001", &["black", "silver"]);
    let trip = [
        "search[phone case]",
        "click[b0case0001]",
        "click[black]",
        "click[black]",
        "click[silver]",
        "click[buy now]",
    ];
    let judged = check("equal_values", &shop, goal, &trip).expect("something was bought");
    assert!(judged.is_success());
}

#[test]
fn a_confused_customer_loses_only_time() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0TEA00001", &["crème brûlée"]);
    let trip = [
        "I would like some tea, please",
        "buy[tea]",
        "click[tea]",
        "search[]",
        "search[<r>]",
        "search[xyzzy]",
        "search[tea]",
        "click[next >]",
        "click[B0TEA00001]",
        "click[< prev]",
        "click[B0TEA00001]",
        "click[Crème Brûlée]",
    ];
    assert_eq!(check("a_confused_customer", &shop, goal, &trip), None);
}
