//! Each difference on the smallest catalog that has it.

use super::*;
use crate::reward::nouns::NounTable;
use std::collections::HashMap;
use webshop_products::{
    Catalog, GoalKind, GoalSet, RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption, Seed,
};

/// A lamp at $5 with these options, required in every combination.
fn lamp(options: &[(&str, &[&str])]) -> RawData {
    let value = |text: &&str| RawOption { value: (*text).into(), image: None };
    let item = RawItem {
        asin: "B1".into(),
        name: "Oak Lamp".into(),
        pricing: "$5.00".into(),
        images: vec!["a".into()],
        customization_options: options
            .iter()
            .map(|(name, values)| ((*name).to_owned(), Some(values.iter().map(value).collect())))
            .collect(),
        ..RawItem::default()
    };
    let instruction = RawInstruction {
        attributes: Some(vec!["dimmable".into()]),
        instruction: Some("a lamp".into()),
        instruction_attributes: Some(vec!["dimmable".into()]),
    };
    RawData { items: vec![item], instructions: [("B1".to_owned(), instruction)].into(), ..RawData::default() }
}

fn report(data: &RawData, nouns: &NounReference) -> DeviationReport {
    let catalog = Catalog::from_raw(data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let world = OriginalWorld::load(data, GoalStyle::Synthetic, 0).unwrap();
    DeviationReport::new(&Shop::new(catalog, goals).unwrap(), &world, nouns).unwrap()
}

/// The number of goals affected by the difference `name`.
fn affected(data: &RawData, name: &str) -> usize {
    let report = report(data, &NounReference::EveryWord);
    report.deviations.iter().find(|deviation| deviation.name == name).unwrap().n_goals
}

#[test]
fn a_lamp_without_options_differs_in_its_limit_its_draw_and_after_the_purchase_only() {
    let report = report(&lamp(&[]), &NounReference::EveryWord);
    let affected = report.deviations.iter().filter(|deviation| deviation.n_goals > 0);
    assert_eq!(
        affected.map(|deviation| deviation.name).collect::<Vec<_>>(),
        ["price limits", "drawing by weight", "after the purchase"]
    );
}

#[test]
fn a_colour_inside_a_word_cannot_be_bought_for_one_in_the_original() {
    // `rectangular` is chosen as `tan`, and no pair of name and value looks like that.
    let shapes = lamp(&[("shape", &["rectangular", "square"])]);
    assert_eq!([affected(&shapes, "reachable reward"), affected(&shapes, "required options")], [1, 1]);
    // The original requires `red` alone, because it is a color, and so is the value: both agree.
    let colours = lamp(&[("color", &["red", "green"])]);
    assert_eq!([affected(&colours, "reachable reward"), affected(&colours, "required options")], [0, 0]);
}

#[test]
fn odd_values_affect_brackets_shared_values_and_marks() {
    let brackets = lamp(&[("size", &["a [b]", "c"])]);
    assert_eq!([affected(&brackets, "brackets"), affected(&brackets, "shared values")], [1, 0]);
    let accents = lamp(&[("size", &["größe", "small"])]);
    assert_eq!([affected(&accents, "marks of selections"), affected(&accents, "brackets")], [2, 0]);
    let shared = lamp(&[("shade", &["oak"]), ("foot", &["oak"])]);
    assert_eq!([affected(&shared, "shared values"), affected(&shared, "marks of selections")], [1, 1]);
}

#[test]
fn the_two_lists_of_goals_are_compared() {
    let mut data = lamp(&[("size", &["1", "2", "3", "4", "5", "6", "7", "8"])]);
    let human = RawHumanInstruction {
        instruction: "an item_page lamp".into(),
        instruction_attributes: vec!["dimmable".into()],
        instruction_options: Vec::new(),
    };
    // All eight weigh the same, so only the first and the last are drawn wrongly.
    assert_eq!(affected(&data, "drawing by weight"), 2);
    assert!(affected(&data, "numbers of goals") > 4);
    data.human.insert("B1".into(), vec![human]);
    assert_eq!([affected(&data, "kinds of goals"), affected(&data, "going back")], [1, 1]);
    data.items[0].pricing = "$5.00$9.00".into();
    assert_eq!(affected(&data, "charged prices"), 9);
}

#[test]
fn the_choice_of_nouns_matters_if_titles_share_no_other_word() {
    let mut data = lamp(&[]);
    for (asin, title) in [("B1", "Soft Lamp"), ("B2", "Soft Rug")] {
        data.items.push(RawItem { asin: asin.into(), name: title.into(), ..data.items[0].clone() });
    }
    data.items.remove(0);
    // `soft` is not a noun here: nothing is shared, r_type 0. As a noun it is half of either title, r_type 1.
    let choice = report(&data, &NounReference::EveryWord).nouns;
    assert_eq!((choice.n_pairs, choice.n_larger, choice.n_smaller), (2, 0, 2));
    let known = HashMap::from([("Soft Rug".to_owned(), vec!["rug".to_owned()])]);
    let choice = report(&data, &NounReference::Table(NounTable::new(known))).nouns;
    assert_eq!((choice.n_pairs, choice.n_larger, choice.n_smaller), (2, 0, 0));
}
