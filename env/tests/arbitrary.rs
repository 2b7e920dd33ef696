//! The shop accepts arbitrary texts as titles, descriptions, options and instructions.

use proptest::collection::vec;
use proptest::prelude::*;
use webshop_env::{Action, Page, Session, Shop, read_html};
use webshop_products::{
    Catalog, GoalId, GoalKind, GoalSet, RawData, RawHumanInstruction, RawItem, RawOption, Seed,
};

/// Any text: line breaks, quotes, controls, markup and all but the null character, which no HTML can hold.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "(red|lamp|<b>|&amp;|\"|'|]|\\[| |buy now|search|< prev|\u{e9}|\\n|\\t|\\r){0,6}",
        "\\PC{0,8}",
        vec(any::<char>(), 0..6).prop_map(|c| c.into_iter().filter(|c| *c != '\0').collect()),
    ]
}

fn item() -> impl Strategy<Value = RawItem> {
    let options = vec((text(), vec(text(), 0..4)), 0..3);
    (text(), text(), vec(text(), 0..3), text(), options).prop_map(
        |(name, full_description, small_description, category, options)| {
            let values = |texts: Vec<String>| {
                Some(texts.into_iter().map(|value| RawOption { value, image: None }).collect())
            };
            RawItem {
                name: format!("lamp {name}"),
                full_description,
                small_description,
                category,
                query: "lamps".into(),
                product_category: "Home › Lamps".into(),
                customization_options: options
                    .into_iter()
                    .map(|(name, texts)| (name, values(texts)))
                    .collect(),
                images: vec!["a.jpg".into()],
                ..RawItem::default()
            }
        },
    )
}

/// A shop of some products called `B0`, `B1`, …, of which the first is wanted.
fn shop() -> impl Strategy<Value = Shop> {
    (vec(item(), 1..4), text()).prop_map(|(items, instruction)| {
        let mut data = RawData::default();
        for (at, item) in items.into_iter().enumerate() {
            data.items.push(RawItem { asin: format!("B{at}"), ..item });
        }
        let instruction = RawHumanInstruction {
            instruction,
            instruction_attributes: vec!["lamp".into()],
            instruction_options: Vec::new(),
        };
        data.human.insert("B0".into(), vec![instruction]);
        let catalog = Catalog::from_raw(&data, Seed(0)).expect("ids and prices are sound");
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).expect("and so is the goal");
        Shop::new(catalog, goals).expect("the shop opens")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_page_of_any_shop_holds(shop in shop(), numbers in vec(any::<usize>(), 1..12)) {
        let mut session = Session::start(GoalId(0));
        session.act(&shop, &Action::Search("lamp".into()));
        for number in numbers {
            let page = session.page(&shop);
            let read = read_html(&page.html());
            prop_assert_eq!(read.text(), page.text());
            prop_assert_eq!(read.text_rich(), page.text_rich());
            prop_assert_eq!(&read.available_actions, &page.available_actions());
            prop_assert_eq!(&Session::restore(&shop, &session.snapshot(&shop)), &Ok(session.clone()));
            let clicks: Vec<Action> = page.available_actions().clicks().collect();
            for click in &clicks {
                prop_assert_eq!(session.clone().act(&shop, click).noop, None, "{} on {:?}", click, page);
                prop_assert_eq!(&click.to_string().parse::<Action>().expect("total"), click);
            }
            match clicks.get(number % clicks.len().max(1)) {
                Some(click) => session.act(&shop, click),
                None => session.act(&shop, &Action::Search("lamp".into())),
            };
            if matches!(page, Page::Done(_)) {
                break;
            }
        }
    }
}
