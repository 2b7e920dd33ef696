use webshop_products::{Catalog, GoalKind, GoalSet, Purpose, RawData, RawHumanInstruction, RawItem, Seed};

use super::notes::words_from;
use super::*;

const WISH: &str = "Find me a brass desk lamp with glass base in size tall";

/// Two lamps that a title does not tell apart; the features of the second have a glass base. The goal requires
/// `attributes`, which are hidden.
fn shop(attributes: &[&str]) -> Shop {
    shop_for(WISH, attributes)
}

fn shop_for(wanted: &str, attributes: &[&str]) -> Shop {
    shop_of(&data(wanted, attributes))
}

fn shop_of(data: &RawData) -> Shop {
    let catalog = Catalog::from_raw(data, Seed(0)).unwrap();
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Human, Seed(0)).unwrap();
    Shop::new(catalog, goals).unwrap()
}

fn data(wanted: &str, attributes: &[&str]) -> RawData {
    let item = |asin: &str, name: &str, bullet: &str, sizes: [&str; 2]| RawItem {
        asin: asin.into(),
        name: name.into(),
        small_description: vec![bullet.into(), "Any home".into()],
        images: vec!["a.jpg".into()],
        pricing: "$30.00".into(),
        customization_options: serde_json::from_value(serde_json::json!({
            "size": sizes.map(|size| serde_json::json!({"value": size}))
        }))
        .unwrap(),
        ..RawItem::default()
    };
    let mut data = RawData {
        items: vec![
            item("B0", "Nord Brass Desk Lamp", "Glass shade; wooden base", ["tall", "small"]),
            item("B1", "Acme Brass Desk Lamp", "Has a glass base", ["tall", "wide"]),
            item("B2", "Acme Brass Desk Lamp, Wide", "Has a glass base", ["wide", "small"]),
        ],
        ..RawData::default()
    };
    let instruction = RawHumanInstruction {
        instruction: wanted.into(),
        instruction_attributes: attributes.iter().map(|attribute| (*attribute).into()).collect(),
        instruction_options: Vec::new(),
    };
    data.human.insert("B1".into(), vec![instruction]);
    data
}

fn demonstrate(shop: &Shop, habits: BrowsingHabits, sample: u64) -> Demonstrated {
    let mut rng = Seed(0).rng(Purpose::GOALS, &[sample]);
    BrowsingExpert::new(shop, 5, habits).episode(GoalId(0), &mut rng).expect("the search has results")
}

fn written(demonstrated: &Demonstrated) -> Vec<String> {
    let text = |turn: &ExpertTurn| match &*turn.thought {
        "" => turn.action.to_string(),
        thought => format!("{thought}: {}", turn.action),
    };
    demonstrated.turns.iter().map(text).collect()
}

#[test]
fn whatever_the_features_say_products_are_rejected_or_bought() {
    let shop = shop(&["glass base"]);
    let never = BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, ..BrowsingHabits::NONE };
    let first = demonstrate(&shop, never, 0);
    let always = demonstrate(&shop, BrowsingHabits { rejects_at_random: 1.0, ..never }, 0);
    let read_first = [
        "search[find me a brass desk lamp with glass base in size tall]",
        "click[b1]",
        "size tall $030 $070 yes: click[features]",
        "brass desk lamp brass desk lamp yes glass base glass base yes: click[< prev]",
    ];
    assert_eq!(written(&first), [&read_first[..], &["yes: click[tall]", "click[buy now]"]].concat());
    let rejections = [
        "yes: click[< prev]",
        "click[b0]",
        "size tall $030 $070 yes: click[features]",
        "brass desk lamp brass desk lamp yes glass base glass shade yes: click[< prev]",
        "yes: click[< prev]",
        "click[b2]",
        "size no: click[buy now]",
    ];
    assert_eq!(written(&always), [&read_first[..], &rejections].concat());
}

