//! What cannot be done is refused with exit code 2 and one message that names the culprit and what to do.
//!
//! One test and one snapshot for each command: the refused commands, each with its message.

use std::fs;
use std::path::Path;

use crate::common::command::{CORNER_SHOP, MODEL, Refusals, answer, copy, edit, path, refusals, temporary};
use serde_json::{Value, json};
use tempfile::TempDir;
use webshop_training::RunFolder;
use webshop_training::config::Config;

/// In the place of a temporary folder, for commands without one.
const NO_DIR: &str = "no-such-folder";

fn nowhere() -> &'static Path {
    Path::new(NO_DIR)
}

/// A copy of the corner shop's files.
fn corner_shop() -> TempDir {
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CORNER_SHOP))
}

/// A file with one episode of the rule agent in the corner shop.
fn recorded_episode(dir: &Path) -> std::path::PathBuf {
    let file = dir.join("episodes.jsonl");
    let rollout = ["rollout", "--policy", "rule", "--catalog", CORNER_SHOP, "--split", "all"];
    answer(&[&rollout[..], &["--episodes", "1", "--out", path(&file)]].concat());
    file
}

#[test]
fn train() {
    refusals("train", |refused| {
        let dir = temporary();
        let run = dir.path().join("run");
        let train = |more: &[&'static str]| [&["train", "--out", path(&run)], more].concat();
        refused.row(dir.path(), &train(&["--set", "rl.lrr=1"]));
        refused.row(dir.path(), &train(&["--set", "rl.lr=fast"]));
        refused.row(dir.path(), &train(&["--set", "catalog.auxiliary_shops=0"]));
        refused.row(dir.path(), &train(&["--resume"]));
        let file = dir.path().join("experiment.toml");
        fs::write(&file, "[warmstart]\nsteps = 3\n").expect("a written file");
        refused.row(dir.path(), &[&train(&[])[..], &["--config", path(&file)]].concat());
        let steps = format!("shop_r1.data={}", path(&dir.path().join("steps.jsonl")));
        let shop = ["--catalog", CORNER_SHOP, "--set", "catalog.auxiliary_shops=0"];
        let train = ["shop-r1", "train", "--out", path(&run), "--set", &steps];
        refused.row(dir.path(), &[&train[..], &shop].concat());
        assert!(!run.exists(), "a folder was created");
        RunFolder::create(&run, &Config { seed: 3, ..Config::default() }).expect("an empty folder");
        refused.row(dir.path(), &["train", "--resume", "--seed", "4", "--out", path(&run)]);
    });
}

#[test]
fn catalogs() {
    refusals("catalog", |refused| {
        let mut search = |dir: &Path| refused.row(dir, &["search", "--catalog", path(dir), "lamp"]);
        let dir = corner_shop();
        fs::remove_file(dir.path().join("items_ins_v2.json")).expect("it was there");
        search(dir.path());
        let dir = corner_shop();
        edit(&dir.path().join("items_shuffle.json"), "\"name\":", "\"name\"");
        search(dir.path());
        let dir = corner_shop();
        edit(&dir.path().join("items_shuffle.json"), "$39.99", "cheap");
        search(dir.path());
        fs::remove_dir_all(dir.path()).expect("a folder");
        search(dir.path());
    });
}

#[test]
fn eval() {
    refusals("eval", |refused| {
        let eval = |refused: &mut Refusals, dir: &TempDir| {
            refused.row(dir.path(), &["eval", "--checkpoint", path(dir.path()), "--catalog", CORNER_SHOP]);
        };
        let dir = temporary();
        eval(refused, &dir);
        refused.row(dir.path(), &["eval", "--checkpoint", path(&dir.path().join("run"))]);
        for missing in ["model.safetensors", "tokenizer.json"] {
            let dir = copy(MODEL.path());
            fs::remove_file(dir.path().join(missing)).expect("it was there");
            eval(refused, &dir);
        }
        let dir = copy(MODEL.path());
        let weights = dir.path().join("model.safetensors");
        let bytes = fs::read(&weights).expect("weights");
        fs::write(&weights, &bytes[..bytes.len() / 2]).expect("a written file");
        eval(refused, &dir);
        for (from, to) in
            [("\"hidden_size\": 16", "\"hidden_size\": 32"), ("\"vocab_size\": 2", "\"vocab_size\": 1")]
        {
            let dir = copy(MODEL.path());
            edit(&dir.path().join("config.json"), from, to);
            eval(refused, &dir);
        }
    });
}

#[test]
fn eval_of_recorded_episodes() {
    let dir = temporary();
    let file = recorded_episode(dir.path());
    let other = dir.path().join("other.jsonl");
    let rollout =
        ["rollout", "--policy", "oracle", "--catalog", CORNER_SHOP, "--split", "all", "--episodes", "2"];
    answer(&[&rollout[..], &["--out", path(&other)]].concat());
    refusals("eval_of_recorded_episodes", |refused| {
        let mut row = |files: &[&Path], more: &[&str]| {
            let files: Vec<&str> = files.iter().map(|file| path(file)).collect();
            let eval = [&["eval", "--catalog", CORNER_SHOP, "--recorded"][..], &files, more].concat();
            refused.row(dir.path(), &eval);
        };
        row(&[&file], &["--split", "all"]);
        row(&[&other], &["--split", "all", "--episodes", "1"]);
        row(&[&file], &["--split", "all", "--episodes", "1", "--max-steps", "3"]);
        row(&[&file, &other], &["--split", "all", "--episodes", "2"]);
        row(&[&other, &other], &["--split", "all", "--episodes", "2"]);
        edit(&file, "click[buy now]", "click[< prev]");
        row(&[&file], &["--split", "all", "--episodes", "1"]);
        refused.row(dir.path(), &["eval", "--catalog", CORNER_SHOP]);
        refused.row(dir.path(), &["eval", "--recorded", path(&file), "--temperature", "0.4"]);
    });
}

#[test]
fn a_shop_without_goals() {
    let dir = copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CORNER_SHOP));
    fs::write(dir.path().join("items_human_ins.json"), "{}").expect("a written file");
    fs::write(dir.path().join("items_ins_v2.json"), "{}").expect("a written file");
    refusals("without_goals", |refused| {
        for command in
            [&["validate"][..], &["play"], &["explain", "--goal", "0"], &["rollout", "--policy", "rule"]]
        {
            refused.row(dir.path(), &[command, &["--catalog", path(dir.path())]].concat());
        }
    });
}

