//! Episodes of the rules in a shop of some lamps.

use std::sync::Arc;

use serde_json::json;
use webshop_env::Shop;
use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, RawData, RawHumanInstruction, RawItem, Seed};

use super::*;
use crate::episode::EpisodeCoordinates;
use crate::policies::named_options::NamedOptionsPolicy;
use crate::rollout::task::Task;
use crate::rollout::{RolloutConfig, rollout};

/// A product: id, title, price, colors, bullets.
type Lamp<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], &'a [&'a str]);

fn item((asin, name, pricing, colors, bullets): &Lamp<'_>) -> RawItem {
    let values: Vec<_> = colors.iter().map(|color| json!({ "value": color })).collect();
    let options = if values.is_empty() { json!({}) } else { json!({ "color": values }) };
    RawItem {
        asin: (*asin).into(),
        name: (*name).into(),
        pricing: (*pricing).into(),
        images: vec!["a.jpg".into()],
        small_description: bullets.iter().map(|&bullet| bullet.to_owned()).collect(),
        customization_options: serde_json::from_value(options).unwrap(),
        ..RawItem::default()
    }
}

/// The actions after the search for `instruction`, which is made a goal of the first lamp. The limit that its
/// price draws is $40 at most.
fn actions(policy: &mut dyn Policy, instruction: &str, lamps: &[Lamp<'_>], max_steps: u32) -> Vec<String> {
    let mut data = RawData { items: lamps.iter().map(item).collect(), ..RawData::default() };
    let instruction = RawHumanInstruction {
        instruction: instruction.into(),
        instruction_attributes: vec!["lamp".into()],
        instruction_options: Vec::new(),
    };
    data.human.insert(lamps[0].0.into(), vec![instruction]);
    let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).unwrap();
    let coordinates = EpisodeCoordinates::of_goal(GoalId(0));
    let task = Task::new(Arc::new(Shop::new(catalog, goals).unwrap()), coordinates);
    let limits = RolloutConfig { max_steps, lanes: 1 };
    let episodes = rollout(policy, &[task], limits, &mut |_, _| ()).unwrap();
    let actions: Vec<String> = episodes[0].turns.iter().map(|turn| turn.action.to_string()).collect();
    let (search, rest) = actions.split_first().unwrap();
    assert!(search.starts_with("search[") && !search.contains("price"), "{search}");
    rest.iter().map(|action| action.trim_start_matches("click[").trim_end_matches(']').to_owned()).collect()
}

const RED: &[&str] = &["Dark Red", "Red", "Blue"];

#[test]
fn named_options_clicks_the_longest_named_value_of_the_first_result() {
    let lamps: &[Lamp<'_>] = &[("B1", "floor lamp", "$9", RED, &[])];
    let check = |instruction: &str, expected: &[&str]| {
        assert_eq!(actions(&mut NamedOptionsPolicy, instruction, lamps, 15), expected);
    };
    check("a dark red floor lamp", &["b1", "dark red", "buy now"]);
    check("a floor lamp, not blue but red", &["b1", "blue", "red", "buy now"]);
    check("a floor lamp", &["b1", "buy now"]);
}

#[test]
fn named_pairs_opens_by_shared_pairs_within_the_price_limit() {
    let lamps: &[Lamp<'_>] = &[
        ("B1", "lamp floor reading", "$9", &[], &[]),
        ("B2", "reading floor lamp", "$900", &[], &[]),
        ("B3", "floor lamp for reading", "$9", &[], &[]),
    ];
    let mut policy = CandidatePolicy::named_pairs();
    assert_eq!(actions(&mut policy, "a reading floor lamp", lamps, 15), ["b3", "buy now"]);
}

#[test]
fn named_pairs_puts_back_what_has_no_named_value_and_buys_the_best_at_the_end() {
    let lamps: &[Lamp<'_>] =
        &[("B1", "gray floor lamp", "$9", &["Green"], &[]), ("B2", "floor lamp, tall", "$9", RED, &[])];
    let mut policy = CandidatePolicy::named_pairs();
    let mut check = |instruction: &str, max_steps: u32, expected: &[&str]| {
        assert_eq!(actions(&mut policy, instruction, lamps, max_steps), expected, "{instruction}");
    };
    check("a gray floor lamp in red", 15, &["b1", "< prev", "b2", "red", "buy now"]);
    check("a gray floor lamp in white", 15, &["b1", "< prev", "b2", "< prev", "b1", "buy now"]);
    // The seven steps of the second line; with six none is left to come back.
    check("a gray floor lamp in white", 7, &["b1", "< prev", "b2", "< prev", "b1", "buy now"]);
    check("a gray floor lamp in white", 6, &["b1", "buy now"]);
}

#[test]
fn named_features_reads_what_the_title_does_not_say() {
    let lamps: &[Lamp<'_>] = &[
        ("B1", "gray floor lamp", "$9", &[], &["Rubber cord", "Steel foot"]),
        ("B2", "floor lamp, tall", "$9", RED, &["A rubber foot, and a long cord"]),
    ];
    let mut policy = CandidatePolicy::named_features();
    let mut check = |instruction: &str, expected: &[&str]| {
        assert_eq!(actions(&mut policy, instruction, lamps, 15), expected, "{instruction}");
    };
    check("a gray floor lamp", &["b1", "buy now"]);
    check("a gray floor lamp with steel foot", &["b1", "features", "< prev", "buy now"]);
    let reads = ["features", "< prev", "description", "< prev"];
    let putting_back = [&["b1"][..], &reads, &["< prev", "b2"]].concat();
    check(
        "a gray floor lamp in red with rubber foot",
        &[&putting_back[..], &["features", "< prev", "description", "< prev", "red", "buy now"]].concat(),
    );
}

#[test]
fn named_features_buys_the_product_that_lacks_least() {
    let lamps: &[Lamp<'_>] = &[
        ("B1", "gray floor lamp", "$9", &[], &["Steel cord"]),
        ("B2", "floor lamp, tall", "$9", &[], &["Steel foot"]),
    ];
    let mut policy = CandidatePolicy::named_features();
    let of = |id: &'static str| [id, "features", "< prev", "description", "< prev"];
    let both = [&of("b1")[..], &["< prev"], &of("b2")].concat();
    assert_eq!(
        actions(&mut policy, "a gray floor lamp with steel foot, rubber cord", lamps, 20),
        [&both[..], &["buy now"]].concat()
    );
    assert_eq!(
        actions(&mut policy, "a gray floor lamp with rubber foot", lamps, 20),
        [&both[..], &["< prev", "b1", "buy now"]].concat()
    );
}
