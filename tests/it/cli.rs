//! The command line: help, results on stdout, exit codes, and files that are written whole or not at all.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::command::{
    CACHE, CORNER_SHOP, MODEL, answer, copy, edit, json, path, refusals, temporary, webshop, webshop_into,
};
use crate::common::in_area;
use serde_json::Value;
use webshop_training::RunFolder;
use webshop_training::config::Config;

#[test]
fn every_verb_explains_itself() {
    let shopping = [
        "", "train", "watch", "doctor", "eval", "rollout", "merge", "replay", "convert", "compare",
        "validate",
    ];
    let looking = ["serve", "health", "mcp", "play", "search", "explain", "trace"];
    let catalog = ["catalog", "catalog generate", "catalog inspect", "catalog deviations"];
    let model = ["model", "model new", "model inspect", "model merge", "model convert"];
    let shop_r1 = ["", " train", " data", " validate", " eval", " score", " map"]
        .map(|command| format!("shop-r1{command}"));
    let shop_r1 = shop_r1.iter().map(String::as_str);
    for command in shopping.into_iter().chain(looking).chain(catalog).chain(model).chain(shop_r1) {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let name = format!("help {command}").trim().replace(' ', "_");
        in_area("cli", || insta::assert_snapshot!(name, answer(&args)));
    }
}