#[test]
fn existing_files_and_folders() {
    let dir = temporary();
    let kept = dir.path().join("metrics.jsonl");
    fs::write(&kept, "kept").expect("a written file");
    refusals("existing_output", |refused| {
        let mut row = |args: &[&str]| refused.row(dir.path(), args);
        let (folder, file) = (path(dir.path()), path(&kept));
        row(&["train", "--out", folder]);
        row(&["train", "--resume", "--out", folder]);
        row(&["catalog", "generate", "--out", folder]);
        row(&["rollout", "--policy", "rule", "--catalog", CORNER_SHOP, "--out", file]);
        row(&["shop-r1", "data", "--out", file]);
        row(&["model", "convert", "tests/data/transformers/models/tied", "--out", folder]);
    });
    assert_eq!(fs::read_to_string(&kept).expect("still there"), "kept");
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
}

#[test]
fn model() {
    let dir = temporary();
    let out = dir.path().join("merged");
    refusals("model", |refused| {
        let adapter = ["--adapter", "tests/data/transformers/adapters/plain", "--out", path(&out)];
        let merge = ["model", "merge", "tests/data/transformers/models/tied"];
        refused.row(dir.path(), &[&merge[..], &adapter].concat());
        refused.row(dir.path(), &["model", "convert", path(dir.path()), "--out", path(&out)]);
    });
    assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 0, "an output was begun");
}

#[test]
fn play_and_explain() {
    let shop = ["--catalog", CORNER_SHOP];
    refusals("play_and_explain", |refused| {
        let mut row = |args: &[&str]| refused.row(nowhere(), &[args, &shop].concat());
        row(&["play", "--goal", "1000"]);
        row(&["play", "--goals", "both", "--compat", "original"]);
        row(&["explain", "--goal", "1000"]);
        row(&["explain", "--goal", "3", "--buy", "B0NOWHERE"]);
        row(&["explain", "--goal", "3", "--option", "colour=red"]);
        row(&["explain", "--goal", "3", "--option", "color=red"]);
    });
}

