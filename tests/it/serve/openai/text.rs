//! Text completions, token by token beside our own generator.

use std::thread;

use serde_json::{Value, json};
use webshop_lm::{Sampler, StopReason};

use super::{MODEL, TOKENIZER, complete, local, log_probs, model_config, numbers, prompts, serving};

#[test]
fn greedy_completions_are_the_generators_token_for_token() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let mut n_stopped = 0;
    for prompt in prompts(12) {
        let prompt_ids = TOKENIZER.encode(&prompt).expect("any text");
        let expected = local(&prompt_ids, Sampler::GREEDY, 0, 40);
        let ask = json!({"temperature": 0, "max_tokens": 40, "return_token_ids": true});
        let by_text = complete(&server, &super::with(ask.clone(), &json!({"prompt": prompt})));
        let by_ids = complete(&server, &super::with(ask, &json!({"prompt": prompt_ids})));
        for reply in [by_text, by_ids] {
            let choice = &reply["choices"][0];
            assert_eq!(numbers(&choice["token_ids"]), expected.ids, "{prompt}");
            assert_eq!(numbers(&choice["prompt_token_ids"]), prompt_ids);
            let is_stopped = expected.stop == StopReason::EndOfTurn;
            n_stopped += usize::from(is_stopped);
            assert_eq!(choice["finish_reason"], if is_stopped { "stop" } else { "length" });
            let said = expected.ids.len() - usize::from(is_stopped);
            assert_eq!(choice["text"], TOKENIZER.decode(&expected.ids[..said]));
            let usage = json!({
                "prompt_tokens": prompt_ids.len(), "completion_tokens": expected.ids.len(),
                "total_tokens": prompt_ids.len() + expected.ids.len(),
            });
            assert_eq!(reply["usage"], usage);
            assert_eq!((&reply["object"], &reply["model"]), (&"text_completion".into(), &"webshop".into()));
            assert!(reply["system_fingerprint"].as_str().expect("a text").starts_with("fp_"));
        }
    }
    assert!(n_stopped < 24, "completions are of both kinds");
}

#[test]
fn scored_log_probabilities_are_the_recorded_ones() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    for (seed, prompt) in prompts(6).iter().enumerate() {
        for (temperature, top_p) in [(1.0, 1.0), (0.7, 1.0), (1.0, 0.9)] {
            let prompt_ids = TOKENIZER.encode(prompt).expect("any text");
            let sampler = Sampler::new(temperature as f32, top_p as f32).expect("a sampler");
            let recorded = local(&prompt_ids, sampler, seed as u64, 80);
            let sampling = json!({"temperature": temperature, "top_p": top_p, "seed": seed, "logprobs": 2});
            // As it is generated.
            let ask = json!({"prompt": prompt_ids, "max_tokens": 80, "return_token_ids": true});
            let said = &complete(&server, &super::with(sampling.clone(), &ask))["choices"][0];
            assert_eq!(numbers(&said["token_ids"]), recorded.ids);
            assert_eq!(log_probs(&said["logprobs"]["token_logprobs"]), recorded.log_probs);
            // As a given text.
            let ids = [&prompt_ids[..], &recorded.ids].concat();
            let ask = json!({"prompt": ids, "max_tokens": 0, "echo": true});
            let scored = &complete(&server, &super::with(sampling, &ask))["choices"][0];
            let scores = log_probs(&scored["logprobs"]["token_logprobs"]);
            assert_eq!(scores[prompt_ids.len()..], recorded.log_probs);
            assert!(scores[0].is_nan() && scores[1..].iter().all(|score| *score <= 0.0));
            assert_eq!(scores.len(), ids.len());
            assert_eq!(
                (&scored["text"], &scored["finish_reason"]),
                (&TOKENIZER.decode(&ids).into(), &"length".into())
            );
        }
    }
}

