use super::*;
use crate::{GoalKind, RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption, Seed};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.into()).collect()
}

/// A lamp at $20 in four sizes with two required attributes, and its namesake without options or goals.
fn statistics() -> CatalogStatistics {
    let value = |text: &&str| RawOption { value: (*text).into(), image: None };
    let sizes = ["small", "small wide", "x-large", "tall"].iter().map(value).collect();
    let lamp = |asin: &str| RawItem {
        asin: asin.into(),
        name: "Acme Oak Lamp, dimmable".into(),
        query: "lamps".into(),
        pricing: "$20".into(),
        small_description: texts(&["with steel base", "wipe to clean; easy"]),
        full_description: "A fine lamp".into(),
        images: texts(&["a"]),
        ..RawItem::default()
    };
    let items = vec![
        RawItem { customization_options: [("Size".to_owned(), Some(sizes))].into(), ..lamp("B1") },
        lamp("B2"),
    ];
    let synthetic = RawInstruction {
        attributes: Some(texts(&["dimmable", "steel base", "easy clean"])),
        instruction: Some("Find me dimmable, easy clean lamps".into()),
        instruction_attributes: Some(texts(&["dimmable", "easy clean"])),
    };
    let human = RawHumanInstruction {
        instruction: "a lamp with steel base, small wide.".into(),
        instruction_attributes: texts(&["steel base"]),
        instruction_options: texts(&["small wide"]),
    };
    let data = RawData {
        items,
        instructions: [("B1".to_owned(), synthetic)].into(),
        human: [("B1".to_owned(), vec![human])].into(),
    };
    let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
    CatalogStatistics::new(&catalog, &goals)
}

#[test]
fn options_are_counted_by_value_and_by_group() {
    let found = statistics();
    assert_eq!((found.group_values.mean, found.group_values.max), (4.0, 4));
    assert_eq!((found.n_groups, found.without_options), (0.5, 0.5));
    // "small wide" contains "small"; "x-large" has a hyphen; every goal wants one size of four.
    assert_eq!((found.containing_values, found.marked_values, found.options_by_chance), (0.25, 0.25, 0.25));
}

#[test]
fn a_required_attribute_is_in_the_title_or_in_the_bullets_or_scattered() {
    let found = statistics();
    let shares = [found.attributes_in_title, found.attributes_in_bullets, found.attributes_scattered];
    assert_eq!(shares, [1.0 / 3.0; 3], "dimmable, steel base, easy clean");
    assert_eq!((found.human_attributes, found.synthetic_attributes), (1.0, 2.0));
}

#[test]
fn texts_are_counted_in_words() {
    let found = statistics();
    assert_eq!((found.title_words.p50, found.bullet_words.p50, found.description_words.p50), (4, 7, 3));
    assert_eq!((found.shared_titles, found.n_kinds, found.kind_products), (1.0, 1, 2.0));
    // Acme, oak, lamp and dimmable occur twice, small too; wide, x, large and tall once.
    assert_eq!((found.n_word_types, found.words_seen_once), (9, 4.0 / 9.0));
}

#[test]
fn goals_are_counted_by_style_and_product() {
    let found = statistics();
    // The query is "lamps", which "a lamp with" lacks.
    assert_eq!(found.said_literally, [0.0, 1.0, 1.0]);
    assert_eq!((found.product_goals.mean, found.product_goals.max), (5.0, 5), "one human, four synthetic");
    // Limits are $40 to $60 on a price of $20.
    for looseness in [found.human_looseness, found.synthetic_looseness] {
        assert!((2.0..=3.0).contains(&looseness), "{looseness}");
    }
}

#[test]
fn nothing_has_statistics_too() {
    let (data, catalog) = (RawData::default(), Catalog::default());
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
    let found = CatalogStatistics::new(&catalog, &goals);
    assert_eq!((found.n_products, found.group_values, found.marked_values), (0, Spread::default(), 0.0));
}
