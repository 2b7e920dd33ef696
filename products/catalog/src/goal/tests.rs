use crate::catalog::Catalog;
use crate::error::{DataError, NoSuchGoal};
use crate::goal::set::GoalSet;
use crate::goal::split::Split;
use crate::goal::{Goal, GoalId, GoalKind, GoalStyle, WantedOption};
use crate::raw::{RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption};
use crate::seed::Seed;
use std::collections::BTreeSet;

fn value(text: &str) -> RawOption {
    RawOption { value: text.into(), image: None }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

/// A lamp for $12.34 in two sizes and two colors, with one synthetic and two human instructions.
fn data() -> RawData {
    let item = RawItem {
        asin: "B1".into(),
        name: "Oak Lamp".into(),
        pricing: "$12.34".into(),
        images: texts(&["a"]),
        customization_options: [
            ("Size".to_owned(), Some(vec![value("Small"), value("Large")])),
            ("Color".to_owned(), Some(vec![value("Red/Blue"), value("Green")])),
        ]
        .into(),
        ..RawItem::default()
    };
    let synthetic = RawInstruction {
        attributes: Some(texts(&["easy clean", "dimmable"])),
        instruction: Some("Find me dimmable lamps".into()),
        instruction_attributes: Some(texts(&["dimmable"])),
    };
    let human = |attributes: &[&str]| RawHumanInstruction {
        instruction: "i need a red lamp.".into(),
        instruction_attributes: texts(attributes),
        instruction_options: texts(&["red"]),
    };
    RawData {
        items: vec![item],
        instructions: [("B1".to_owned(), synthetic)].into(),
        human: [("B1".to_owned(), vec![human(&[]), human(&["easy clean"])])].into(),
    }
}

fn goals(data: &RawData, kind: GoalKind, seed: u64) -> Result<GoalSet, DataError> {
    GoalSet::from_raw(data, &Catalog::from_raw(data, Seed(0)).unwrap(), kind, Seed(seed))
}

/// The sentence without its limit, which is drawn.
fn sentence(goal: &Goal) -> &str {
    goal.instruction.split(", and price lower than ").next().unwrap()
}

#[test]
fn synthetic_goals_are_all_combinations_in_the_order_of_option_names() {
    let set = goals(&data(), GoalKind::Synthetic, 0).unwrap();
    let sentences: Vec<_> = set.goals().iter().map(sentence).collect();
    assert_eq!(
        sentences,
        [
            "Find me dimmable lamps with color: red | blue, and size: small",
            "Find me dimmable lamps with color: red | blue, and size: large",
            "Find me dimmable lamps with color: green, and size: small",
            "Find me dimmable lamps with color: green, and size: large",
        ]
    );
    // One attribute that four goals share: each weighs a quarter, and all share one limit.
    assert!(set.goals().iter().all(|goal| goal.weight == 0.25));
    assert!(set.goals().iter().all(|goal| goal.price_limit == set.goals()[0].price_limit));
}

#[test]
fn an_instruction_that_makes_millions_of_goals_is_an_error() {
    let mut data = data();
    let groups = |n: usize| (0..n).map(|at| (at.to_string(), Some(vec![value("a"), value("b")])));
    data.items[0].customization_options = groups(64).collect();
    let message = goals(&data, GoalKind::Synthetic, 0).unwrap_err().to_string();
    assert_eq!(
        message,
        "`items_ins_v2` (`B1`): field `instruction`: makes more than 1000000 goals with the options of the product"
    );
    assert_eq!(goals(&data, GoalKind::Human, 0).unwrap().goals().len(), 1);
    // One option without values leaves nothing to choose, as in the original.
    data.items[0].customization_options = groups(64).chain([("z".to_owned(), Some(vec![]))]).collect();
    assert_eq!(goals(&data, GoalKind::Synthetic, 0).unwrap().goals().len(), 0);
}

#[test]
fn human_goals_lose_their_full_stop_and_skip_entries_without_attributes() {
    let set = goals(&data(), GoalKind::Human, 0).unwrap();
    let [goal] = set.goals() else { panic!("one goal") };
    assert_eq!(sentence(goal), "i need a red lamp");
    assert_eq!(*goal.options, [WantedOption { name: None, value: "red".into() }]);
    assert_eq!((goal.style, goal.weight), (GoalStyle::Human, 1.0));
    let limit = goal.price_limit.unwrap().0 / 100;
    assert!(goal.instruction.ends_with(&format!(", and price lower than {limit}.00 dollars")));
}

#[test]
fn both_kinds_stand_together_human_first() {
    let set = goals(&data(), GoalKind::Both, 0).unwrap();
    let styles: Vec<_> = set.goals().iter().map(|goal| goal.style).collect();
    assert_eq!(styles[0], GoalStyle::Human);
    assert_eq!(styles[1..], [GoalStyle::Synthetic; 4]);
    assert!(set.goals().iter().enumerate().all(|(at, goal)| goal.id == GoalId(at as u32)));
}

#[test]
fn an_option_without_values_leaves_no_synthetic_goal() {
    let mut data = data();
    data.items[0].customization_options.insert("Style".into(), Some(Vec::new()));
    assert!(goals(&data, GoalKind::Synthetic, 0).unwrap().goals().is_empty());
}

#[test]
fn a_synthetic_instruction_that_wants_nothing_is_refused() {
    let mut data = data();
    data.instructions["B1"].instruction_attributes = None;
    assert_eq!(
        goals(&data, GoalKind::Synthetic, 0).unwrap_err().to_string(),
        "`items_ins_v2` (`B1`): field `instruction_attributes`: must not be empty"
    );
}

#[test]
fn the_fingerprint_changes_with_whatever_a_result_depends_on() {
    let fingerprint =
        |data: &RawData, seed| goals(data, GoalKind::Both, seed).unwrap().fingerprint().to_owned();
    let first = fingerprint(&data(), 0);
    assert_eq!(first.len(), 64);
    assert_eq!(first, fingerprint(&data(), 0));
    let other_limits = (1..20).any(|seed| fingerprint(&data(), seed) != first);
    assert!(other_limits);
    let mut dearer = data();
    dearer.items[0].pricing = "$12.35".into();
    assert_ne!(first, fingerprint(&dearer, 0));
    let mut renamed = data();
    renamed.items[0].full_description = "bright".into();
    assert_ne!(first, fingerprint(&renamed, 0));
}

#[test]
fn a_seed_draws_one_goal_of_a_split() {
    let data = crate::generate(Seed(0), 40);
    let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let splits = [Split::Train, Split::Validation, Split::Test];
    for split in splits {
        let drawn: BTreeSet<GoalId> =
            (0..2000).filter_map(|seed| goals.goal_for_seed(split, Seed(seed))).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), goals.split(split), "all of {split}, and no other");
        assert!(goals.split(split).iter().all(|&goal| goals.split_of(goal) == split));
    }
    // Recorded once; a change here gives other goals to everybody who names goals by seeds.
    let first: Vec<u32> = (0..4).map(|seed| goals.goal_for_seed(Split::All, Seed(seed)).unwrap().0).collect();
    assert_eq!(first, [181, 17, 160, 37]);
    let empty = GoalSet::numbered(&catalog, Vec::new());
    assert_eq!(empty.goal_for_seed(Split::Train, Seed(0)), None);
}

#[test]
fn goals_are_found_by_number() {
    let data = data();
    let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let n_goals = goals.goals().len();
    let last = n_goals as i64 - 1;
    assert_eq!(goals.find(last), Ok(goals.goals()[n_goals - 1].id));
    for number in [last + 1, -1, i64::MAX] {
        assert_eq!(goals.find(number), Err(NoSuchGoal { number, n_goals }));
    }
    let message = |number, n_goals| NoSuchGoal { number, n_goals }.to_string();
    assert_eq!(message(3, 3), "there is no goal 3: the shop has goals 0 to 2");
    assert_eq!(message(0, 0), "there is no goal 0: the shop has no goals");
}
