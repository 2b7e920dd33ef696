//! `webshop serve --model` and `webshop rollout --policy remote`: a remote rollout is a local one, token for token.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{complete, numbers};
use crate::common::client::Served;
use crate::common::command::{CORNER_SHOP, answer, path, refusal, temporary};
use crate::serve::command::start;

/// Pages, prompts, completions and rewards of each episode, in the order of the goals.
fn episodes(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a written file");
    let mut episodes: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    episodes.sort_by_key(|episode| episode["coordinates"]["goal"].as_u64());
    for episode in &mut episodes {
        let record = episode.as_object_mut().expect("an object");
        record.retain(|name, _| !["policy", "model", "prompt_version", "sampling"].contains(&name.as_str()));
        for turn in record["turns"].as_array_mut().expect("turns") {
            let turn = turn.as_object_mut().expect("an object");
            turn.shift_remove("tokens");
        }
    }
    episodes
}

/// Asserts that the greedy completions of the server are the recorded tokens; returns their number.
fn check_tokens(server: &Served, file: &Path) -> usize {
    let text = fs::read_to_string(file).expect("a written file");
    let episodes: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut n_tokens = 0;
    for turn in episodes.iter().flat_map(|episode| episode["turns"].as_array().expect("turns")) {
        let (tokens, ids) = (&turn["tokens"], numbers(&turn["tokens"]["completion"]["ids"]));
        assert_eq!(tokens["context"], "fresh", "the prompt is the whole context");
        let ask = json!({
            "model": "tiny", "prompt": tokens["prompt_ids"], "temperature": 0, "max_tokens": 24,
            "return_token_ids": true,
        });
        assert_eq!(numbers(&complete(server, &ask)["choices"][0]["token_ids"]), ids);
        n_tokens += ids.len();
    }
    n_tokens
}

#[test]
#[cfg(unix)]
fn a_remote_rollout_is_a_local_one() {
    let dir = temporary();
    let [model, here, there] = ["model", "here.jsonl", "there.jsonl"].map(|name| dir.path().join(name));
    answer(&[
        "model",
        "new",
        "--shape",
        "tiny",
        "--layers",
        "1",
        "--catalog",
        CORNER_SHOP,
        "--out",
        path(&model),
    ]);
    let running = start(&["--model", path(&model), "--model-name", "tiny", "--max-context", "2048"], &[]);
    let openai = running.ready["openai"].as_str().expect("an address");
    assert_eq!(openai, format!("{}/v1", running.ready["url"].as_str().expect("an address")));
    let shop = ["--catalog", CORNER_SHOP, "--split", "all", "--episodes", "6", "--max-steps", "3"];
    let sampling = ["--temperature", "0", "--max-turn-tokens", "24"];
    for format in ["verl-agent", "shop-r1-latest"] {
        let common = [&shop[..], &sampling, &["--prompt-format", format, "--out"]].concat();
        let lm = ["rollout", "--policy", "lm", "--checkpoint", path(&model), "--max-context", "2048"];
        answer(&[&lm[..], &common, &[path(&here)]].concat());
        let remote = ["rollout", "--policy", "remote", "--base-url", openai, "--model", "tiny"];
        answer(&[&remote[..], &common, &[path(&there)]].concat());
        let [here_episodes, there_episodes] = [&here, &there].map(|file| episodes(file));
        assert_eq!(there_episodes, here_episodes, "{format}");
        let n_turns = here_episodes
            .iter()
            .filter_map(|episode| Some(episode["turns"].as_array()?.len()))
            .sum::<usize>();
        assert!(n_turns >= 6, "{format}: {n_turns} turns");
        assert!(check_tokens(&running.server, &here) >= n_turns);
        for file in [&here, &there] {
            fs::remove_file(file).expect("a file");
        }
    }
    // Sampled episodes depend on the seed, and not on how many are under way together.
    let sampled = |seed: &str, concurrency: &str| {
        let remote = ["rollout", "--policy", "remote", "--base-url", openai, "--model", "tiny"];
        let sampling = ["--seed", seed, "--concurrency", concurrency, "--max-turn-tokens", "24"];
        answer(&[&remote[..], &shop, &sampling, &["--out", path(&there)]].concat());
        let episodes = episodes(&there);
        fs::remove_file(&there).expect("a file");
        episodes
    };
    let alone = sampled("4", "1");
    assert_eq!(sampled("4", "6"), alone);
    assert_ne!(sampled("5", "6"), alone);
    let (code, _, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_model_that_cannot_be_served_is_refused() {
    let dir = temporary();
    let missing = dir.path().join("missing");
    let serve = ["serve", "--port", "0", "--catalog", CORNER_SHOP];
    let message = refusal(dir.path(), &[&serve[..], &["--model", path(&missing)]].concat(), "");
    assert!(message.contains("DIR/missing"), "{message}");
    let message = refusal(dir.path(), &[&serve[..], &["--lanes", "4"]].concat(), "");
    assert!(message.contains("--model <DIR>"), "{message}");
}
