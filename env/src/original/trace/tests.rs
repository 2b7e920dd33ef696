use super::*;
use crate::original::compat::Compat;
use crate::shop::ShopConfig;
use serde_json::{Value, json};
use webshop_products::{EmbeddedCatalog, GoalId, GoalRecord, GoalStyle, NoSuchGoal, OriginalWorld, RawData};

/// The original's server over the smaller embedded catalog, without goals of single episodes.
struct Server {
    shop: Shop,
    random: PythonRandom,
}

impl Server {
    fn new() -> Self {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let world = OriginalWorld::load(&data, GoalStyle::Synthetic, 0).unwrap();
        let config = ShopConfig { compat: Compat::Original, ..ShopConfig::default() };
        Server { shop: Shop::with_config(world.catalog, world.goals, config).unwrap(), random: world.random }
    }

    fn n_goals(&self) -> usize {
        self.shop.goals().goals().len()
    }

    /// Traces the episodes one after the other; the last `n_own` goals are their own.
    fn trace(&self, n_own: usize, n_previous: usize, scripts: &[Value]) -> Vec<Value> {
        let n_goals = self.n_goals() - n_own;
        let mut tracer = Tracer::new(&self.shop, n_goals, self.random.clone(), n_previous);
        let script = |script: &Value| serde_json::from_value(script.clone()).unwrap();
        scripts.iter().map(|value| json!(tracer.trace(&script(value)).unwrap())).collect()
    }
}

/// A search, the first product found, and its purchase.
fn purchase(server: &Server) -> Vec<String> {
    let words = &server.shop.catalog().products()[0].query;
    let found = server.shop.search(words)[0].product;
    let asin = server.shop.catalog().get(found).id.as_str().to_lowercase();
    [format!("search[{words}]"), format!("click[{asin}]"), "click[buy now]".into()].into()
}

#[test]
fn a_known_user_keeps_the_goal_and_the_purchase() {
    let server = Server::new();
    let traced = server.trace(
        0,
        0,
        &[
            json!({"session": "ann", "goal_idx": 3, "actions": purchase(&server)}),
            json!({"session": "ann", "goal_idx": 4}),
            json!({"session": 4}),
            json!({"session": "bob", "goal_idx": -1}),
            json!({"session": true}),
        ],
    );
    let goals: Vec<&Value> = traced.iter().map(|episode| &episode["goal_idx"]).collect();
    assert_eq!(goals, [&json!(3), &json!(3), &json!(4), &json!(server.n_goals() - 1), &json!(1)]);
    let bought: Vec<&Value> = traced.iter().map(|episode| &episode["reset"]["session"]["done"]).collect();
    assert_eq!(bought, [false, true, false, false, false]);
    assert_eq!((&traced[2]["session"], &traced[4]["session"]), (&json!("4"), &json!("True")));
    assert_eq!(server.trace(0, 0, &[json!({"goal_idx": 4})])[0]["session"], "4");
    assert_eq!(traced[0]["reset"]["url"], "http://127.0.0.1:3000/ann");
}

#[test]
fn names_and_goals_are_drawn_and_drawn_again_under_a_seed() {
    let server = Server::new();
    let anonymous = server.trace(0, 0, &[json!({}), json!({}), json!({"seed": 5}), json!({"seed": 5})]);
    let names: Vec<&str> = anonymous.iter().map(|episode| episode["session"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.len() == 10));
    assert_ne!(names[0], names[1]);
    assert_eq!(names[2], names[3]);
    assert_eq!(server.trace(0, 0, &[json!({"seed": 5})])[0]["session"], names[2]);
    // An episode with a name leaves the first draw to the next one without.
    let named = server.trace(0, 0, &[json!({"session": "ann", "goal_idx": 0}), json!({})]);
    assert_eq!(named[1]["session"], names[0]);
}

#[test]
fn an_episode_may_bring_its_own_goal() {
    let server = Server::new();
    let last = server.n_goals() - 1;
    let own = GoalRecord::from(&server.shop.goals().goals()[last]);
    let traced = server.trace(1, 0, &[json!({"session": "ann", "goal": own, "goal_idx": 0})]);
    assert_eq!((&traced[0]["goal"], &traced[0]["goal_idx"]), (&json!(own), &Value::Null));
    let shown = traced[0]["instruction_text"].as_str().unwrap();
    assert_eq!(shown.strip_prefix("Instruction: "), Some(own.instruction_text.as_str()));
}

