//! `rollout --site` reports as a local rollout does, names the sessions that failed, and is compared with nothing.

use std::fs;
use std::sync::Arc;

use crate::common::command::{CORNER_SHOP, answer, json, path, refusal, temporary, webshop};
use crate::common::in_area;
use crate::common::server;
use serde_json::Value;
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

/// A site that shows the pages of our own shop, and how many goals it has.
fn site(catalog: &str) -> (String, usize) {
    let config = CatalogConfig { source: catalog.into(), ..CatalogConfig::default() };
    let shop = open_shop(&config).expect("the shop opens");
    let n_goals = shop.goals().goals().len();
    (server::our_site(Arc::new(shop)), n_goals)
}

#[test]
fn a_rollout_at_a_site_is_reported_and_not_compared() {
    let dir = temporary();
    let (address, n_goals) = site(CORNER_SHOP);
    let n_goals = n_goals.to_string();
    let rollout = |place: [&str; 4]| {
        json(&[&["rollout", "--policy", "rule", "--json", "--episodes", &n_goals], &place[..]].concat())
    };
    let there = rollout(["--site", &address, "--seed", "0"]);
    let here = rollout(["--catalog", CORNER_SHOP, "--split", "all"]);
    for key in ["policy", "seed", "episodes", "success_rate", "mean_turns", "inadmissible_rate"] {
        assert_eq!(there[key], here[key], "`{key}`");
    }
    // The products of a site's goals are unknown, so that its interval cannot be clustered.
    assert_eq!((here["products"].is_u64(), &there["products"]), (true, &Value::Null));
    assert_ne!(there["success_ci95"], here["success_ci95"]);
    let score = |of: &Value| of["score"].as_f64().expect("a number");
    // The same summands, in another order.
    assert!((score(&there) - score(&here)).abs() < 1e-12);
    assert_eq!((&there["goal_fingerprint"], &there["fingerprint"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&there["site"]["url"], &there["site"]["failed_sessions"]),
        (&address.clone().into(), &0.into())
    );
    let shown = answer(&["rollout", "--policy", "rule", "--episodes", &n_goals, "--site", &address]);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("seconds ")).collect();
    let shown = shown.join("\n").replace(&address, "SITE/");
    in_area("cli", || insta::assert_snapshot!("rollout_at_a_site", shown));
    let files = ["there", "here"].map(|name| dir.path().join(name));
    for (file, result) in files.iter().zip([there, here]) {
        fs::write(file, result.to_string()).expect("a written result");
    }
    let compare = ["compare", path(&files[1]), path(&files[0])];
    let message = refusal(dir.path(), &compare, "");
    let expected = "`DIR/there` cannot be compared: the goals and rules of a site are unknown; compare anyway with `--force`";
    assert!(message.contains(expected), "{message}");
    let forced = answer(&[&compare[..], &["--force"]].concat());
    assert!(forced.contains("warning: the results differ in goals and rules"), "{forced}");
}

#[test]
fn sessions_that_fail_are_left_out_and_counted() {
    let (address, n_goals) = site(CORNER_SHOP);
    let (n, n_beyond) = (n_goals.to_string(), (n_goals + 2).to_string());
    let rollout = |n| ["rollout", "--policy", "random", "--json", "--site", &address, "--episodes", n];
    let all = json(&rollout(&n));
    let beyond = webshop(&rollout(&n_beyond), "");
    assert_eq!(beyond.code, Some(2));
    let message: Vec<&str> = beyond.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let message = message.join("\n").replace(&address, "SITE/");
    in_area("cli", || insta::assert_snapshot!("failed_sessions", message));
    let mut left: Value = serde_json::from_str(&beyond.stdout).expect("one JSON object");
    assert_eq!(left["site"]["failed_sessions"], 2);
    left["site"]["failed_sessions"] = 0.into();
    left["seconds"] = all["seconds"].clone();
    assert_eq!(left, all);
}

#[test]
fn flags_of_the_local_shop_are_refused_at_a_site() {
    for flag in [
        "--size=9",
        "--goals=human",
        "--split=all",
        "--split-rule=paper",
        "--checkpoint=DIR",
        "--temperature=1",
    ] {
        let refused = webshop(&["rollout", "--site", "http://127.0.0.1:9", "--policy", "rule", flag], "");
        assert_eq!(refused.code, Some(2), "{flag}");
        assert!(refused.stderr.contains("'--site <URL>' cannot be used with"), "{flag}: {}", refused.stderr);
    }
}
