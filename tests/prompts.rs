//! What the model reads and is shown to say.
//!
//! `snapshots/prompts/` holds demonstrated trips as the model meets them; and whatever may be done on a page
//! can be said in the dialect, and is understood.

mod common;

use std::fmt::Write;
use std::path::Path;

use rand::Rng;
use webshop_agent::dialect::plain::{parse, utterance};
use webshop_agent::prompt::{Piece, PromptConfig, encode, marks};
use webshop_agent::{DemonstratedTurn, Demonstrator, Manner, ShopTokenizer, Utterance};
use webshop_env::{Action, Page, RewardBreakdown, Session, Shop};
use webshop_products::{
    Catalog, EmbeddedCatalog, Goal, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed, Split,
};
use webshop_training::recount;

const PROMPT: PromptConfig = PromptConfig { results_shown: 5 };

fn shop(data: &RawData) -> Shop {
    let catalog = Catalog::from_raw(data, Seed(0)).expect("sound products");
    let goals = GoalSet::from_raw(data, &catalog, GoalKind::Both, Seed(0)).expect("and sound goals");
    Shop::new(catalog, goals).expect("the shop opens")
}

fn hundred() -> Shop {
    shop(&RawData::embedded(EmbeddedCatalog::Hundred))
}

/// Products made to be difficult: brackets, quotes, markup, equal values, options named like buttons.
fn difficult() -> Shop {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/parity");
    shop(&RawData::read_dir(&dir, None).expect("the recorded catalog is sound"))
}

fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(Piece::text).collect()
}

/// The first training goal with a choice to make whose careful trip refuses a candidate.
fn refusing_goal(shop: &Shop) -> &Goal {
    let refuses = |goal: &&Goal| {
        let trip = Demonstrator::new(shop, PROMPT.results_shown).trip(goal.id, Manner::Careful);
        let thoughts = trip.iter().flatten().flat_map(|turn| &turn.thought);
        !goal.options.is_empty() && thoughts.into_iter().any(|piece| piece.text().ends_with(" no"))
    };
    let goals = shop.goals().split(Split::Train).iter().map(|&goal| shop.goals().get(goal));
    goals.into_iter().find(refuses).expect("not every first result is right")
}

/// Snapshots the trip that `manner` makes for [`refusing_goal`], and returns how it was judged.
fn check(name: &str, manner: Manner) -> RewardBreakdown {
    let shop = hundred();
    let goal = refusing_goal(&shop);
    let turns = Demonstrator::new(&shop, PROMPT.results_shown).trip(goal.id, manner).expect("a trip");
    let mut story = String::new();
    for (read, said) in recount(PROMPT, &shop, goal.id, &turns) {
        // A line for each candidate, as a reader would set it.
        let read = text(&read).replace(" $", "\n         $").replace("<|", "\n        <|");
        writeln!(story, "reads {read}\nsays  {}\n", text(&said)).expect("memory");
    }
    let judged = judge(&shop, goal.id, &turns);
    common::in_area("prompts", || insta::assert_snapshot!(name, format!("{story}{judged}")));
    judged
}

fn judge(shop: &Shop, goal: GoalId, turns: &[DemonstratedTurn]) -> RewardBreakdown {
    let mut session = Session::start(goal);
    let mut outcomes = turns.iter().map(|turn| session.act(shop, &turn.action));
    outcomes.find_map(|outcome| outcome.breakdown).expect("the trip ends in a purchase")
}

#[test]
fn a_careful_trip_thinks_and_succeeds() {
    assert!(check("careful", Manner::Careful).is_success());
}

#[test]
fn a_hasty_trip_takes_the_first() {
    assert!(!check("hasty", Manner::Hasty).is_success());
}

/// Every page of some random trips.
fn walk(shop: &Shop, mut visit: impl FnMut(&Page)) {
    let goals = shop.goals().goals();
    for trip in 0..100 {
        let mut rng = Seed(3).rng(Purpose::Policy, &[trip]);
        let goal = &goals[rng.random_range(0..goals.len() as u64) as usize];
        let mut session = Session::start(goal.id);
        for _ in 0..10 {
            let page = session.page(shop);
            visit(&page);
            let clicks: Vec<Action> = page.available_actions().clicks().collect();
            let action = match page {
                Page::Done(_) => break,
                Page::Search(_) => Action::Search(goal.query.to_lowercase()),
                _ => clicks[rng.random_range(0..clicks.len() as u64) as usize].clone(),
            };
            session.act(shop, &action);
        }
    }
}

#[test]
fn what_may_be_done_can_be_said() {
    for shop in [hundred(), difficult()] {
        let titles = shop.catalog().products().iter().map(|product| &*product.title);
        let marks = marks();
        let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
        let tokenizer = ShopTokenizer::train(titles, 600, &marks).expect("room for all bytes and marks");
        walk(&shop, |page| {
            let search = Action::Search("a lamp [60x80], \"red\"".into());
            for action in page.available_actions().clicks().chain([search]) {
                let thoughts = [(vec![], None), (vec![Piece::words("is it red? no")], Some("is it red? no"))];
                for (thought, written) in thoughts {
                    let said = utterance(&thought, &action, page);
                    let expected = Utterance {
                        thought: written.map(str::to_owned),
                        action: action.clone(),
                        is_well_formed: true,
                        leaves: false,
                    };
                    assert_eq!(parse(&text(&said), page), expected);
                    let ids = encode(&tokenizer, &said).expect("known marks");
                    assert_eq!(parse(&tokenizer.decode(&ids), page), expected);
                }
            }
        });
    }
}