#[test]
fn a_missing_goal_is_an_error() {
    let server = Server::new();
    let n_goals = server.n_goals();
    let mut tracer = Tracer::new(&server.shop, n_goals, server.random.clone(), 0);
    let script = ScriptedEpisode { goal_idx: Some(n_goals as i64), ..ScriptedEpisode::default() };
    let error = tracer.trace(&script).unwrap_err();
    assert_eq!(error, TraceError::NoSuchGoal(NoSuchGoal { number: n_goals as i64, n_goals }));
    let own = GoalRecord::from(server.shop.goals().get(GoalId(0)));
    let script = ScriptedEpisode { goal: Some(own), ..ScriptedEpisode::default() };
    assert_eq!(
        tracer.trace(&script).unwrap_err(),
        TraceError::NoOwnGoal,
        "the shop has no goals of episodes"
    );
    let mut empty = Tracer::new(&server.shop, 0, server.random.clone(), 0);
    assert_eq!(empty.trace(&ScriptedEpisode::default()).unwrap_err(), TraceError::NoGoals);
}

#[test]
fn what_was_done_is_counted_until_the_search_bar() {
    let server = Server::new();
    let mut actions = purchase(&server);
    actions.insert(2, "click[description]".into());
    actions.insert(3, "click[< prev]".into());
    actions.extend(["search[lamp]", "click[next >]", "click[back to search]"].map(str::to_owned));
    let traced = server.trace(0, 0, &[json!({"session": "ann", "goal_idx": 0, "actions": actions})]);
    let counted = |at: usize| traced[0]["steps"][at]["session"]["actions"].to_string();
    assert_eq!(counted(4), r#"{"search":1,"asin":1,"Description":1,"purchase":1}"#);
    // The original continues after the purchase.
    assert_eq!(counted(6), r#"{"search":3,"asin":1,"Description":1,"purchase":1}"#);
    assert_eq!(counted(7), "{}");
    let end = &traced[0]["steps"][7]["session"];
    assert_eq!((&end["page"], &end["keywords"], &end["done"]), (&Value::Null, &Value::Null, &json!(true)));
}

#[test]
fn a_purchase_has_its_parts_and_a_failure_its_reason() {
    let server = Server::new();
    let mut actions = purchase(&server);
    actions.extend(["search[<c>]", "search[<a> x]", "click[nothing]"].map(str::to_owned));
    let traced = server.trace(0, 0, &[json!({"session": "ann", "goal_idx": 0, "actions": actions})]);
    let steps = &traced[0]["steps"];
    assert!(steps[2]["verbose_info"]["r_type"].is_number());
    assert_eq!((&steps[1]["reward"], &steps[5]["reward"]), (&json!(0.0), &json!(0)));
    assert_eq!([&steps[3]["noop"], &steps[4]["noop"]], ["no_such_listing"; 2]);
    // A click on nothing is no failure there.
    assert_eq!(steps[5].get("noop"), None);
}

#[test]
fn a_random_listing_is_drawn_whenever_a_page_of_it_is_opened() {
    let server = Server::new();
    let asked = |actions: &[&str]| json!({"session": "ann", "goal_idx": 0, "seed": 5, "actions": actions});
    let pages = |actions: &[&str]| {
        let traced = server.trace(0, 0, &[asked(actions)]);
        let links = |step: &Value| step["clickables"].as_array().unwrap()[3..].to_vec();
        traced[0]["steps"].as_array().unwrap().iter().map(links).collect::<Vec<_>>()
    };
    let turned = pages(&["search[<r>]", "click[next >]", "click[< prev]", "click[next >]"]);
    assert_eq!(turned, pages(&["search[<r>]", "click[next >]", "click[< prev]", "click[next >]"]));
    assert_ne!(turned[1], turned[3]);
    let listed = PythonRandom::new(5).sample(100, 50).unwrap();
    let second = server.shop.catalog().get(webshop_products::ProductIdx(listed[1])).id.as_str();
    // The first page has no button back, so that its third label is the first product.
    assert_eq!(turned[0][0], second.to_lowercase());
}

#[test]
fn observations_stand_behind_earlier_ones_and_what_was_said() {
    let server = Server::new();
    let actions = ["search[lamp]", "click[next >]", "hello"];
    let traced = server.trace(0, 1, &[json!({"session": "ann", "goal_idx": 0, "actions": actions})]);
    let (reset, steps) = (&traced[0]["reset"], &traced[0]["steps"]);
    assert_eq!(reset["ret_obs"], reset["text"]);
    let text = |page: &Value| page["text"].as_str().unwrap().to_owned();
    let joined = [text(&steps[1]), "hello".into(), text(&steps[2])].join(" [SEP] ");
    assert_eq!(steps[2]["ret_obs"], joined);
    assert_eq!(steps[0]["ret_obs"], [text(reset), "search[lamp]".into(), text(&steps[0])].join(" [SEP] "));
}
