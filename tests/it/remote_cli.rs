//! `rollout --policy remote` reports as a local rollout does, keeps finished episodes, and names those that failed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::common::command::{
    CORNER_SHOP, MODEL, Output, answer, answered, command, json, path, refusal, temporary, webshop,
};
use crate::common::corner_shop::corner_shop;
use crate::common::in_area;
use crate::common::model::{Model, error};
use crate::common::server;
use crate::common::server::{Request, serve};
use serde_json::Value;
use webshop_agent::PromptFormat;

const PROMPT_FORMAT: PromptFormat = PromptFormat::VerlAgent;

/// A model that knows the corner shop, with another response where `instead` has one.
fn served(instead: impl Fn(&str, &Request) -> Option<server::Response> + Send + Sync + 'static) -> String {
    let model = Model::new(&Arc::new(corner_shop()), PROMPT_FORMAT);
    serve(move |asked| {
        let (instruction, _) = model.place(asked);
        instead(&instruction, asked).unwrap_or_else(|| model.answer(asked))
    })
}

/// A remote rollout in the corner shop, with further flags.
fn rollout<'a>(address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let whom = ["rollout", "--policy", "remote", "--base-url", address, "--model", "parrot"];
    let what = ["--catalog", CORNER_SHOP, "--split", "all", "--backoff", "0.001", "--request-retries", "1"];
    [&whom[..], &what[..], more].concat()
}

/// The lines of a file, in an order that does not depend on the server.
fn lines(file: &Path) -> BTreeSet<String> {
    fs::read_to_string(file).expect("a file").lines().map(str::to_owned).collect()
}

fn without_time(mut result: Value) -> Value {
    result["seconds"] = Value::Null;
    result
}

#[test]
fn a_served_model_is_measured_as_a_local_policy_is() {
    let address = served(|_, _| None);
    let there = json(&rollout(&address, &["--json"]));
    let here = json(&["rollout", "--policy", "oracle", "--catalog", CORNER_SHOP, "--split", "all", "--json"]);
    let [mut there, here] = [there, here].map(without_time);
    let remote = there.as_object_mut().expect("an object").remove("remote").expect("the requests");
    assert_eq!(remote["url"], format!("{address}chat/completions"));
    assert_eq!((&remote["model"], &remote["failed_episodes"]), (&"parrot".into(), &0.into()));
    there["policy"] = here["policy"].clone();
    // The model writes thoughts; the oracle does not.
    there["thinking_rate"] = here["thinking_rate"].clone();
    assert_eq!(there, here);
    let shown = answer(&rollout(&address, &[]));
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("seconds ")).collect();
    let shown = shown.join("\n").replace(&address, "SERVER/");
    in_area("cli", || insta::assert_snapshot!("rollout_of_a_served_model", shown));
}

/// The names of all fields, with those of what they hold.
fn keys(value: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let name = format!("{prefix}.{name}");
            self::keys(value, &name, keys);
            keys.insert(name);
        }),
        Value::Array(items) => items.iter().for_each(|item| self::keys(item, prefix, keys)),
        _ => (),
    }
}

#[test]
fn its_records_have_the_fields_of_a_local_models() {
    let dir = temporary();
    let address = served(|_, _| None);
    let [there, here] = ["there.jsonl", "here.jsonl"].map(|name| dir.path().join(name));
    answer(&rollout(&address, &["--out", path(&there)]));
    let local = ["rollout", "--policy", "lm", "--checkpoint", path(MODEL.path()), "--catalog", CORNER_SHOP];
    answer(&[&local[..], &["--split", "all", "--out", path(&here)]].concat());
    let keys_of = |file: &Path| {
        let mut all = BTreeSet::new();
        for line in lines(file) {
            keys(&serde_json::from_str(&line).expect("JSON"), "", &mut all);
        }
        // Turns of a local model have tokens, and rewards have a breakdown only after a purchase.
        all.retain(|key| !key.starts_with(".turns.tokens.") && !key.starts_with(".breakdown."));
        all.retain(|key| !key.starts_with(".sampling."));
        all
    };
    assert_eq!(keys_of(&there), keys_of(&here));
    assert!(keys_of(&there).contains(".turns.completion"));
    let record: Value = serde_json::from_str(lines(&there).first().expect("an episode")).expect("JSON");
    let given = ["policy", "model", "prompt_format", "prompt_version"]
        .map(|key| record[key].as_str().expect("a text"));
    assert_eq!(given, ["remote", "parrot", "verl-agent", "verl-agent-v1"]);
    assert!(record["turns"][0]["completion"].is_string());
    assert_eq!(record["turns"][0]["tokens"], Value::Null);
    let replayed = answer(&["replay", path(&there), "--catalog", CORNER_SHOP]);
    assert!(replayed.contains(": no difference"), "{replayed}");
}

