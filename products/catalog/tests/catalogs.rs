//! Whatever a catalog holds, it is written and read back the same, and loading it fails with a message or not
//! at all.

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use webshop_products::{
    Catalog, GoalKind, GoalSet, RawData, RawHumanInstruction, RawInstruction, RawItem, RawOption, Seed,
};

/// Any text: line breaks, quotes, controls and all.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", "\\PC{0,8}", vec(any::<char>(), 0..6).prop_map(|c| c.into_iter().collect())]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..4)
}

/// Mostly ids that a product can have, few enough to repeat.
fn asin() -> impl Strategy<Value = String> {
    prop_oneof![8 => "B[0-9A-C]", 1 => "nan", 1 => text()]
}

/// Mostly prices that can be parsed.
fn pricing() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0u32..200_000).prop_map(|cents| format!("${}.{:02}", cents / 100, cents % 100)),
        4 => ("[1-9]{1,3}", "[1-9]{1,3}").prop_map(|(low, high)| format!("${low}${high}")),
        2 => Just(String::new()),
        1 => text(),
    ]
}

fn options() -> impl Strategy<Value = IndexMap<String, Option<Vec<RawOption>>>> {
    let value = (text(), weighted(0.3, text())).prop_map(|(value, image)| RawOption { value, image });
    let name = prop_oneof!["color|size|Color", text()];
    vec((name, weighted(0.9, vec(value, 0..4))), 0..4).prop_map(|groups| groups.into_iter().collect())
}

fn item() -> impl Strategy<Value = RawItem> {
    let texts = (asin(), text(), pricing(), text(), text(), text(), text());
    (texts, texts_of_an_item(), options()).prop_map(
        |(texts, (small_description, images), customization_options)| {
            let (asin, name, pricing, category, query, product_category, full_description) = texts;
            RawItem {
                asin,
                name,
                pricing,
                category,
                query,
                product_category,
                small_description,
                full_description,
                customization_options,
                images,
            }
        },
    )
}

fn texts_of_an_item() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    (texts(), vec(text(), 1..3))
}

fn instruction() -> impl Strategy<Value = RawInstruction> {
    (weighted(0.8, texts()), weighted(0.8, text()), weighted(0.8, texts())).prop_map(
        |(attributes, instruction, instruction_attributes)| RawInstruction {
            attributes,
            instruction,
            instruction_attributes,
        },
    )
}

fn human() -> impl Strategy<Value = RawHumanInstruction> {
    (text(), texts(), texts()).prop_map(|(instruction, instruction_attributes, instruction_options)| {
        RawHumanInstruction { instruction, instruction_attributes, instruction_options }
    })
}

fn data() -> impl Strategy<Value = RawData> {
    let instructions = vec((asin(), instruction()), 0..8);
    let human = vec((asin(), vec(human(), 0..3)), 0..4);
    (vec(item(), 0..8), instructions, human).prop_map(|(items, instructions, human)| RawData {
        items,
        instructions: instructions.into_iter().collect(),
        human: human.into_iter().collect(),
    })
}

/// What loading makes of a catalog: the fingerprint of its goals, or the message.
fn loaded(data: &RawData) -> Result<String, String> {
    let message = |error: webshop_products::DataError| error.to_string();
    let catalog = Catalog::from_raw(data, Seed(0)).map_err(message)?;
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).map_err(message)?;
    Ok(goals.fingerprint().to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_saved_is_loaded_again(data in data()) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        data.write_dir(dir.path()).expect("an empty folder");
        let read = RawData::read_dir(dir.path(), None).expect("what was just written");
        prop_assert_eq!(&read, &data);
        prop_assert_eq!(loaded(&read), loaded(&data));
    }

    #[test]
    fn a_limit_keeps_the_first_records(data in data(), limit in 0usize..8) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        data.write_dir(dir.path()).expect("an empty folder");
        let read = RawData::read_dir(dir.path(), Some(limit)).expect("what was just written");
        prop_assert_eq!(&read.items[..], &data.items[..limit.min(data.items.len())]);
    }

    #[test]
    fn loading_ends_in_goals_or_in_a_message(data in data()) {
        let once = loaded(&data);
        prop_assert_eq!(&once, &loaded(&data));
        if let Err(message) = once {
            prop_assert!(message.starts_with("`items_"), "{}", message);
        }
    }
}
