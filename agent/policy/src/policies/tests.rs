//! Actions of the policies without a model, and the addresses of random draws.

use std::collections::BTreeSet;
use std::sync::Arc;

use webshop_env::{EnvConfig, ShopEnv};
use webshop_products::{EmbeddedCatalog, GoalId, GoalKind, Seed};

use webshop_env::{Action, AvailableActions, Compat, Shop};

use crate::episode::EpisodeCoordinates;
use crate::policies::policy::{LaneView, PagePolicy, Policy, VisiblePage};
use crate::policies::random::RandomPolicy;
use crate::policies::rule::RulePolicy;

fn shop() -> Arc<Shop> {
    Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both))
}

/// The actions of the random policy in a fork after the search for lamps.
fn random_actions(fork: &mut ShopEnv, coordinates: EpisodeCoordinates) -> Vec<String> {
    let mut policy = RandomPolicy::new(Seed(0));
    let mut actions = Vec::new();
    for turn in 1..8 {
        let (shop, session, page) = (fork.shop(), fork.session(), fork.page());
        let view = LaneView { lane: 0, coordinates, shop, session, page, noop: None, turn, max_steps: 15 };
        let action = policy.act(&[view]).unwrap()[0].action().unwrap().clone();
        fork.step(&action);
        actions.push(action.to_string());
    }
    actions
}

/// The action on a page with these clickable labels and at most one product.
fn chosen(policy: impl PagePolicy, clickables: &[&str], product: Option<&str>) -> String {
    let page = VisiblePage {
        instruction: "A lamp\nin Red".into(),
        available: AvailableActions {
            has_search_bar: clickables == ["search"],
            clickables: clickables.iter().map(|&label| label.to_owned()).collect(),
        },
        products: product.into_iter().map(str::to_owned).collect(),
        rules: Compat::Repaired,
    };
    let at = EpisodeCoordinates::of_goal(GoalId(0));
    policy.choose(&page, at, 0).to_string()
}

#[test]
fn the_rule_agent_needs_only_the_available_actions() {
    let check = |clickables: &[&str], product, expected| {
        assert_eq!(chosen(RulePolicy, clickables, product), expected);
    };
    check(&["search"], None, "search[a lamp in red]");
    check(&["back to search", "b0", "b1"], Some("b0"), "click[b0]");
    check(&["back to search", "next >"], None, "click[back to search]");
    check(&["back to search", "buy now", "red"], None, "click[buy now]");
}

#[test]
fn at_web_sites_the_random_policy_searches_for_words_of_the_instruction() {
    let search = |seed| chosen(RandomPolicy::new(Seed(seed)), &["search"], None);
    let searches = BTreeSet::from_iter((0..40).map(search));
    assert!(searches.iter().eq(["search[a]", "search[in]", "search[lamp]", "search[red]"]), "{searches:?}");
}

#[test]
fn forks_differ_only_by_their_sample() {
    let mut env = ShopEnv::new(shop(), EnvConfig::default());
    let at = EpisodeCoordinates::of_goal(GoalId(0));
    env.step(&Action::Search("lamp".into()));
    let mut forks = env.fork(3).into_iter();
    let mut episode = |sample| random_actions(&mut forks.next().unwrap(), at.with_sample(sample));
    let first = episode(0);
    assert_eq!(first, episode(0));
    assert_ne!(first, episode(1));
}
