//! `model`: folders are created, inspected, merged and converted, whole or not at all.

use std::fs;
use std::path::Path;

use crate::common::command::{CORNER_SHOP, MODEL, answer, copy, edit, json, path, temporary, webshop};
use crate::common::in_area;
use webshop_lm::{
    Qwen2,
    checkpoint::{self, WeightType},
    lora::Lora,
};

const MODELS: &str = "tests/data/transformers/models";
const ADAPTER: &str = "tests/data/transformers/adapters/plain";

fn model(name: &str) -> String {
    format!("{MODELS}/{name}")
}

#[test]
fn a_new_model_is_whole_and_follows_from_its_seed() {
    let dir = temporary();
    let make = |name: &str, seed: &str| {
        let out = dir.path().join(name);
        let new = ["model", "new", "--shape", "tiny", "--layers", "1", "--catalog", CORNER_SHOP];
        answer(&[&new[..], &["--seed", seed, "--dtype", "bf16", "--out", path(&out)]].concat());
        out
    };
    let first = make("first", "1");
    let survey = answer(&["model", "inspect", "--weights", path(&first)]);
    in_area("cli", || insta::assert_snapshot!("model_inspect", survey));
    let bytes = |folder: &Path| fs::read(folder.join("model.safetensors")).expect("weights");
    assert_eq!(bytes(&first), bytes(&make("again", "1")));
    assert_ne!(bytes(&first), bytes(&make("other", "2")));
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 3, "nothing unfinished is left");
}

#[test]
fn a_new_model_can_be_evaluated() {
    let dir = temporary();
    let out = dir.path().join("model");
    let shop = ["--catalog", CORNER_SHOP];
    let new = ["model", "new", "--shape", "tiny", "--layers", "1", "--out", path(&out)];
    answer(&[&new[..], &shop].concat());
    let shopping =
        ["eval", "--checkpoint", path(&out), "--split", "all", "--episodes", "2", "--max-steps", "2"];
    let result = json(
        &[&shopping[..], &shop, &["--max-turn-tokens", "16", "--max-context", "2048", "--json"]].concat(),
    );
    assert_eq!(result["episodes"], 2, "{result}");
    let baselines = result["baselines"].as_array().expect("a list");
    let names: Vec<&str> = baselines.iter().filter_map(|of| of["policy"].as_str()).collect();
    assert_eq!((names.len(), names[0], names[7], names[9]), (10, "random", "browsing-expert", "oracle"));
    assert!(baselines.iter().all(|of| of["summary"]["episodes"] == 2 && of["difference"]["mean"].is_f64()));
    let short = ["--max-turn-tokens", "16", "--max-context", "2048", "--no-baselines"];
    let text = answer(&[&shopping[..], &shop, &short].concat());
    assert!(text.starts_with("lm: success") && !text.contains("named-pairs"), "{text}");
}

#[test]
fn a_trained_model_is_evaluated_in_the_shop_of_its_run() {
    let run = temporary();
    fs::rename(copy(MODEL.path()).keep(), run.path().join("model"))
        .expect("a folder of the same file system");
    fs::write(run.path().join("fingerprint.json"), "{}").expect("a file");
    let config = "run.max_steps = 3\n[catalog]\nsize = \"60\"\nsplit_rule = \"by-product\"\n";
    fs::write(run.path().join("config.toml"), config).expect("a file");
    let model = run.path().join("model");
    let goals =
        |flags: &[&str]| json(&[&["catalog", "inspect", "--json"], flags].concat())["fingerprint"].clone();
    for command in [&["eval", "--no-baselines"][..], &["rollout", "--policy", "lm"]] {
        let shopping = |flags: &[&str]| {
            let common = ["--checkpoint", path(&model), "--episodes", "2", "--json"];
            json(&[command, &common, flags].concat())
        };
        let result = shopping(&[]);
        assert_eq!((&result["max_steps"], &result["split_rule"]), (&3.into(), &"by-product".into()));
        assert_eq!(result["goal_fingerprint"], goals(&["--size", "60", "--split-rule", "by-product"]));
        // What the flags name is not the run's.
        let result = shopping(&["--max-steps", "2", "--split-rule", "by-family"]);
        assert_eq!((&result["max_steps"], &result["split_rule"]), (&2.into(), &"by-family".into()));
        let result = shopping(&["--catalog", CORNER_SHOP, "--split", "all"]);
        assert_eq!(
            result["goal_fingerprint"],
            goals(&["--catalog", CORNER_SHOP, "--split-rule", "by-product"])
        );
    }
}

#[test]
fn an_adapter_is_merged() {
    let dir = temporary();
    let out = dir.path().join("merged");
    answer(&["model", "merge", &model("grouped"), "--adapter", ADAPTER, "--out", path(&out)]);
    let base = checkpoint::load(Path::new(&model("grouped"))).expect("a sound folder");
    let adapter = Lora::load(Path::new(ADAPTER), &base.matrices()).expect("a sound adapter");
    let merged =
        base.adapted(adapter).and_then(Qwen2::merged).expect("of one shape").fingerprint().expect("weights");
    assert_eq!(checkpoint::load(&out).expect("just written").fingerprint().expect("weights"), merged);
    assert!(out.join("generation_config.json").exists(), "companions come along");
}

#[test]
fn types_and_files_are_converted() {
    let dir = temporary();
    let out = dir.path().join("converted");
    answer(&["model", "convert", &model("sharded-bf16"), "--dtype", "f32", "--out", path(&out)]);
    let (before, _) = checkpoint::load_with_type(Path::new(&model("sharded-bf16"))).expect("a sound folder");
    let (after, weight_type) = checkpoint::load_with_type(&out).expect("just written");
    assert_eq!(weight_type, Some(WeightType::F32));
    assert_eq!(after.fingerprint().ok(), before.fingerprint().ok());
}

#[test]
fn an_inspection_is_printed_as_json() {
    let survey = json(&["model", "inspect", path(MODEL.path()), "--json"]);
    assert_eq!(survey["shape"]["hidden_size"], 16);
    assert_eq!(survey["weight_type"], "float32");
    assert_eq!(survey["stop_tokens"], serde_json::json!(["<|im_end|>"]));
    assert_eq!(survey["problems"], serde_json::json!([]));
}

#[test]
fn all_problems_are_listed_at_once() {
    let dir = copy(Path::new(&model("tied")));
    edit(&dir.path().join("config.json"), "\"vocab_size\": 131", "\"vocab_size\": 132");
    let output = webshop(&["model", "inspect", path(dir.path())], "");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let output = output.stdout.replace(path(dir.path()), "DIR");
    in_area("cli", || insta::assert_snapshot!("model_inspect_problems", output));
}
