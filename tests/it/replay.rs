//! A recorded episode is replayed turn by turn, and the first difference is found.

use std::sync::Arc;

use crate::common::corner_shop::{corner_shop, goal};
use crate::common::in_area;
use webshop_agent::{
    Episode, EpisodeCoordinates, OraclePolicy, Policy, RandomPolicy, RolloutConfig, RulePolicy, Task, rollout,
};
use webshop_env::{Replay, ReplayError, Shop, replay};
use webshop_products::{GoalId, Seed};
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

/// The episodes for some goals of a shop, as `webshop rollout --out` writes them.
fn recorded(shop: &Arc<Shop>, goals: &[GoalId], policy: &mut dyn Policy) -> String {
    let tasks: Vec<Task> =
        goals.iter().map(|&goal| Task::new(Arc::clone(shop), EpisodeCoordinates::of_goal(goal))).collect();
    let limits = RolloutConfig { max_steps: 15, lanes: 16 };
    let episodes =
        rollout(policy, &tasks, limits, &mut |_, _| ()).expect("policies without a model do not fail");
    let line = |episode: &Episode| serde_json::to_string(episode).expect("an episode is data") + "\n";
    episodes.iter().map(line).collect()
}

fn replayed(shop: &Arc<Shop>, episodes: &str) -> Result<Replay, ReplayError> {
    replay(episodes.as_bytes(), shop)
}

fn embedded() -> Arc<Shop> {
    Arc::new(
        open_shop(&CatalogConfig { source: "100".into(), ..CatalogConfig::default() })
            .expect("the shop opens"),
    )
}

/// The record of the rule agent's episode for one goal of the corner shop.
fn sneakers(shop: &Arc<Shop>) -> String {
    recorded(shop, &[goal(shop, "B0SNEAK001", &["navy blue", "9"]).id], &mut RulePolicy)
}

#[test]
fn the_episodes_of_every_policy_are_replayed() {
    for shop in [Arc::new(corner_shop()), embedded()] {
        let goals: Vec<GoalId> = shop.goals().goals().iter().map(|goal| goal.id).take(60).collect();
        let policies: [&mut dyn Policy; 3] =
            [&mut RandomPolicy::new(Seed(3)), &mut RulePolicy, &mut OraclePolicy];
        for policy in policies {
            let episodes = recorded(&shop, &goals, policy);
            let replayed = replayed(&shop, &episodes).expect("episodes of this shop");
            assert_eq!(replayed.difference, None, "{}", policy.name());
            assert_eq!(replayed.episodes, episodes.lines().count());
        }
    }
}

/// Replays an episode of the rule agent with one change, and snapshots the difference.
fn check(name: &str, from: &str, to: &str) {
    let shop = Arc::new(corner_shop());
    let episodes = sneakers(&shop);
    let changed = episodes.replacen(from, to, 1);
    assert_ne!(changed, episodes, "`{from}` is in the record");
    let found = match replayed(&shop, &changed) {
        Ok(Replay { difference: Some(difference), .. }) => difference.to_string(),
        Ok(replayed) => panic!("nothing was found: {replayed:?}"),
        Err(error) => error.to_string(),
    };
    in_area("replay", || insta::assert_snapshot!(name, found));
}

#[test]
fn an_observation_that_differs_is_shown() {
    let shop = Arc::new(corner_shop());
    let episodes = sneakers(&shop);
    // The first of that name is the form of the observations.
    let (at, _) =
        episodes.match_indices("\"observation\":\"").nth(1).expect("a digest before the first turn");
    let digest = &episodes[at + 15..at + 31];
    check("observation", digest, "0123456789abcdef");
}

#[test]
fn a_list_of_actions_that_differs_is_shown() {
    let shop = Arc::new(corner_shop());
    let episodes = sneakers(&shop);
    let (at, _) = episodes.match_indices("\"actions\":\"").nth(1).expect("a digest after the first turn");
    let digest = &episodes[at + 11..at + 27];
    check("actions", digest, "0123456789abcdef");
}

#[test]
fn a_reward_that_differs_is_shown() {
    let shop = Arc::new(corner_shop());
    let episodes = sneakers(&shop);
    let first = episodes.lines().next().expect("an episode");
    let at = first.rfind("\"reward\":").expect("the last is the episode's");
    let at = first[..at].rfind("\"reward\":").expect("the one before it the last turn's");
    let end = at + first[at..].find(',').expect("a field follows");
    check("reward", &first[at..end], "\"reward\":0.125");
}

#[test]
fn an_action_that_differs_is_shown() {
    check("action", "click[buy now]", "click[description]");
}

#[test]
fn an_episode_of_another_shop_is_refused() {
    let episodes = recorded(&embedded(), &[GoalId(0)], &mut RulePolicy);
    let refused = replayed(&Arc::new(corner_shop()), &episodes).expect_err("another catalog");
    assert!(
        refused.to_string().starts_with("line 1: the episode was recorded with the goals `"),
        "{refused}"
    );
    check("rules", "\"rules\":\"repaired\"", "\"rules\":\"original\"");
    check("environment", "webshop-3", "webshop-0");
    check("goal", "\"goal\":", "\"goal\":40");
}

#[test]
fn a_line_that_is_no_episode_is_refused() {
    check("format", "webshop-episode-1", "webshop-episode-9");
    check("cut_short", "\"rules\":\"repaired\",", "");
    let shop = Arc::new(corner_shop());
    for nothing in ["", "\n \n"] {
        assert!(matches!(replayed(&shop, nothing), Err(ReplayError::Empty)));
    }
    let episodes = sneakers(&shop);
    let refused = replayed(&shop, &(episodes.clone() + "{\n")).expect_err("a broken line at the end");
    assert_eq!(
        refused.to_string(),
        "line 2: not a recorded episode: EOF while parsing an object at column 1"
    );
}