#[test]
fn an_echo_continues_what_it_scores() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let prompt = &prompts(1)[0];
    let prompt_ids = TOKENIZER.encode(prompt).expect("any text");
    let ask = json!({"prompt": prompt, "temperature": 0, "max_tokens": 9, "echo": true});
    let plain = complete(&server, &ask);
    let scored = complete(&server, &super::with(ask, &json!({"logprobs": 3})));
    assert_eq!(plain["choices"][0]["text"], scored["choices"][0]["text"]);
    assert_eq!(plain["choices"][0]["logprobs"], Value::Null);
    assert_eq!(plain["usage"], scored["usage"]);
    let logprobs = &scored["choices"][0]["logprobs"];
    let texts: Vec<&str> =
        logprobs["tokens"].as_array().expect("tokens").iter().filter_map(Value::as_str).collect();
    let n_said = local(&prompt_ids, Sampler::GREEDY, 0, 9).ids.len();
    assert_eq!(texts.len(), prompt_ids.len() + n_said);
    let (mut offset, mut n_whole) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(logprobs["text_offset"][at], offset);
        offset += text.chars().count();
        if at == 0 {
            assert_eq!(logprobs["top_logprobs"][0], Value::Null);
            continue;
        }
        let top = logprobs["top_logprobs"][at].as_object().expect("the most probable tokens");
        // Tokens that are parts of a character are written alike.
        if top.contains_key("\u{fffd}") || text.contains(char::REPLACEMENT_CHARACTER) {
            continue;
        }
        n_whole += 1;
        assert!((3..=4).contains(&top.len()), "{top:?}");
        assert_eq!(top[*text], logprobs["token_logprobs"][at]);
        let best = top.values().filter_map(Value::as_f64).fold(f64::MIN, f64::max);
        // At temperature 0 the completion has the most probable token, under the model's own distribution.
        assert!(at < prompt_ids.len() || (top[*text] == best && best < 0.0), "{top:?}");
    }
    assert!(n_whole > 10, "{n_whole} tokens with whole characters");
    assert!(texts.concat().starts_with(prompt.as_str()));
}

#[test]
fn a_seed_gives_the_same_text_whatever_else_is_generated() {
    let requests: Vec<Value> = prompts(8)
        .iter()
        .enumerate()
        .map(|(at, prompt)| {
            let (max_tokens, top_p) = (20 + 13 * (at % 5), [1.0, 0.9][at % 2]);
            json!({"prompt": prompt, "seed": at * 7, "top_p": top_p, "max_tokens": max_tokens, "logprobs": 1})
        })
        .collect();
    let alone: Vec<Value> = requests
        .iter()
        .map(|request| {
            let server = serving(model_config(&MODEL, &TOKENIZER));
            complete(&server, request)["choices"].clone()
        })
        .collect();
    for lanes in [1, 3, 8] {
        let server = serving(webshop_serve::ModelConfig { lanes, ..model_config(&MODEL, &TOKENIZER) });
        // Twice, so that lanes hold the tokens of other requests.
        for _ in 0..2 {
            let beside: Vec<Value> = thread::scope(|scope| {
                let ask = |request| complete(&server, request)["choices"].clone();
                let threads: Vec<_> =
                    requests.iter().map(|request| scope.spawn(move || ask(request))).collect();
                threads.into_iter().map(|thread| thread.join().expect("a reply")).collect()
            });
            assert_eq!(beside, alone, "{lanes} lanes");
        }
    }
    let mut texts: Vec<String> = alone.iter().map(|choices| choices[0]["text"].to_string()).collect();
    texts.dedup();
    assert_eq!(texts.len(), 8);
}

#[test]
fn without_a_seed_the_number_of_the_request_draws() {
    let texts = || -> Vec<Value> {
        let server = serving(model_config(&MODEL, &TOKENIZER));
        let ask = || {
            complete(&server, &json!({"prompt": "a lamp", "max_tokens": 30}))["choices"][0]["text"].clone()
        };
        (0..3).map(|_| ask()).collect()
    };
    let first = texts();
    assert_eq!(first, texts());
    assert!(first[0] != first[1] && first[1] != first[2]);
}

#[test]
fn a_stop_text_ends_the_completion() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let prompt = &prompts(1)[0];
    let ask = json!({"prompt": prompt, "seed": 4, "max_tokens": 60});
    let whole = complete(&server, &ask)["choices"][0]["text"].as_str().expect("a text").to_owned();
    let text: Vec<char> = whole.chars().collect();
    let is_whole = |part: &&[char]| !part.contains(&char::REPLACEMENT_CHARACTER);
    let stop: String = text[12..].windows(3).find(is_whole).expect("three whole characters").iter().collect();
    let stopped = complete(&server, &super::with(ask.clone(), &json!({"stop": stop})));
    let at = whole.find(&stop).expect("a part of the text");
    assert_eq!(stopped["choices"][0]["text"], whole[..at]);
    assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
    let never = complete(&server, &super::with(ask, &json!({"stop": ["no such text", "nor this"]})));
    assert_eq!(never["choices"][0]["text"], whole);
}
