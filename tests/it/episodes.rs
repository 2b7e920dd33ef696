//! Transcripts of whole episodes.
//!
//! Each snapshot in `snapshots/episodes/` is one episode: the instruction, every action, each page in short, and the
//! reward with its parts.

use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use webshop_env::{Action, Compat, RewardBreakdown, Session, Shop, transcript};
use webshop_products::Goal;

/// Takes the actions, snapshots the transcript, and returns the reward of the purchase.
fn check(name: &str, shop: &Shop, goal: &Goal, actions: &[&str]) -> Option<RewardBreakdown> {
    in_area("episodes", || {
        insta::assert_snapshot!(name, transcript(shop, goal.id, actions));
    });
    let mut session = Session::start(goal.id);
    let mut outcomes = actions.iter().map(|text| session.act(shop, &Action::parse(text, Compat::Repaired)));
    outcomes.find_map(|outcome| outcome.breakdown)
}

#[test]
fn a_purchase_of_all_requirements_is_a_success() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0SNEAK001", &["navy blue", "9"]);
    let actions = [
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
    let reward = check("success", &shop, goal, &actions).expect("something was bought");
    assert!(reward.is_success());
}

#[test]
fn a_purchase_of_some_requirements_gets_their_share() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0SNEAK001", &["navy blue", "9"]);
    let actions = [
        "search[canvas sneakers memory foam]",
        "click[b0sneak002]",
        "click[9]",
        "click[buy now]",
        "click[back to search]",
    ];
    let reward = check("partial_reward", &shop, goal, &actions).expect("something was bought");
    // No attribute, one option, and the price, of five requirements.
    assert_eq!(reward.total(), 0.4);
}

#[test]
fn equal_values_of_two_groups_can_both_be_chosen() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0CASE0001", &["black", "silver"]);
    let actions = [
        "search[phone case]",
        "click[b0case0001]",
        "click[black]",
        "click[black]",
        "click[silver]",
        "click[buy now]",
    ];
    let reward = check("equal_values", &shop, goal, &actions).expect("something was bought");
    assert!(reward.is_success());
}

#[test]
fn actions_that_are_not_available_change_nothing() {
    let shop = corner_shop();
    let goal = goal(&shop, "B0TEA00001", &["crème brûlée"]);
    let actions = [
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
    assert_eq!(check("unavailable_actions", &shop, goal, &actions), None);
}
