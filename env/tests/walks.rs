//! Properties of every reachable page, for any action.
//!
//! Random walks through the recorded catalog, whose products are difficult on purpose (brackets, quotes,
//! markup, line breaks, equal values, options named like buttons), under all rules; and arbitrary text as
//! actions.

mod common;

use common::without_steps;
use proptest::prelude::*;
use rand::Rng;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use webshop_env::{
    Action, Compat, EnvConfig, NoopReason, ObservationMode, Page, Session, Shop, ShopConfig, ShopEnv, VecEnv,
    read_html,
};
use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, Purpose, RawData, Seed};

const N_EPISODES: u64 = 120;
const EPISODE_STEPS: u64 = 12;

static SHOPS: LazyLock<Vec<Arc<Shop>>> = LazyLock::new(|| {
    let rules = [(Compat::Repaired, false), (Compat::Repaired, true), (Compat::Original, false)];
    rules.map(|(compat, shows_attributes)| Arc::new(shop(compat, shows_attributes))).into()
});

fn shop(compat: Compat, shows_attributes: bool) -> Shop {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/parity");
    let data = RawData::read_dir(&dir, None).expect("the recorded catalog is sound");
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("so are its products");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("and its goals");
    let config = ShopConfig { compat, shows_attributes, ..ShopConfig::default() };
    Shop::with_config(catalog, goals, config).expect("the shop opens")
}

/// Visits every page of some random episodes, with its session.
fn walk(shop: &Shop, mut visit: impl FnMut(&Session, &Page)) {
    for episode in 0..N_EPISODES {
        let mut rng = Seed(7).rng(Purpose::new("policy"), &[episode]);
        let n_goals = shop.goals().goals().len();
        let goal = shop.goals().get(GoalId(rng.random_range(0..n_goals) as u32));
        let mut session = Session::start(goal.id);
        for _ in 0..EPISODE_STEPS {
            let page = session.page(shop);
            visit(&session, &page);
            let clicks: Vec<Action> = page.available_actions().clicks().collect();
            let action = match page {
                Page::Done(_) => break,
                Page::Search(_) => Action::Search(goal.title.to_lowercase()),
                _ => clicks[rng.random_range(0..clicks.len())].clone(),
            };
            session.act(shop, &action);
        }
    }
}

#[test]
fn html_and_text_agree() {
    for shop in SHOPS.iter() {
        walk(shop, |_, page| {
            let read = read_html(&page.html());
            assert_eq!(read.text(), page.text());
            assert_eq!(read.text_rich(), page.text_rich());
            assert_eq!(read.available_actions, page.available_actions());
        });
    }
}

#[test]
fn every_listed_click_does_something_and_no_other_does() {
    for shop in SHOPS.iter() {
        walk(shop, |session, page| {
            let available = page.available_actions();
            for click in available.clicks() {
                assert_eq!(session.clone().act(shop, &click).noop, None, "{click} on {page:?}");
            }
            for label in ["buy now", "< prev", "next >", "description", "attributes", "search", "b0"] {
                if label == "search" || !available.clickables.iter().any(|listed| listed == label) {
                    let outcome = session.clone().act(shop, &Action::Click(label.into()));
                    assert!(outcome.noop.is_some(), "{label} on {page:?}");
                }
            }
        });
    }
}

#[test]
fn a_click_reads_back_from_its_text() {
    let shop = &SHOPS[0];
    walk(shop, |_, page| {
        for click in page.available_actions().clicks() {
            assert_eq!(click.to_string().parse(), Ok(click));
        }
    });
}

#[test]
fn a_session_survives_json_on_every_page() {
    let shop = &SHOPS[0];
    walk(shop, |session, page| {
        let json = serde_json::to_string(session).expect("a session is data");
        let read: Session = serde_json::from_str(&json).expect("and reads back");
        assert_eq!(&read, session);
        assert_eq!(&read.page(shop), page);
    });
}

#[test]
fn an_address_holds_the_page() {
    for shop in SHOPS.iter() {
        walk(shop, |session, page| {
            let there = Session::at(&session.name(), session.goal(), session.address());
            assert_eq!(there.page(shop).text(), page.text());
            assert_eq!(there.address(), session.address());
            assert_eq!(there.steps(), 0);
        });
    }
}

