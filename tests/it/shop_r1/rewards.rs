//! Next actions are scored, counted and mapped as they were recorded: `tests/data/shop-r1`, whose README says where
//! the recordings come from. Numbers are compared to 1e-6.

use std::fs;
use std::path::Path;

use crate::common::command::webshop;
use serde_json::{Value, json};
use webshop_agent::{next_action::NextAction, next_action::WrittenAction};
use webshop_evaluation::{
    next_action::Similarity, next_action::always, next_action::evaluate, next_action::majority_type,
};
use webshop_products::Seed;

fn recorded(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/shop-r1/{name}.jsonl"));
    fs::read_to_string(file).expect("a recording")
}

fn rows(lines: &str) -> Vec<Value> {
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!rows.is_empty());
    rows
}

/// The recorded rows, each with the row that the command writes.
fn written(command: &str, name: &str) -> Vec<(Value, Value)> {
    let recorded = recorded(name);
    let answer = webshop(&["shop-r1", command], &recorded);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    let (rows, answers) = (rows(&recorded), rows(&answer.stdout));
    assert_eq!(rows.len(), answers.len());
    for (row, answer) in rows.iter().zip(&answers) {
        for (field, value) in row.as_object().expect("an object") {
            assert_eq!(answer[field], *value, "`{field}` is kept");
        }
    }
    rows.into_iter().zip(answers).collect()
}

/// Asserts equality: of numbers to 1e-6, of other values exactly.
#[track_caller]
fn near(value: &Value, expected: &Value, what: &str) {
    match (value.as_f64(), expected.as_f64()) {
        (Some(value), Some(expected)) => {
            assert!((value - expected).abs() <= 1e-6, "{what}: {value} is not {expected}");
        }
        _ => assert_eq!(value, expected, "{what}"),
    }
}

#[test]
fn rewards_are_as_recorded() {
    for (row, answer) in written("score", "golden_rewards") {
        let expected = row["expected"].as_object().expect("parts");
        assert_eq!(expected.len(), answer["breakdown"].as_object().expect("parts").len());
        let mut sum = 0.0;
        for (part, expected) in expected {
            near(&answer["breakdown"][part], expected, &format!("{} {part}", row["id"]));
            sum += if part == "total" { 0.0 } else { expected.as_f64().expect("a number") };
        }
        near(&sum.into(), &answer["breakdown"]["total"], "the parts sum to the total");
        let judged = &answer["result"];
        for (field, expected) in [
            ("sim_name", &row["debug"]["sim_name"]),
            ("sim_text", &row["debug"]["sim_text"]),
            ("self_certainty", &row["debug"]["self_certainty"]),
            ("parsed", &row["debug"]["parsed"]),
            ("exact_match_soft_gt", &row["exact_match_soft_gt"]),
            ("exact_match_soft_ge", &row["exact_match_soft_ge"]),
            ("exact_match_string", &row["exact_match_string"]),
        ] {
            near(&judged[field], expected, &format!("{} {field}", row["id"]));
        }
        assert_eq!(judged["problem"].is_null(), !judged["parsed"].is_null(), "what is not read says why");
    }
}

#[test]
fn rewards_of_the_re_implementation_are_as_recorded() {
    for (row, answer) in written("score", "golden_repo_rewards") {
        let (expected, breakdown) = (&row["expected"], &answer["breakdown"]);
        let part = |name: &str| breakdown[name].as_f64().expect("a number");
        let raw = |name: &str| expected[name].as_f64().expect("a number");
        let weights = expected["weights"].as_array().expect("weights");
        let weighted = [
            ("format_raw", part("format")),
            ("rationale_raw", part("rationale")),
            ("type_raw", part("type")),
            ("attr_raw", part("attr_name") + part("attr_text")),
            ("value_raw", part("value_name") + part("value_text")),
        ];
        for ((name, value), weight) in weighted.into_iter().zip(weights) {
            let expected = weight.as_f64().expect("a number") * raw(name);
            near(&value.into(), &expected.into(), &format!("{} {name}", row["id"]));
        }
        near(&breakdown["total"], &expected["total"], row["id"].as_str().expect("a name"));
    }
}

#[test]
fn similarities_of_the_re_implementation_are_as_recorded() {
    for row in rows(&recorded("golden_repo_similarity")) {
        let [pred, gold] = ["pred", "gold"].map(|field| row[field].as_str().expect("a text"));
        let alike = Similarity::character_blocks(pred, gold).ratio();
        near(&alike.into(), &row["repo_similarity"], &row.to_string());
    }
}

#[test]
fn actions_are_mapped_as_recorded() {
    for (row, answer) in written("map", "golden_webshop_mapping") {
        assert_eq!(answer["mapped"], row["expected"], "{row}");
        if let Some(there_and_back) = row.get("round_trip") {
            assert_eq!(answer["mapped_back"], *there_and_back, "{row}");
        }
        assert_eq!(answer.get("problem").is_some(), answer["mapped"] == "INVALID", "{row}");
    }
}

