//! States are values: they can be stored, restored, copied and digested at any point of an episode.
//!
//! Random walks through the embedded shop, interrupted and continued at random points.

mod common;

use common::without_steps;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use webshop_env::{
    Action, EnvConfig, NounTable, ObservationMode, Session, Shop, ShopConfig, ShopEnv, SnapshotError, Step,
};
use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};

static SHOP: LazyLock<Arc<Shop>> = LazyLock::new(|| shop(EmbeddedCatalog::Hundred, ShopConfig::default()));

fn shop(which: EmbeddedCatalog, config: ShopConfig) -> Arc<Shop> {
    let data = RawData::embedded(which);
    let catalog = Catalog::from_raw(&data, Seed(0)).expect("the embedded catalog is sound");
    let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).expect("so are its goals");
    Arc::new(Shop::with_config(catalog, goals, config).expect("the shop opens"))
}

/// Numbers that choose among the available actions of any page.
fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..20)
}

/// The action that a number chooses: a search at the search bar, elsewhere a click, now and then a no-op.
fn picked(env: &ShopEnv, number: u8) -> Action {
    let clicks: Vec<Action> = env.page().available_actions().clicks().collect();
    let number = usize::from(number);
    match clicks.get(number % (clicks.len() + 2)) {
        Some(click) => click.clone(),
        None if number.is_multiple_of(8) => Action::Click("no such label".into()),
        None => Action::Search(env.shop().goals().get(env.session().goal()).query.to_string()),
    }
}

fn walk(env: &mut ShopEnv, numbers: &[u8]) -> Vec<Step> {
    let step = |&number| {
        let action = picked(env, number);
        env.step(&action)
    };
    numbers.iter().map(step).collect()
}

fn started(goal: u32) -> ShopEnv {
    let n_goals = SHOP.goals().goals().len() as u32;
    let config = EnvConfig { max_steps: 15, observation: ObservationMode::TextRich };
    let mut env = ShopEnv::new(Arc::clone(&SHOP), config);
    env.reset(GoalId(goal % n_goals));
    env
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_environment_continues_the_episode(goal: u32, before in choices(), after in choices()) {
        let mut env = started(goal);
        walk(&mut env, &before);
        let mut restored = ShopEnv::restore(Arc::clone(&SHOP), &env.snapshot()).expect("our own bytes");
        prop_assert_eq!(restored.observation(), env.observation());
        prop_assert_eq!(restored.session(), env.session());
        prop_assert_eq!(walk(&mut restored, &after), walk(&mut env, &after));
        prop_assert_eq!(restored.snapshot(), env.snapshot());
    }

    #[test]
    fn a_session_survives_its_snapshot(goal: u32, numbers in choices()) {
        let mut env = started(goal);
        walk(&mut env, &numbers);
        let session = env.session();
        let bytes = session.snapshot(&SHOP);
        prop_assert!(bytes.len() < 400, "{} bytes", bytes.len());
        let read = Session::restore(&SHOP, &bytes).expect("our own bytes");
        prop_assert_eq!(&read, session);
        prop_assert_eq!(read.digest(), session.digest());
    }

    #[test]
    fn forks_share_nothing(goal: u32, before in choices(), one in choices(), other in choices()) {
        let mut env = started(goal);
        walk(&mut env, &before);
        let mut forks = env.fork(3);
        let untouched = env.snapshot();
        let steps: Vec<_> = [&one, &other, &one].into_iter().zip(&mut forks).map(|(n, f)| walk(f, n)).collect();
        prop_assert_eq!(&steps[0], &steps[2]);
        prop_assert_eq!(walk(&mut env.clone(), &other), steps[1].clone());
        prop_assert_eq!(env.snapshot(), untouched);
    }

    #[test]
    fn a_noop_changes_only_the_number_of_steps(goal: u32, numbers in choices()) {
        let mut env = started(goal);
        for number in numbers {
            let before = env.session().clone();
            let action = picked(&env, number);
            let was_over = env.is_over();
            let step = env.step(&action);
            if step.info.noop.is_some() {
                let taken = u32::from(!was_over);
                prop_assert_eq!(without_steps(&before), without_steps(env.session()));
                prop_assert_eq!(env.session().steps(), before.steps() + taken);
            } else {
                prop_assert!(before.digest() != env.session().digest());
            }
        }
    }

    #[test]
    fn any_bytes_are_refused_or_restored(mut bytes in prop::collection::vec(any::<u8>(), 0..80), at: usize) {
        let _ = Session::restore(&SHOP, &bytes);
        let ours = started(3).session().snapshot(&SHOP);
        let at = at % ours.len();
        bytes.splice(..0, ours[..at].iter().copied());
        prop_assert!(bytes == ours || Session::restore(&SHOP, &bytes).is_err());
    }
}

#[test]
fn another_shop_refuses_a_snapshot() {
    let bytes = started(0).session().snapshot(&SHOP);
    let larger = shop(EmbeddedCatalog::Thousand, ShopConfig::default());
    let with_attributes =
        shop(EmbeddedCatalog::Hundred, ShopConfig { shows_attributes: true, ..ShopConfig::default() });
    let nouns = NounTable::new([("Lamp".to_owned(), vec!["lamp".to_owned()])].into());
    let with_nouns = shop(EmbeddedCatalog::Hundred, ShopConfig { nouns, ..ShopConfig::default() });
    for other in [larger, with_attributes, with_nouns] {
        let expected =
            SnapshotError::OtherShop { found: SHOP.snapshot_digest(), here: other.snapshot_digest() };
        assert_eq!(Session::restore(&other, &bytes), Err(expected));
    }
}

#[test]
fn an_environment_is_not_restored_from_a_session() {
    let bytes = started(0).session().snapshot(&SHOP);
    let refused = ShopEnv::restore(Arc::clone(&SHOP), &bytes).expect_err("a session alone");
    assert_eq!(refused.to_string(), "the bytes are not a snapshot of an environment");
}