#[test]
fn replay_and_watch() {
    let dir = temporary();
    let file = recorded_episode(dir.path());
    refusals("replay_and_watch", |refused| {
        refused.row(dir.path(), &["replay", "--catalog", "100", path(&file)]);
        edit(&file, "\"turns\":", "\"turns\"");
        refused.row(dir.path(), &["replay", path(&file)]);
        refused.row(dir.path(), &["replay", path(&dir.path().join("other.jsonl"))]);
        refused.row(dir.path(), &["watch", path(dir.path())]);
    });
}

#[test]
fn trace() {
    let trace = ["trace", "--catalog", CORNER_SHOP, "--compat", "original"];
    refusals("trace", |refused| {
        refused.row(nowhere(), &trace[..3]);
        refused.row(nowhere(), &[&trace[..], &["--goals", "both"]].concat());
        let mut line = |input: &str| refused.row_with_input(nowhere(), &trace, input);
        line("{}\n{\"actions\": 3}\n");
        line("{}\n\n{\"goal\": {\"asin\": \"B0\", \"query\": []}}\n");
        line("[]\n");
        line("{\"goal_idx\": 1000}\n");
    });
}

#[test]
fn convert() {
    let dir = temporary();
    let file = recorded_episode(dir.path());
    let empty = dir.path().join("empty.jsonl");
    fs::write(&empty, "\n").expect("a written file");
    refusals("convert", |refused| {
        let mut row = |args: &[&str]| {
            refused.row(dir.path(), &[&["convert"], args, &["--catalog", CORNER_SHOP]].concat())
        };
        row(&[path(&file)]);
        row(&[path(&file), "--to", "messages"]);
        row(&[path(&file), "--to", "agenttraj", "--prompt-format", "shop-r1"]);
        row(&[path(&file), "--to", "messages", "--out", path(&file)]);
        row(&[path(&file), "--from", "messages"]);
        row(&[path(&empty), "--to", "messages"]);
        row(&[path(&file), "--from", "messages", "--max-steps", "0"]);
        let never_written = dir.path().join("chats.jsonl");
        row(&[path(&file), "--to", "messages", "--out", path(&never_written)]);
        row(&[path(&file), "--from", "messages", "--out", path(&never_written)]);
        row(&[path(&dir.path().join("none.jsonl")), "--to", "messages"]);
        let elsewhere =
            ["convert", path(&file), "--to", "messages", "--prompt-format", "ragen", "--catalog", "100"];
        refused.row(dir.path(), &elsewhere);
    });
    let left = fs::read_dir(dir.path()).expect("a folder").count();
    assert_eq!(left, 2, "beside the two inputs, a file was left behind");
}

#[test]
fn rollout() {
    refusals("rollout", |refused| {
        let mut row = |args: &[&str]| refused.row(nowhere(), &[&["rollout", "--policy"], args].concat());
        row(&["lm"]);
        row(&["rule", "--episodes", "10", "--split-rule", "paper", "--catalog", CORNER_SHOP]);
        row(&["rule", "--base-url", "http://127.0.0.1:9/v1", "--model", "parrot"]);
        row(&["rule", "--temperature", "0"]);
        row(&["oracle", "--kernels", "eager"]);
        row(&["rule", "--max-steps", "0"]);
        row(&["lm", "--checkpoint", "base", "--catalog", CORNER_SHOP, "--max-context", "99999"]);
        let dir = temporary();
        let out = dir.path().join("episodes.jsonl");
        let none = ["rollout", "--policy", "rule", "--episodes", "0", "--out", path(&out)];
        refused.row(dir.path(), &none);
        assert!(!out.exists(), "a file was left behind");
    });
}