#[test]
fn lanes_do_not_depend_on_threads() {
    let shop = &SHOPS[0];
    let goals: Vec<GoalId> = (0..200).map(GoalId).collect();
    let play = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
        pool.expect("threads start").install(|| {
            let mut lanes = VecEnv::new(shop, EnvConfig::default(), &goals);
            let mut steps = Vec::new();
            for turn in 0..4 {
                let act = |lane: usize| match turn {
                    0 => Action::Search(shop.goals().get(goals[lane]).query.to_string()),
                    1 => first_product(&lanes.lanes()[lane]),
                    _ => Action::Click("buy now".into()),
                };
                let actions: Vec<Action> = (0..lanes.n_lanes()).map(act).collect();
                steps.push(lanes.step(&actions).to_vec());
            }
            steps
        })
    };
    let steps = play(1);
    assert!(steps[2].iter().any(|step| step.reward > 0.0));
    assert!(steps[3].iter().any(|step| step.info.noop == Some(NoopReason::EpisodeOver)));
    assert_eq!(steps, play(2));
}

fn first_product(lane: &ShopEnv) -> Action {
    match lane.page() {
        Page::Results(page) if !page.items.is_empty() => {
            Action::Click(page.items[0].id.as_str().to_lowercase())
        }
        _ => Action::Click("back to search".into()),
    }
}

#[test]
fn the_last_step_is_truncated_and_then_nothing_happens() {
    let config = EnvConfig { max_steps: 3, observation: ObservationMode::Url };
    let mut env = ShopEnv::new(Arc::clone(&SHOPS[0]), config);
    env.reset(GoalId(0));
    let search = Action::Search("lamp".into());
    assert!(!env.step(&Action::Noop(NoopReason::Malformed)).truncated);
    assert!(!env.step(&search).truncated);
    let last = env.step(&Action::Click("next >".into()));
    assert!(last.truncated && !last.terminated && last.info.noop.is_none());
    let after = env.step(&search);
    assert_eq!(after.info.noop, Some(NoopReason::EpisodeOver));
    assert!(after.truncated);
    assert_eq!(after.observation, last.observation);
    assert!(!env.reset(GoalId(1)).content().is_empty() && !env.is_over());
}

/// Words, brackets, labels and noise, in any order.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        "(search|click|Search|think)\\[?[a-z <>\\[\\]]{0,12}\\]?",
        "search\\[(lamp|shoes|table|red|<c> garden|<r>|<a>|<q> lamps|\\PC{0,6}| ){0,4}\\]",
        "click\\[(next >|< prev|buy now|description|features|back to search|b0[a-z0-9]{8})\\]",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_an_action(texts in prop::collection::vec(any_text(), 1..12)) {
        for shop in SHOPS.iter() {
            let play = || {
                let mut session = Session::start(GoalId(3));
                let mut shown = String::new();
                for text in &texts {
                    let (before, page_before) = (session.clone(), session.page(shop));
                    let action = Action::parse(text, shop.config().compat);
                    let outcome = session.act(shop, &action);
                    let page = session.page(shop);
                    prop_assert_eq!(session.steps(), before.steps() + 1);
                    if outcome.noop.is_some() {
                        prop_assert_eq!(&page, &page_before);
                        prop_assert_eq!(without_steps(&session), without_steps(&before));
                        prop_assert_eq!((outcome.reward, outcome.terminated), (0.0, false));
                    }
                    shown += &page.text_rich();
                    shown += &page.html();
                }
                Ok(shown)
            };
            prop_assert_eq!(play()?, play()?);
        }
    }
}

#[test]
fn step_lanes_steps_only_the_named_lanes() {
    let goals = [0, 1, 2].map(GoalId);
    let mut lanes = VecEnv::new(&SHOPS[0], EnvConfig::default(), &goals);
    let search = Action::Search("lamp".into());
    let steps = lanes.step_lanes(&[(2, search.clone()), (0, Action::Noop(NoopReason::Malformed))]).to_vec();
    assert_eq!(
        steps.iter().map(|step| step.info.noop).collect::<Vec<_>>(),
        [Some(NoopReason::Malformed), None, None]
    );
    assert_eq!([0, 1, 2].map(|lane: usize| lanes.lanes()[lane].session().steps()), [1, 0, 1]);
    let mut alone = ShopEnv::new(Arc::clone(&SHOPS[0]), EnvConfig::default());
    alone.reset(GoalId(2));
    assert_eq!(alone.step(&search), steps[2]);
    // A lane may belong to another shop.
    let other = ShopEnv::new(Arc::clone(&SHOPS[2]), EnvConfig::default());
    lanes.replace_lane(1, other.clone());
    assert_eq!(lanes.steps()[1].observation, other.observation());
    // A lane whose episode is over says so, however it came to its place.
    let limit = EnvConfig { max_steps: 1, ..EnvConfig::default() };
    let mut truncated = ShopEnv::new(Arc::clone(&SHOPS[0]), limit);
    truncated.reset(GoalId(0));
    assert!(truncated.step(&search).truncated);
    assert!(lanes.replace_lane(0, truncated.clone()).truncated);
    assert!(VecEnv::from_lanes(vec![truncated]).steps()[0].truncated);
}