#[test]
fn a_note_rejects_if_it_ends_in_no() {
    let by_notes =
        BrowsingHabits { by_pairs: 1.0, reads_features: 1.0, rejects_by_notes: 1.0, ..BrowsingHabits::NONE };
    let never = BrowsingHabits { rejects_by_notes: 0.0, ..by_notes };
    let found = shop(&["glass base"]);
    assert_eq!(demonstrate(&found, by_notes, 0), demonstrate(&found, never, 0), "there is nothing to reject");
    let missing = shop_for("Find me a brass desk lamp with linen cord in size tall", &["glass base"]);
    let verdicts = |habits| -> Vec<String> {
        let turns = written(&demonstrate(&missing, habits, 0));
        turns.into_iter().filter(|turn| turn.starts_with("no: ")).collect()
    };
    assert_eq!(verdicts(never), ["no: click[tall]"]);
    assert_eq!(verdicts(by_notes), ["no: click[< prev]"; 2], "the third product is the last, and is bought");
}

#[test]
fn hidden_criteria_do_not_matter() {
    let habits =
        BrowsingHabits { by_pairs: 0.5, reads_features: 0.5, rejects_at_random: 0.5, ..BrowsingHabits::NONE };
    let [one, other] = [shop(&["glass base"]), shop(&["wooden base", "any home"])];
    for sample in 0..20 {
        let [one, other] = [&one, &other].map(|shop| demonstrate(shop, habits, sample));
        assert_eq!(one.turns, other.turns);
    }
}

#[test]
fn a_stated_option_that_the_page_lacks_is_a_reason_to_go_back() {
    let shop = shop_for(
        "Find me a brass desk lamp with glass base with size: tall, and color: red",
        &["glass base"],
    );
    let looks_at_the_page = demonstrate(&shop, BrowsingHabits::NONE, 0);
    assert_eq!(written(&looks_at_the_page)[2], "size tall $030 $070 yes: click[tall]");
    let checks = BrowsingHabits { checks_options: true, ..BrowsingHabits::NONE };
    let notes: Vec<String> =
        demonstrate(&shop, checks, 0).turns.into_iter().map(|turn| turn.thought).collect();
    assert_eq!(notes, ["", "", "size tall color no", "", "size tall color no", "", "size no color no"]);
}

#[test]
fn a_range_of_prices_counts_by_either_end() {
    let mut data = data("Find me a brass desk lamp in size tall", &["any home"]);
    data.items.iter_mut().for_each(|item| item.pricing = "$30.00$300.00".into());
    let shop = shop_of(&data);
    let highest = written(&demonstrate(&shop, BrowsingHabits::NONE, 0));
    assert_eq!(highest[2], "size tall $300 $200 no: click[< prev]");
    let by_lowest = BrowsingHabits { by_lowest_price: true, ..BrowsingHabits::NONE };
    let lowest = written(&demonstrate(&shop, by_lowest, 0));
    assert_eq!(lowest[2], "size tall $030 $200 yes: click[tall]");
}

#[test]
fn a_second_search_leaves_the_attributes_out() {
    let wish = "Find me a brass desk lamp with glass base with size: huge";
    let again = BrowsingHabits { searches_again: true, ..BrowsingHabits::NONE };
    assert_eq!(
        written(&demonstrate(&shop_for(wish, &["glass base"]), again, 0)),
        [
            "search[find me a brass desk lamp with glass base with size: huge]",
            "click[b1]",
            "size no: click[< prev]",
            "click[b0]",
            "size no: click[< prev]",
            "click[back to search]",
            "search[brass desk lamp with size: huge]",
            "click[b2]",
            "size no: click[buy now]",
        ]
    );
    let found = shop(&["glass base"]);
    assert_eq!(demonstrate(&found, again, 0), demonstrate(&found, BrowsingHabits::NONE, 0));
}

/// What the expert does for the first goal after the actions of someone else.
fn finished(shop: &Shop, habits: BrowsingHabits, so_far: &[Action]) -> Option<Demonstrated> {
    let mut rng = Seed(0).rng(Purpose::GOALS, &[0]);
    BrowsingExpert::new(shop, 5, habits).finish(GoalId(0), so_far, &mut rng)
}