#[test]
fn available_actions_decide_about_a_mapping() {
    let door = json!({ "has_search_bar": true, "clickables": ["search"] });
    let item = json!({ "has_search_bar": false, "clickables": ["back to search", "buy now"] });
    let as_end = json!({ "buy_now_as": "terminate" });
    let search = json!({ "type": "type_and_submit", "name": "search_input", "text": "lamp" });
    let terminate = json!({ "type": "terminate" });
    let check = |row: Value, mapped: Value, problem: Value| {
        let answer = webshop(&["shop-r1", "map"], &row.to_string());
        let answer: Value = serde_json::from_str(&answer.stdout).expect("a row");
        assert_eq!((&answer["mapped"], &answer["problem"]), (&mapped, &problem), "{row}");
    };
    check(
        json!({ "action": search, "page": item }),
        "INVALID".into(),
        "the page has no `search_input`".into(),
    );
    check(json!({ "action": terminate, "page": item }), "END".into(), Value::Null);
    check(json!({ "action": terminate, "page": item, "opts": as_end }), "click[buy now]".into(), Value::Null);
    check(json!({ "action": terminate, "page": door, "opts": as_end }), "END".into(), Value::Null);
    check(json!({ "webshop": "click[Buy Now]", "opts": as_end }), terminate.clone(), Value::Null);
    let problem = "`think[lamp]` is neither `search[…]` nor `click[…]`";
    check(json!({ "webshop": "think[lamp]", "page": door }), "INVALID".into(), problem.into());
    let scroll = json!({ "type": "scroll" });
    check(
        json!({ "action": scroll, "page": door }),
        "INVALID".into(),
        "`scroll` is not an action type".into(),
    );
}

#[test]
fn tables_are_as_recorded() {
    for row in rows(&recorded("golden_metrics")) {
        let pairs = row["pairs"].as_array().expect("pairs");
        let golds = pairs.iter().map(|pair| serde_json::from_value(pair[0].clone()).expect("an action"));
        let answers =
            pairs.iter().map(|pair| serde_json::from_value(pair[1].clone()).expect("an answer or null"));
        let (golds, answers): (Vec<NextAction>, Vec<Option<WrittenAction>>) =
            (golds.collect(), answers.collect());
        let expected = &row["expected"];
        let scores = evaluate(&golds, &answers, Seed(0));
        let figures = [
            ("exact_soft", scores.exact_soft),
            ("exact_string", scores.exact_string),
            ("type_acc", scores.type_acc),
            ("macro_f1", scores.macro_f1),
            ("weighted_f1", scores.weighted_f1),
            ("invalid_rate", scores.invalid_rate),
            ("always_terminate_exact", always(&NextAction::Terminate {}, &golds, Seed(0)).exact_soft),
        ];
        for (name, measured) in figures {
            near(&measured.value.into(), &expected[name], name);
        }
        near(&scores.n.into(), &expected["n"], "n");
        for (kind, scores) in &scores.per_type {
            let expected = &expected["per_type"][kind.name()];
            near(&scores.support.into(), &expected["support"], kind.name());
            for (name, value) in
                [("exact", scores.exact_soft.value), ("type_acc", scores.type_acc.value), ("f1", scores.f1)]
            {
                near(&value.into(), &expected[name], &format!("{kind} {name}"));
            }
        }
        let majority = majority_type(&golds).expect("there are steps");
        let support = scores.per_type[&majority].support as f64 / scores.n as f64;
        near(&support.into(), &expected["majority_type_acc"], "majority_type_acc");
    }
}

#[test]
fn the_published_reward_can_be_changed_for_all_rows() {
    let row = json!({
        "completion": r#"{"rationale": "r", "action": {"type": "click", "name": "红色"}}"#,
        "ground_truth": { "type": "click", "name": "红色" },
        "rationale_token_logits": [[0, 0], [9, 9]],
    });
    let formula = |more: &[&str]| {
        let answer = webshop(&[&["shop-r1", "score"], more].concat(), &row.to_string());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
        serde_json::from_str::<Value>(&answer.stdout).expect("a row")["formula"].clone()
    };
    assert_eq!(formula(&[]), "1 = 0.5 × 1 format + 0.3 × 1 type + 0.2 × 1 name + 1000 × 0 same name");
    // logsumexp z − mean z of two equal logits is ln 2.
    let changes = ["--set", "exact_shortcut=true", "--set", "sc_kind=logsumexp", "--set", "alpha=1"];
    assert_eq!(
        formula(&changes),
        "1001.6931 = 0.5 × 1 format + 0.3 × 1 type + 0.2 × 1 name + 1000 × 1/1 same name + 1 × 0.6931 certainty"
    );
}
