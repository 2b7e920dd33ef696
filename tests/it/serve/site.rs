//! The original's site: our own client shops there as in a local rollout, and an address alone makes a page.

use std::time::Duration;

use webshop_agent::{NamedOptionsPolicy, PagePolicy, RandomPolicy, RulePolicy};
use webshop_env::read_html;
use webshop_products::Seed;
use webshop_remote::{Site, SiteConfig, run_at_site};

use crate::common::client::{SHOP, config, served};
use crate::common::command::{answer, json};
use crate::common::model::{local_episodes, tasks};

#[test]
fn a_rollout_at_the_site_is_a_local_rollout() {
    let server = served(config());
    let n_goals = 60;
    let local = local_episodes(&tasks(&SHOP, n_goals), &mut RulePolicy);
    let rewards: Vec<f64> = local.iter().map(|episode| episode.reward).collect();
    assert_eq!(rewards_at(&server.address, RulePolicy, n_goals), rewards);
    let local = local_episodes(&tasks(&SHOP, n_goals), &mut NamedOptionsPolicy);
    let rewards: Vec<f64> = local.iter().map(|episode| episode.reward).collect();
    assert_eq!(rewards_at(&server.address, NamedOptionsPolicy, n_goals), rewards);
    assert!(rewards.contains(&1.0) && rewards.iter().any(|reward| *reward < 1.0));
    rewards_at(&server.address, RandomPolicy::new(Seed(1)), n_goals);
}

fn rewards_at<P>(address: &str, policy: P, n_goals: u32) -> Vec<f64>
where
    P: PagePolicy + Clone + Send + Sync + 'static,
{
    let site = Site::parse(&format!("http://{address}")).expect("an address");
    let config =
        SiteConfig { n_sessions: n_goals as usize, max_steps: 15, page_timeout: Duration::from_secs(60) };
    let episodes = run_at_site(&site, &policy, config, &mut |_| ()).expect("the site is there");
    episodes.into_iter().map(|episode| episode.expect("no session fails").reward).collect()
}

#[test]
fn the_command_line_shops_there() {
    let server = served(config());
    let site = format!("http://{}", server.address);
    let result = json(&["rollout", "--policy", "rule", "--json", "--episodes", "20", "--site", &site]);
    assert_eq!((&result["episodes"], &result["site"]["failed_sessions"]), (&20.into(), &0.into()));
    assert!(
        answer(&["rollout", "--policy", "random", "--episodes", "5", "--site", &site]).contains("random")
    );
}

#[test]
fn addresses_are_the_originals_and_make_the_page_alone() {
    let server = served(config());
    let goal = SHOP.goals().goals().iter().find(|goal| {
        let product = SHOP.catalog().get(goal.product);
        !product.options.is_empty() && !product.description.is_empty()
    });
    let goal = goal.expect("a goal with options");
    let (name, asin) = (format!("fixed_{}", goal.id.0), goal.asin.as_str());
    let text = |path: &str| {
        let reply = server.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        read_html(&reply.body).text()
    };
    let searched = server.form(&format!("/{name}"), &[("search_query", "Red c++ / shoes")]);
    let results = searched.header("location").expect("an address");
    assert_eq!(searched.status, 303);
    assert_eq!(
        results,
        format!(
            "/search_results/{name}/%5B%27red%27%2C%20%27c%2B%2B%27%2C%20%27%2F%27%2C%20%27shoes%27%5D/1"
        )
    );
    assert_eq!(text(results), text(&format!("/search_results/{name}/red+c%2B%2B+%2F+shoes/1")));
    let product = SHOP.catalog().get(goal.product);
    let (option, value) = (&product.options[0].name, &product.options[0].values[0].text);
    let item = format!("/item_page/{name}/{asin}/%5B%27shoes%27%5D/2/%7B%7D");
    assert!(text(&item).contains(&*product.title));
    // A value is chosen by its radio input, together with a button if one is pressed.
    let chosen = server.form(&item, &[(option, value)]);
    let chosen = chosen.header("location").expect("an address");
    let rich = read_html(&server.get(chosen).body).text_rich();
    assert!(rich.contains(&format!("You have clicked {value}.")), "{rich}");
    let detail = server.form(&item, &[(option, value), ("click", "Description")]);
    let detail = detail.header("location").expect("an address");
    assert!(detail.starts_with(&format!("/item_sub_page/{name}/{asin}/%5B%27shoes%27%5D/2/Description/")));
    assert!(text(detail).contains(product.description.trim()), "{}", text(detail));
    let back = server.form(detail, &[("click", "< prev")]);
    assert_eq!(back.header("location"), Some(chosen));
    let bought = server.form(chosen, &[("click", "buy now")]);
    let done = bought.header("location").expect("an address");
    assert!(done.starts_with(&format!("/done/{name}/{asin}/")), "{done}");
    assert!(read_html(&server.get(done).body).score().is_some());
    // The way back leads to the results.
    let prev = server.form(&item, &[("click", "< prev")]);
    assert_eq!(prev.header("location"), Some(format!("/search_results/{name}/%5B%27shoes%27%5D/2").as_str()));
}

#[test]
fn a_name_has_one_goal() {
    let server = served(config());
    let instruction = |name: &str| {
        let page = read_html(&server.get(&format!("/{name}")).body);
        page.instruction().expect("an instruction").to_owned()
    };
    assert_eq!(instruction("alice"), instruction("alice"));
    let names = ["alice", "bob", "carol", "dave", "fixed_x"];
    let mut drawn = names.map(instruction).to_vec();
    drawn.dedup();
    assert!(drawn.len() > 2, "names draw goals");
    assert_eq!(instruction("fixed_7"), *SHOP.goals().goals()[7].instruction);
    let reply = server.get("/web");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
}

#[test]
fn addresses_that_name_nothing_are_not_found() {
    let server = served(config());
    let goal = &SHOP.goals().goals()[0];
    let asin = goal.asin.as_str();
    for path in [
        format!("/fixed_{}", SHOP.goals().goals().len()),
        format!("/fixed_{}0", u64::MAX),
        "/search_results/a/b/0".into(),
        "/search_results/a/b/x".into(),
        "/item_page/a/B000000000/b/1/%7B%7D".into(),
        format!("/item_page/a/{asin}/b/1/x"),
        format!("/item_page/a/{asin}/b/1/%7B%27size%27:%27nothing%27%7D"),
        format!("/item_sub_page/a/{asin}/b/1/Attributes/%7B%7D"),
        format!("/done/a/{asin}/__import__(%27os%27)"),
        "/a/b".into(),
    ] {
        assert_eq!(server.get(&path).status, 404, "{path}");
    }
}