#[test]
fn failed_episodes_are_left_out_counted_and_tried_again() {
    let dir = temporary();
    let (whole, file) = (dir.path().join("whole.jsonl"), dir.path().join("episodes.jsonl"));
    let goals = corner_shop();
    let unlucky = goals.goals().goals()[1].instruction.to_string();
    let is_broken = Arc::new(AtomicBool::new(true));
    let n_asked = Arc::new(AtomicUsize::new(0));
    let (broken, asked) = (is_broken.clone(), n_asked.clone());
    let address = served(move |instruction, _| {
        asked.fetch_add(1, Ordering::SeqCst);
        (broken.load(Ordering::SeqCst) && instruction == unlucky).then(|| error(503, "", "overloaded"))
    });
    let Output { code, stdout, stderr } = webshop(&rollout(&address, &["--json", "--out", path(&file)]), "");
    assert_eq!(code, Some(2), "{stderr}");
    let first: Value = serde_json::from_str(&stdout).expect("one JSON object");
    assert_eq!((&first["remote"]["failed_episodes"], &first["success_rate"]), (&1.into(), &1.0.into()));
    let failure = &first["remote"]["failures"][0];
    assert_eq!((&failure["coordinates"]["goal"], &failure["attempts"]), (&1.into(), &2.into()));
    let message: Vec<&str> = stderr.lines().filter(|line| line.contains("failed")).collect();
    in_area("cli", || insta::assert_snapshot!("failed_episodes", message.join("\n")));
    let n_made = lines(&file).len();
    assert_eq!(n_made + 1, goals.goals().goals().len());
    is_broken.store(false, Ordering::SeqCst);
    answer(&rollout(&address, &["--out", path(&whole)]));
    n_asked.store(0, Ordering::SeqCst);
    let resumed = json(&rollout(&address, &["--json", "--out", path(&file), "--resume"]));
    assert!((1..16).contains(&n_asked.load(Ordering::SeqCst)), "one episode runs, the others are kept");
    assert_eq!(
        (&resumed["remote"]["failed_episodes"], &resumed["episodes"]),
        (&0.into(), &(n_made + 1).into())
    );
    assert_eq!(lines(&file), lines(&whole));
    let results = ["first", "resumed"].map(|name| dir.path().join(name));
    for (file, result) in results.iter().zip([first, resumed]) {
        fs::write(file, result.to_string()).expect("a written result");
    }
    let message = refusal(dir.path(), &["compare", path(&results[0]), path(&results[1])], "");
    let expected = "they differ in the failed episodes, which are left out; compare anyway with `--force`";
    assert!(message.contains(expected), "{message}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_rollout_is_resumed() {
    let dir = temporary();
    let (whole, file) = (dir.path().join("whole.jsonl"), dir.path().join("episodes.jsonl"));
    let slow = corner_shop().goals().goals()[2].instruction.to_string();
    let (is_slow, (sender, reached)) = (Arc::new(AtomicBool::new(true)), channel());
    let (slows, sender) = (is_slow.clone(), Mutex::new(sender));
    let address = served(move |instruction, _| {
        if slows.load(Ordering::SeqCst) && instruction == slow {
            sender.lock().expect("no thread panics").send(()).expect("the test waits for it");
            loop {
                std::thread::park();
            }
        }
        None
    });
    let args = |out, more: &[&'static str]| -> Vec<String> {
        let args = rollout(&address, &["--json", "--concurrency", "1", "--out", out]);
        args.into_iter().chain(more.iter().copied()).map(str::to_owned).collect()
    };
    let run = |args: Vec<String>| {
        command(&args.iter().map(String::as_str).collect::<Vec<_>>()).spawn().expect("the binary starts")
    };
    let child = run(args(path(&file), &[]));
    reached.recv().expect("the slow episode is reached");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is `kill`").success());
    let Output { code, stdout, stderr } = answered(child);
    assert_eq!((code, stdout.as_str()), (Some(130), ""), "{stderr}");
    assert!(stderr.contains("episodes; continue with `--resume`"), "{stderr}");
    let n_made = lines(&file).len();
    assert!(n_made > 0, "episodes ended before the slow one");
    // As if it had been stopped within a line, too.
    let mut torn = fs::read(&file).expect("a file");
    torn.extend_from_slice(b"{\"format\":");
    fs::write(&file, torn).expect("a written file");
    is_slow.store(false, Ordering::SeqCst);
    let Output { code, stderr, .. } = answered(run(args(path(&file), &["--resume"])));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("is incomplete; its 10 bytes are dropped"), "{stderr}");
    assert_eq!(answered(run(args(path(&whole), &[]))).code, Some(0));
    assert_eq!(lines(&file), lines(&whole));
}

#[test]
fn the_key_goes_to_the_server_and_nowhere_else() {
    let dir = temporary();
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let kept = seen.clone();
    let unlucky = corner_shop().goals().goals()[1].instruction.to_string();
    let address = served(move |instruction, asked| {
        kept.lock().expect("no thread panics").insert(asked.headers["authorization"].clone());
        (instruction == unlucky).then(|| error(400, "", &format!("no, {}", asked.headers["authorization"])))
    });
    let file = dir.path().join("episodes.jsonl");
    let args = rollout(&address, &["--json", "--out", path(&file)]);
    let run = |args: &[&str], variable: &str| {
        answered(
            command(args)
                .env(variable, "s3cret-key")
                .env("RUST_LOG", "trace")
                .spawn()
                .expect("the binary starts"),
        )
    };
    let answer = run(&args, "OPENAI_API_KEY");
    assert_eq!(answer.code, Some(2), "one episode is refused");
    assert_eq!(*seen.lock().expect("no thread panics"), BTreeSet::from(["Bearer s3cret-key".to_owned()]));
    assert!(answer.stderr.contains("HTTP status 400 Bad Request: no, Bearer …"), "{}", answer.stderr);
    let outputs = [answer.stdout, answer.stderr, fs::read_to_string(&file).expect("a file")];
    assert!(outputs.iter().all(|output| !output.contains("s3cret")), "{outputs:?}");
    seen.lock().expect("no thread panics").clear();
    run(&rollout(&address, &["--api-key-env", "MY_KEY"]), "MY_KEY");
    assert_eq!(seen.lock().expect("no thread panics").len(), 1);
}