fn clicks(labels: &[&str]) -> Vec<Action> {
    let search = Action::Search("find me a brass desk lamp with glass base in size tall".into());
    std::iter::once(search).chain(labels.iter().map(|label| Action::Click((*label).into()))).collect()
}

#[test]
fn an_expert_goes_on_as_from_the_start() {
    let again = BrowsingHabits { searches_again: true, ..BrowsingHabits::NONE };
    let shop = shop_for("Find me a brass desk lamp with glass base with size: huge", &["glass base"]);
    let whole = demonstrate(&shop, again, 0);
    let actions: Vec<Action> = whole.turns.iter().map(|turn| turn.action.clone()).collect();
    assert_eq!(actions.len(), 9);
    // The last product of a search is known on the results page only.
    for n_taken in 0..8 {
        let rest = finished(&shop, again, &actions[..n_taken]).unwrap();
        assert_eq!(rest.turns, whole.turns[n_taken..], "after {n_taken} actions");
        assert_eq!(rest.reward, whole.reward);
    }
}

#[test]
fn an_expert_writes_the_note_again_after_a_mistake() {
    let shop = shop(&["glass base"]);
    let after = |labels: &[&str]| {
        let rest = finished(&shop, BrowsingHabits::NONE, &clicks(labels))?;
        Some(written(&rest))
    };
    let note = "size tall $030 $070 yes";
    let right = Some(vec![format!("{note}: click[tall]"), "click[buy now]".into()]);
    assert_eq!(after(&["b1", "huge"]), right);
    assert_eq!(after(&["b1", "small", "wide"]), right, "another value is selected");
    assert_eq!(after(&["b1", "tall", "tal"]), Some(vec![format!("{note}: click[buy now]")]));
    assert_eq!(after(&["back to search"]).unwrap()[0], clicks(&[])[0].to_string());
    assert_eq!(after(&["b1", "features"]), None);
    assert_eq!(after(&["b1", "buy now"]), None);
}

#[test]
fn an_expert_opens_one_of_many_that_someone_else_opened() {
    let shop = shop(&["glass base"]);
    let opened = clicks(&["b2", "< prev", "b0", "< prev", "b1", "< prev", "b2", "< prev"]);
    let rest = finished(&shop, BrowsingHabits::NONE, &opened).unwrap();
    assert_eq!(
        rest.turns[0].action,
        Action::Click("b1".into()),
        "all were opened, the first one is opened again"
    );
    assert_eq!(rest.turns.last().unwrap().action, Action::Click("buy now".into()));
}

#[test]
fn habits_are_drawn() {
    let shop = shop(&["glass base"]);
    let habits =
        BrowsingHabits { by_pairs: 0.5, reads_features: 0.5, rejects_at_random: 0.5, ..BrowsingHabits::NONE };
    let episodes: Vec<_> = (0..200).map(|sample| demonstrate(&shop, habits, sample)).collect();
    let share = |is: &dyn Fn(&Demonstrated) -> bool| episodes.iter().filter(|one| is(one)).count();
    let reads = |one: &Demonstrated| written(one).iter().any(|turn| turn.ends_with("click[features]"));
    // More than one product may be read.
    assert!((90..150).contains(&share(&reads)), "{}", share(&reads));
    let is_one_of_two = 20..180;
    assert!(is_one_of_two.contains(&share(&|one| one.reward == 1.0)));
}

#[test]
fn a_note_copies_before_it_compares() {
    let found = |phrase: &[&str]| {
        let phrase: Vec<String> = phrase.iter().map(|&word| word.into()).collect();
        words_from(&["Truly machine washable; soft", "washable (machine)"], &phrase)
    };
    assert_eq!(found(&["machine", "wash"]).as_deref(), Some("machine washable"));
    assert_eq!(found(&["soft", "touch"]).as_deref(), Some("soft"), "a clause ends");
    assert_eq!(found(&["waterproof"]), None);
}