#[test]
fn malformed_records_are_dropped_on_request() {
    let dir = copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CORNER_SHOP));
    let items = dir.path().join("items_shuffle.json");
    edit(&items, "$39.99", "cheap");
    edit(&items, "\"B0SNEAK003\"", "3");
    let folder = ["--catalog", path(dir.path()), "--skip-bad"];
    for command in [&["search", "lamp"][..], &["explain", "--goal", "0"], &["catalog", "inspect"]] {
        let answer = webshop(&[command, &folder].concat(), "");
        assert_eq!(answer.code, Some(0), "{command:?}: {}", answer.stderr);
        let shown = answer.stderr.replace(path(dir.path()), "DIR");
        in_area("cli", || insta::assert_snapshot!("skipped", shown));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_an_error_and_a_closed_one_is_not() {
    let search = ["search", "--catalog", CORNER_SHOP, "lamp"];
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let answer = webshop_into(&search, "", full);
    assert_eq!(answer.code, Some(2));
    let message = "error: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(answer.stderr, message);
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let answer = webshop_into(&search, "", closed);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
}

#[test]
fn rollouts_and_evaluations_report_the_same_fields() {
    let rollout = ["rollout", "--policy", "oracle", "--episodes", "20", "--json"];
    let eval = ["eval", "--checkpoint", path(MODEL.path()), "--episodes", "20", "--constrained", "--json"];
    let fingerprint = json(&["catalog", "inspect", "--json"])["fingerprint"].clone();
    for args in [&rollout[..], &eval[..]] {
        let answer = json(args);
        for key in ["success_rate", "score", "mean_turns", "inadmissible_rate", "seconds"] {
            assert!(answer[key].is_number(), "`{key}` in {answer}");
        }
        assert_eq!(answer["success_ci95"].as_array().map(Vec::len), Some(2));
        assert_eq!((&answer["episodes"], &answer["goal_fingerprint"]), (&20.into(), &fingerprint));
    }
    let oracle = json(&rollout);
    assert_eq!((&oracle["success_rate"], &oracle["inadmissible_rate"]), (&1.0.into(), &0.0.into()));
}

#[test]
fn results_about_different_things_are_not_compared() {
    let dir = temporary();
    let measure = |name: &str, policy: &str, more: &[&str]| {
        let rollout = ["rollout", "--policy", policy, "--episodes", "50", "--json"];
        let file = dir.path().join(name);
        fs::write(&file, answer(&[&rollout[..], more].concat())).expect("a written result");
        path(&file).to_owned()
    };
    let (oracle, rule) = (measure("oracle.json", "oracle", &[]), measure("rule.json", "rule", &[]));
    let compared = answer(&["compare", &rule, &oracle]);
    in_area("cli", || insta::assert_snapshot!("compare", compared));
    let others = [
        measure("by-product.json", "oracle", &["--split-rule", "by-product"]),
        measure("train.json", "oracle", &["--split", "train"]),
        measure("fewer.json", "oracle", &["--size", "90"]),
        measure("original.json", "oracle", &["--compat", "original"]),
        measure("shorter.json", "oracle", &["--max-steps", "14"]),
        measure("half.json", "oracle", &["--shard", "1/2"]),
    ];
    let other_half = measure("other-half.json", "oracle", &["--shard", "2/2"]);
    for other in &others {
        let forced = answer(&["compare", "--force", &oracle, other]);
        assert!(forced.contains("warning: the results differ in "), "{forced}");
    }
    refusals("compare", |refused| {
        others.iter().for_each(|other| refused.row(dir.path(), &["compare", &oracle, other]));
        refused.row(dir.path(), &["compare", &others[5], &other_half]);
        refused.row(dir.path(), &["compare", &oracle, &rule, "--no-cache"]);
        refused.row(dir.path(), &["compare", &oracle, CORNER_SHOP]);
        let device = ["--device", "cuda:1", "--dtype", "bf16", "--kernels", "reference"];
        refused.row(dir.path(), &[&["compare", &oracle, &rule], &device[..]].concat());
        refused.row(dir.path(), &["compare", &oracle, "tests/data/corner-shop/items_ins_v2.json"]);
    });
}

#[test]
fn episodes_under_the_original_rules_are_replayed() {
    let dir = temporary();
    let episodes = dir.path().join("episodes.jsonl");
    let original = ["--catalog", CORNER_SHOP, "--compat", "original"];
    answer(
        &[&["rollout", "--policy", "random", "--split", "all", "--out", path(&episodes)], &original[..]]
            .concat(),
    );
    assert!(answer(&[&["replay", path(&episodes)], &original[..]].concat()).contains(": no difference"));
    // There, a verb reaches to the last bracket.
    let output_of = |rules: &[&str]| {
        webshop(&[&["play", "--catalog", CORNER_SHOP], rules].concat(), "search[a [b]]\n").stdout
    };
    assert!(
        output_of(&original[2..]).contains("no effect: the verb is neither"),
        "{}",
        output_of(&original[2..])
    );
    assert!(output_of(&[]).contains("Total results"));
}

#[test]
fn a_split_rule_that_leaks_says_so() {
    let rollout = ["rollout", "--policy", "rule", "--episodes", "10", "--split-rule"];
    let leak = json(&[&rollout[..], &["verl-agent", "--json"]].concat())["leak"].clone();
    assert_eq!(leak, "659 of 664 test goals may occur in training, as in verl-agent");
    let shown = answer(&[&rollout[..], &["verl-agent"]].concat());
    assert!(shown.contains("split               test (verl-agent)\nsplit leak          659 of"), "{shown}");
    // The rule `paper` needs 1,501 goals.
    let paper = [&rollout[..], &["paper", "--catalog", "1000", "--json"]].concat();
    assert!(json(&paper).get("leak").is_none());
}

#[test]
fn a_rollout_records_the_same_episodes_on_any_number_of_threads() {
    let dir = temporary();
    let episodes = |threads: &str| {
        let out = dir.path().join(threads);
        let policy = ["--policy", "lm", "--checkpoint", path(MODEL.path()), "--constrained"];
        let common = ["rollout", "--threads", threads, "--episodes", "40", "--out", path(&out)];
        answer(&[&common[..], &policy[..]].concat());
        fs::read_to_string(&out).expect("the episodes")
    };
    let one = episodes("1");
    assert_eq!(one.lines().count(), 40);
    assert!(one == episodes("2"), "episodes depend on the threads");
}

#[test]
#[cfg(target_os = "linux")]
fn a_rollout_that_cannot_write_keeps_the_first_episodes() {
    let dir = temporary();
    let (all, some) = (dir.path().join("all.jsonl"), dir.path().join("some.jsonl"));
    let rollout = ["rollout", "--policy", "random", "--episodes", "20", "--out"];
    answer(&[&rollout[..], &[path(&all)]].concat());
    // Files may have 64 blocks of 512 bytes, or of 1024; an episode has some 4,500 bytes.
    let script = "trap '' XFSZ && ulimit -f 64 && exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_webshop")]).args(rollout).arg(&some);
    let refused = shell.env_remove("RUST_LOG").output().expect("a shell");
    let message = format!("error: cannot write `{}`: File too large (os error 27)\n", some.display());
    let shown = String::from_utf8_lossy(&refused.stderr);
    assert!(shown.ends_with(&message) && !shown.contains("20/20"), "{shown}");
    assert_eq!(refused.status.code(), Some(2));
    let [all, some] = [all, some].map(|file| fs::read_to_string(file).expect("the episodes"));
    assert!(some.lines().count() > 2 && some.len() < all.len() && all.starts_with(&some));
}

