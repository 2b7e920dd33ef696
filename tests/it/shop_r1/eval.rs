//! `shop-r1 eval` scores completions of single steps beside baselines without a model; steps are few enough here to be
//! counted by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::command::{
    CORNER_SHOP, MODEL, answer, copy, edit, json, path, refusal, refusals, temporary, webshop,
};
use crate::common::in_area;
use crate::common::model::{completion, error};
use crate::common::server::{Response, serve};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Five steps: a search, three clicks of which two buy, and a terminate on a page without instruction.
fn steps() -> [Value; 5] {
    let page = |number: u32| format!("<p>Instruction:</p>\n<p>a red lamp</p>\n<p>step {number}</p>\n");
    let step = |number: u32, page: String, action: Value| {
        let (id, split) = (format!("s{number}"), if number == 5 { "validation" } else { "test" });
        json!({ "id": id, "source": "human", "split": split, "step": 0, "context": [], "page": page, "action": action })
    };
    let buy = json!({ "type": "click", "name": "buy now" });
    let mut steps = [
        step(1, page(1), json!({ "type": "type_and_submit", "name": "search_input", "text": "red lamp" })),
        step(2, page(2), buy.clone()),
        step(3, page(3), buy),
        step(4, page(4), json!({ "type": "click", "name": "b000000004" })),
        step(5, "<p>step 5</p>\n".into(), json!({ "type": "terminate" })),
    ];
    steps[3]["context"] = json!([{ "page": "<p>what lies behind</p>\n", "action": { "type": "terminate" } }]);
    steps
}

/// A folder with the steps in a file.
fn file(steps: &[Value]) -> (TempDir, PathBuf) {
    let dir = temporary();
    let file = dir.path().join("steps.jsonl");
    let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
    fs::write(&file, lines).expect("a written file");
    (dir, file)
}

fn eval<'a>(data: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    [&["shop-r1", "eval", "--data", path(data)], more].concat()
}

/// A server whose model answers at step n with `reply(n)`; the texts of all prompts.
fn served(
    reply: impl Fn(usize, &str) -> Response + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked_for: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = asked_for.clone();
    let address = serve(move |asked| {
        let body: Value = serde_json::from_str(&asked.body).expect("a request is JSON");
        let content = body["messages"][1]["content"].as_str().expect("a text");
        kept.lock().expect("no thread panics").push(content.to_owned());
        let number = (1..=5).find(|number| content.contains(&format!("<p>step {number}</p>")));
        reply(number.expect("a step"), content)
    });
    (address, asked_for)
}

fn reply(content: &str) -> Response {
    completion(json!({ "role": "assistant", "content": content }), "stop")
}

/// Right but for the case, right, a wrong name, no JSON, a type that does not exist.
fn mixed(number: usize, _: &str) -> Response {
    let action = match number {
        1 => json!({ "type": "type_and_submit", "name": "search_input", "text": "Red lamp!" }),
        2 => json!({ "type": "click", "name": "buy now" }),
        3 => json!({ "type": "click", "name": "< prev" }),
        4 => return reply("I click on b000000004."),
        _ => json!({ "type": "scroll" }),
    };
    reply(&json!({ "rationale": "I do.", "action": action }).to_string())
}

const FIGURES: [&str; 6] =
    ["exact_soft", "exact_string", "type_acc", "macro_f1", "weighted_f1", "invalid_rate"];

/// Asserts the figures of a row of the table.
#[track_caller]
fn check(table: &Value, row: usize, name: &str, expected: [f64; 6]) {
    let row = &table["rows"][row];
    assert_eq!(row["name"], name);
    for (figure, expected) in FIGURES.into_iter().zip(expected) {
        let value = row[figure]["value"].as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-12, "{name}: {figure} is {value}, not {expected}");
    }
}

#[test]
fn baselines_are_counted_by_hand() {
    let (_dir, data) = file(&steps());
    let table = json(&eval(&data, &["--json"]));
    assert_eq!((&table["examples"], &table["model"]), (&json!(5), &Value::Null));
    // Of 5 steps 1 terminates: F1 = 2·1 / (1 + 5), over three types, and of weight 1/5.
    check(&table, 0, "always terminate", [0.2, 0.2, 0.2, 1.0 / 9.0, 1.0 / 15.0, 0.0]);
    // 2 buy, 3 click: F1 = 2·3 / (3 + 5).
    let buying = [0.4, 0.4, 0.6, 0.25, 0.45, 0.0];
    check(&table, 1, "always click buy now", buying);
    check(&table, 2, "most frequent action", buying);
    assert_eq!(table["rows"][2]["action"], json!({ "type": "click", "name": "buy now" }));
    // `a red lamp` is like `red lamp` by 2·2 / (3 + 2) = .8. The last page has no instruction: F1 = 2·1 / (1 + 4).
    check(&table, 3, "copied instruction", [0.2, 0.0, 0.2, 0.4 / 3.0, 0.08, 0.2]);
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(4));
    // Three clicks and a search: terminate is never right, and none of their types.
    let table = json(&eval(&data, &["--split", "test", "--json"]));
    assert_eq!((&table["examples"], &table["origin"]["file"]["split"]), (&json!(4), &json!("test")));
    check(&table, 0, "always terminate", [0.0; 6]);
    assert_eq!(json(&eval(&data, &["--examples", "2", "--json"]))["examples"], 2);
}