#[test]
fn rollout_of_a_remote_model() {
    let dir = temporary();
    let kept = dir.path().join("episodes.jsonl");
    fs::write(&kept, "kept").expect("a written file");
    refusals("rollout_of_a_remote_model", |refused| {
        let mut row =
            |args: &[&str]| refused.row(dir.path(), &[&["rollout", "--policy", "remote"], args].concat());
        let address = "http://127.0.0.1:9/v1";
        row(&[]);
        row(&["--base-url", address]);
        row(&["--model", "parrot", "--base-url", "localhost:8000"]);
        row(&["--model", "parrot", "--base-url", "http://me:secret@host:99999/v1"]);
        let mut row = |args: &[&str]| row(&[&["--base-url", address, "--model", "parrot"], args].concat());
        row(&["--out", path(&kept)]);
        row(&["--out", path(&dir.path().join("none.jsonl")), "--resume"]);
        row(&["--out", path(&kept), "--resume"]);
        row(&["--resume"]);
        row(&["--constrained"]);
        row(&["--dtype", "bf16"]);
        row(&["--max-context", "99"]);
        row(&["--top-p", "0"]);
        row(&["--prompt-format", "klingon"]);
        row(&["--prompt-format", "compact"]);
        row(&["--extra-body", "[1]"]);
    });
    assert_eq!(fs::read_to_string(&kept).expect("still there"), "kept");
}

#[test]
fn rollout_at_a_site() {
    refusals("rollout_at_a_site", |refused| {
        let mut row = |site: &str, args: &[&str]| {
            refused.row(nowhere(), &[&["rollout", "--site", site, "--policy"], args].concat());
        };
        row("localhost:3000", &["rule"]);
        row("http://me:secret@127.0.0.1:9", &["rule"]);
        let mut row = |args: &[&str]| row("http://127.0.0.1:9", args);
        row(&["oracle"]);
        row(&["lm"]);
        row(&["longest-title"]);
        row(&["rule", "--out", "episodes.jsonl"]);
        row(&["rule", "--catalog", "100"]);
        row(&["rule", "--episodes", "0"]);
    });
}

#[test]
fn shop_r1_score_and_map() {
    refusals("shop_r1_score_and_map", |refused| {
        let mut score = |args: &[&str], row: Value| {
            let input = format!("\n{row}\n");
            refused.row_with_input(nowhere(), &[&["shop-r1", "score"], args].concat(), &input);
        };
        let row = |more: Value| {
            let mut row = json!({ "completion": "", "ground_truth": { "type": "terminate" } });
            row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            row
        };
        score(&[], json!({ "ground_truth": { "type": "terminate" } }));
        score(&[], row(json!({ "ground_truth": { "type": "scroll" } })));
        score(&[], row(json!({ "cfg_overrides": { "dar": 1 } })));
        score(&["--set", "sc_kind=much"], row(json!({})));
        score(&[], row(json!({ "rationale_token_dists": [[0.5, 0.5], [0.5, 0.25]] })));
        score(&[], row(json!({ "rationale_token_dists": [], "rationale_token_logits": [] })));
        let mut map = |row: Value| {
            refused.row_with_input(nowhere(), &["shop-r1", "map"], &format!("\n{row}\n"));
        };
        map(json!({ "action": { "type": "terminate" } }));
        map(json!({}));
        map(json!({ "webshop": "click[x]", "opts": { "buy_now_as": "search" } }));
    });
}

#[test]
fn shop_r1_data_and_validate() {
    let dir = temporary();
    let file = dir.path().join("people.jsonl");
    refusals("shop_r1_data_and_validate", |refused| {
        refused.row(dir.path(), &["shop-r1", "data", "--from", "episodes"]);
        refused.row(dir.path(), &["shop-r1", "data", "--input", path(&file)]);
        for text in [
            "\n{\"prompt\": \"a\"}\n",
            "{\"page\": \n",
            "{\"page\": \"basket\", \"goal\": {\"instruction_text\": \"a\"}}\n",
            "{\"states\": [], \"actions\": [\"search[a]\"]}\n",
        ] {
            fs::write(&file, text).expect("a written file");
            refused.row(dir.path(), &["shop-r1", "data", "--from", "human", "--input", path(&file)]);
        }
        fs::write(&file, "\n").expect("a written file");
        refused.row(dir.path(), &["shop-r1", "validate", path(&file)]);
    });
}