#[test]
fn recorded_episodes_are_replayed() {
    let dir = temporary();
    let episodes = dir.path().join("episodes.jsonl");
    answer(&["rollout", "--policy", "rule", "--episodes", "5", "--out", path(&episodes)]);
    let replayed = answer(&["replay", path(&episodes)]);
    assert!(replayed.starts_with("5 episodes, 15 turns: no difference\ngoals "), "{replayed}");
    let as_json = json(&["replay", "--json", path(&episodes)]);
    assert_eq!((&as_json["episodes"], &as_json["difference"]), (&5.into(), &Value::Null));
    edit(&episodes, "click[buy now]", "click[< prev]");
    let differs = webshop(&["replay", path(&episodes)], "");
    assert_eq!(differs.code, Some(1), "{}", differs.stderr);
    assert!(
        differs.stdout.contains("after turn 3, `click[< prev]`, `observation` differs"),
        "{}",
        differs.stdout
    );
    let differs = webshop(&["replay", "--json", path(&episodes)], "");
    let as_json: Value = serde_json::from_str(&differs.stdout).expect("one JSON object");
    let found = &as_json["difference"];
    assert_eq!(
        (&found["line"], &found["turn"], &found["what"]),
        (&1.into(), &3.into(), &"observation".into())
    );
}

#[test]
fn episodes_of_any_agent_are_evaluated() {
    let dir = temporary();
    let [whole, actions] = ["whole.jsonl", "actions.jsonl"].map(|name| dir.path().join(name));
    let goals = ["--episodes", "20", "--json"];
    let rule = [&["rollout", "--policy", "named-options", "--out", path(&whole)][..], &goals].concat();
    let rollout = json(&rule);
    // What Python's `Episode.play` writes: the fields of the environment alone, in any order.
    let episodes = fs::read_to_string(&whole).expect("the episodes");
    let plain = episodes.lines().rev().map(|line| {
        let episode: webshop_env::Episode = webshop_env::Episode::read(line).expect("an episode");
        serde_json::to_string(&episode).expect("JSON") + "\n"
    });
    fs::write(&actions, plain.collect::<String>()).expect("a written file");
    for (file, policy) in [(&whole, "named-options"), (&actions, "recorded")] {
        let eval = json(&[&["eval", "--recorded", path(file)][..], &goals].concat());
        assert_eq!(eval["policy"], policy);
        for figure in ["success_rate", "success_ci95", "score", "by_product", "failures", "mean_turns"] {
            assert_eq!(eval[figure], rollout[figure], "{figure}");
        }
        let baselines = eval["baselines"].as_array().expect("a list");
        let same = baselines.iter().find(|of| of["policy"] == "named-options").expect("a baseline");
        assert_eq!(same["difference"]["mean"], 0.0);
    }
}

#[test]
fn a_resumed_run_is_shown_with_its_own_configuration() {
    let dir = temporary();
    let run = dir.path().join("run");
    RunFolder::create(&run, &Config { seed: 3, ..Config::default() }).expect("an empty folder");
    let shown = answer(&["train", "--resume", "--dry-run", "--out", path(&run)]);
    assert_eq!(shown.lines().next(), Some("seed = 3"));
}