#[test]
fn completions_are_counted_by_hand() {
    let (dir, data) = file(&steps());
    let (address, _) = served(mixed);
    let out = dir.path().join("answers.jsonl");
    let server = ["--base-url", &address, "--model", "parrot", "--concurrency", "3"];
    let kept = eval(&data, &[&server[..], &["--out", path(&out)]].concat());
    let table = json(&eval(&data, &[&server[..], &["--json"]].concat()));
    // F1 of clicks 2·2 / (3 + 2) = .8, of searches 1, of terminate 0.
    check(&table, 0, "parrot", [0.4, 0.2, 0.6, 0.6, (3.0 * 0.8 + 1.0) / 5.0, 0.2]);
    assert_eq!(table["rows"][0]["confusion"], json!([[2, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]));
    assert_eq!(table["model"]["too_long"], 0);
    let table_text = answer(&kept);
    for row in table["rows"].as_array().expect("rows") {
        let percent = |share: &Value| format!("{:.1}", 100.0 * share.as_f64().expect("a share"));
        let [name, cells] = [row["name"].as_str().expect("a name").to_owned(), String::new()];
        let cells = FIGURES.iter().fold(cells, |cells, figure| {
            let [value, low, high] =
                [&row[*figure]["value"], &row[*figure]["ci95"][0], &row[*figure]["ci95"][1]].map(percent);
            format!("{cells} {value} [{low}, {high}]")
        });
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(
            table_text.lines().any(|line| words(line) == words(&(name.clone() + &cells))),
            "{name}{cells}:\n{table_text}"
        );
    }
    // The same bytes each time, in whatever order the server answers.
    let first = fs::read_to_string(&out).expect("a file");
    fs::remove_file(&out).expect("a file");
    assert_eq!(
        (answer(&kept), fs::read_to_string(&out).expect("a file")),
        (table_text.clone(), first.clone())
    );
    let table_text = table_text.replace(path(dir.path()), "DIR");
    in_area("cli", || insta::assert_snapshot!("shop_r1_eval_of_a_served_model", table_text));
    // A kept row can be scored, with the same result.
    let scored = webshop(&["shop-r1", "score"], &first);
    assert_eq!((scored.code, scored.stdout.lines().count()), (Some(0), 5), "{}", scored.stderr);
    for (line, exact) in scored.stdout.lines().zip([true, true, false, false, false]) {
        let row: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&row["is_exact"], &row["result"]["exact_match_soft_gt"]), (&exact.into(), &exact.into()));
        assert_eq!(row["problem"], row["result"]["problem"]);
    }
}