#[test]
fn validate_reports_every_check() {
    let report = answer(&["validate", "--catalog", CORNER_SHOP]);
    in_area("cli", || insta::assert_snapshot!("validate", report));
    let as_json = json(&["validate", "--json", "--catalog", CORNER_SHOP]);
    assert_eq!((&as_json["passed"], as_json["checks"].as_array().map(Vec::len)), (&true.into(), Some(14)));
    // A requirement that its product does not meet.
    let dir = copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CORNER_SHOP));
    edit(&dir.path().join("items_human_ins.json"), "[\"crème brûlée\"]", "[\"chocolate\"]");
    let report = webshop(&["validate", "--catalog", path(dir.path())], "");
    assert_eq!((report.code, report.stderr.as_str()), (Some(1), ""));
    let failed: Vec<&str> = report.stdout.lines().filter(|line| !line.starts_with("PASS")).collect();
    in_area("cli", || insta::assert_snapshot!("validate_fails", failed.join("\n")));
}

#[test]
fn a_search_explains_itself() {
    let words = "men's sneakers with rubber soles";
    let shown = answer(&["search", "--catalog", CORNER_SHOP, "--explain", "--top", "2", words]);
    in_area("cli", || insta::assert_snapshot!("search", shown));
}

#[test]
fn an_index_is_kept_until_its_catalog_changes() {
    let n_kept = || fs::read_dir(CACHE.path()).map_or(0, |entries| entries.count());
    let dir = copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CORNER_SHOP));
    let items = dir.path().join("items_shuffle.json");
    // A word of its own makes a catalog that no other test caches an index of.
    edit(&items, "\"name\": \"", "\"name\": \"Zyzzyva ");
    let search = ["search", "--catalog", path(dir.path()), "--explain", "zyzzyva"];
    let without = answer(&[&search[..], &["--no-cache"]].concat());
    assert!(without.starts_with("1 hits for `zyzzyva`"), "{without}");
    assert_eq!([answer(&search), answer(&search)], [without.clone(), without]);
    assert!(n_kept() > 0, "nothing was kept");
    edit(&items, "Zyzzyva ", "Quokka ");
    assert!(answer(&search).starts_with("0 hits"), "a changed file is answered from the old index");
}

#[test]
fn a_purchase_explains_itself() {
    let purchase =
        ["--goal", "3", "--buy", "B0SNEAK001", "--option", "color=navy blue", "--option", "size=9"];
    let shown = answer(&[&["explain", "--catalog", CORNER_SHOP], &purchase[..]].concat());
    in_area("cli", || insta::assert_snapshot!("explain", shown));
}

#[test]
fn deviations_from_the_original_are_counted() {
    let shown = answer(&["catalog", "deviations", "--catalog", CORNER_SHOP]);
    in_area("cli", || insta::assert_snapshot!("deviations", shown));
    let counted = json(&["catalog", "deviations", "--catalog", "100", "--json"]);
    let of = |name: &str| {
        let deviations = counted["deviations"].as_array().expect("a list");
        deviations.iter().find(|one| one["name"] == name).expect("a deviation")["n_goals"].clone()
    };
    // The numbers of the documentation.
    let documented = ["reachable reward", "required options", "charged prices", "drawing by weight"];
    assert_eq!(documented.map(of), [4, 17, 52, 81]);
}

#[test]
fn a_person_shops_in_the_terminal() {
    let input = "search[sneakers]\nclick[b0sneak001]\nhello\n7\nclick[8]\nclick[buy now]\n";
    let output = webshop(&["play", "--catalog", CORNER_SHOP], input);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    in_area("cli", || insta::assert_snapshot!("play", output.stdout));
    // The end of the input and `quit` end the session without an error.
    for input in ["search[sneakers]\n", "quit\n", ""] {
        assert_eq!(webshop(&["play", "--catalog", CORNER_SHOP], input).code, Some(0));
    }
}

#[test]
fn a_generated_catalog_is_the_embedded_one() {
    let dir = temporary();
    let folder = dir.path().join("shop");
    answer(&["catalog", "generate", "--products", "100", "--out", path(&folder)]);
    let generated = answer(&["catalog", "inspect", "--catalog", path(&folder)]);
    assert_eq!(generated, answer(&["catalog", "inspect", "--catalog", "100"]));
}