#[test]
fn a_prompt_that_is_too_long_loses_its_history() {
    let (_dir, data) = file(&steps()[3..]);
    let (address, asked_for) = served(|number, content| {
        let is_too_long = number == 5 || content.contains("what lies behind");
        match is_too_long {
            true => error(400, "", "This model's maximum context length is 5"),
            false => reply(r#"{"rationale": "I do.", "action": {"type": "click", "name": "b000000004"}}"#),
        }
    });
    let server = ["--base-url", &address, "--model", "parrot", "--concurrency", "1", "--json"];
    let table = json(&eval(&data, &server));
    // The first step is sent again without its history and answered rightly; the second has no history and is invalid. Two types
    // occur, of which one is always right.
    check(&table, 0, "parrot", [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(table["model"]["too_long"], 1);
    let asked_for = asked_for.lock().expect("no thread panics");
    assert_eq!(asked_for.len(), 3);
    assert!(asked_for[1].starts_with("Action 1: {\"type\":\"terminate\"}\nPage 2:\n"), "{}", asked_for[1]);
}

#[test]
fn prompts_are_chosen_by_name() {
    let (_dir, data) = file(&steps()[3..4]);
    for (prompt, version, has_past) in [
        ("shop-r1", "shop-r1-v3", true),
        ("shop-r1-latest", "shop-r1-latest-v1", false),
        ("shop-r1-minimal", "shop-r1-minimal-v1", false),
    ] {
        let (address, asked_for) = served(mixed);
        let server = ["--base-url", &address, "--model", "parrot", "--prompt-format", prompt, "--json"];
        let table = json(&eval(&data, &server));
        assert_eq!(table["model"]["prompt_version"], version);
        let asked_for = asked_for.lock().expect("no thread panics");
        assert_eq!(asked_for[0].contains("what lies behind"), has_past, "{prompt}");
    }
}

#[test]
fn completions_of_a_local_model_are_the_same_on_any_number_of_threads() {
    let (dir, data) = file(&steps());
    let model = dir.path().join("model");
    let new = ["model", "new", "--shape", "tiny", "--layers", "1", "--catalog", CORNER_SHOP];
    answer(&[&new[..], &["--out", path(&model)]].concat());
    let bounds = ["--max-turn-tokens", "8", "--max-context", "2048", "--checkpoint", path(&model)];
    let asked = |name: &str, threads: &str, seed: &str| {
        let out = dir.path().join(name);
        let more = ["--threads", threads, "--seed", seed, "--out", path(&out), "--json"];
        let table = json(&eval(&data, &[&bounds[..], &more].concat()));
        (table, fs::read_to_string(&out).expect("a file"))
    };
    let (table, answers) = asked("first", "1", "0");
    assert_eq!(asked("again", "2", "0"), (table.clone(), answers.clone()));
    assert_ne!(asked("other", "2", "1").1, answers);
    // Random weights have no valid completion.
    assert_eq!(table["rows"][0]["invalid_rate"]["value"], 1.0);
    assert_eq!(
        (&table["model"]["prompt_format"], &table["model"]["too_long"]),
        (&json!("shop-r1"), &json!(0))
    );
    let narrow = ["--max-turn-tokens", "8", "--max-context", "16", "--checkpoint", path(&model), "--json"];
    assert_eq!(json(&eval(&data, &narrow))["model"]["too_long"], 5);
}

#[test]
fn held_out_steps_are_those_of_the_split() {
    let shop = |more: &[&str]| json(&[&["shop-r1", "eval", "--json", "--examples", "60"][..], more].concat());
    let table = shop(&[]);
    assert_eq!((&table["examples"], &table["origin"]["shop"]["split"]), (&json!(60), &json!("test")));
    assert_eq!(shop(&["--split", "test"]), table);
    assert_ne!(shop(&["--split", "validation"])["rows"], table["rows"]);
    // Without terminate examples terminate is never right; with nothing else it always is.
    check(&shop(&["--terminate-share", "0"]), 0, "always terminate", [0.0; 6]);
    let terminate = &shop(&["--terminate-share", "1"])["rows"][0]["exact_soft"]["value"];
    assert_eq!(terminate, 1.0);
    // A tenth terminates by default, and 512 of the paper's 1879 steps; of 60 that is 6 and 16.3, give or take deviations of 2.3 and
    // 3.4. These are the draws.
    let n_terminate = |table: &Value| {
        let share = table["rows"][0]["exact_soft"]["value"].as_f64().expect("a share");
        (share * 60.0).round() as u32
    };
    assert_eq!([n_terminate(&table), n_terminate(&shop(&["--mix", "paper"]))], [4, 12]);
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    let (dir, data) = file(&steps());
    let model = ["--checkpoint", path(MODEL.path())];
    refusals("shop_r1_eval", |refused| {
        refused.row(dir.path(), &eval(&data, &["--out", "answers.jsonl"]));
        refused.row(dir.path(), &eval(&data, &["--temperature", "0.4"]));
        let remote = ["--base-url", "http://127.0.0.1:9/v1", "--model", "parrot"];
        refused.row(dir.path(), &eval(&data, &[&remote[..], &["--dtype", "bf16"]].concat()));
        refused.row(dir.path(), &eval(&data, &["--split", "train"]));
        refused.row(dir.path(), &eval(&data, &["--mix", "paper"]));
        refused.row(dir.path(), &["shop-r1", "eval", "--terminate-share", "1.5"]);
        let broken = dir.path().join("broken.jsonl");
        fs::write(&broken, "{\"id\": \"s1\", \"source\": \"nobody\"}\n").expect("a written file");
        refused.row(dir.path(), &eval(&broken, &[]));
    });
    let message = refusal(MODEL.path(), &eval(&data, &[&model[..], &["--out", path(&data)]].concat()), "");
    assert!(message.contains("steps.jsonl` already exists"), "{message}");
    let silent = copy(MODEL.path());
    edit(&silent.path().join("tokenizer_config.json"), "\"chat_template\"", "\"former_template\"");
    let message = refusal(silent.path(), &eval(&data, &["--checkpoint", path(silent.path())]), "");
    assert!(message.contains("the folder has no chat template: no `chat_template.jinja`"), "{message}");
    // A request that fails for good.
    let (address, _) = served(|number, content| match number {
        3 => error(422, "", "no such word"),
        _ => mixed(number, content),
    });
    let message = refusal(dir.path(), &eval(&data, &["--base-url", &address, "--model", "parrot"]), "");
    assert_eq!(
        message,
        "error: no completion for example `s3`: HTTP status 422 Unprocessable Entity: no such word\n"
    );
}
