//! Text completions, token by token beside our own generator.

use std::thread;

use serde_json::{Value, json};
use webshop_lm::{BpeTokenizer, Sampler, StopReason};

use super::{
    MODEL, TOKENIZER, chain, complete, local, local_of, log_probs, model_config, numbers, prompts, serving,
};

#[test]
fn greedy_completions_are_the_generators_token_for_token() {
    let end = TOKENIZER.special_id("<|im_end|>").expect("a token of ChatML");
    let n_ids = TOKENIZER.vocab_size() as u32;
    // Its completions stop after three tokens at most, those of the random weights do not.
    let brief = chain(&TOKENIZER, |id| if id.is_multiple_of(3) { end } else { (id + 1) % n_ids });
    let servers = [&MODEL, &brief].map(|model| (model, serving(model_config(model, &TOKENIZER))));
    let mut n_stopped = 0;
    for (prompt, (model, server)) in
        prompts(12).into_iter().flat_map(|prompt| servers.iter().map(move |server| (prompt.clone(), server)))
    {
        let prompt_ids = TOKENIZER.encode(&prompt).expect("any text");
        let expected = local_of(model, &prompt_ids, Sampler::GREEDY, 0, 40);
        let ask = json!({"temperature": 0, "max_tokens": 40, "return_token_ids": true});
        let by_text = complete(server, &super::with(ask.clone(), &json!({"prompt": prompt})));
        let by_ids = complete(server, &super::with(ask, &json!({"prompt": prompt_ids})));
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
    assert!((1..48).contains(&n_stopped), "completions are of both kinds: {n_stopped} of 48 stopped");
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
    let mut n_whole = 0;
    for (at, text) in texts.iter().enumerate() {
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

/// The text of a choice from the offset of each of its tokens on.
fn rests(choice: &Value) -> Vec<String> {
    let text: Vec<char> = choice["text"].as_str().expect("a text").chars().collect();
    let offsets = numbers(&choice["logprobs"]["text_offset"]);
    offsets.iter().map(|&offset| text[offset as usize..].iter().collect()).collect()
}

#[test]
fn a_completion_continues_the_text_of_its_prompt() {
    // This tokenizer's decoder drops the space before the first word of a text.
    let tokenizer = BpeTokenizer::train(["a lamp"; 2], 300, &[]).expect("room for all bytes");
    let server = serving(model_config(&chain(&tokenizer, |id| id), &tokenizer));
    let ids = tokenizer.encode("a lamp").expect("any text");
    for prompt in [json!("a lamp"), json!(ids)] {
        let ask = json!({"prompt": prompt, "temperature": 0, "max_tokens": 3, "logprobs": 0});
        let echoed = &complete(&server, &super::with(ask.clone(), &json!({"echo": true})))["choices"][0];
        assert_eq!(echoed["text"], "a lamp lamp lamp lamp");
        assert_eq!(echoed["logprobs"]["text_offset"], json!([0, 1, 6, 11, 16]));
        assert_eq!(echoed["logprobs"]["tokens"], json!([" a", " lamp", " lamp", " lamp", " lamp"]));
        let lamps = [" lamp lamp lamp lamp", " lamp lamp lamp", " lamp lamp", " lamp"];
        assert_eq!(rests(echoed)[1..], lamps);
        let alone = &complete(&server, &ask)["choices"][0];
        assert_eq!(
            (alone["text"].as_str(), &rests(alone)[..]),
            (Some(lamps[1]), &lamps.map(str::to_owned)[1..])
        );
        // Where the tokens are drawn one by one, too.
        let streamed = super::with(ask, &json!({"model": "webshop", "stream": true, "echo": true}));
        let events = super::streams::events(&server.post("/v1/completions", &streamed));
        let text = |event: &Value| event["choices"][0]["text"].as_str().expect("a text").to_owned();
        assert_eq!(events.iter().map(text).collect::<String>(), "a lamp lamp lamp lamp");
        assert_eq!(events[1]["choices"][0]["logprobs"]["text_offset"], json!([11]));
    }
    // The echo of a text is the text, also where the tokenizer spells it in lower case.
    let ask = json!({"prompt": "( A lamp", "max_tokens": 1, "logprobs": 0, "echo": true, "temperature": 0});
    let echoed = &complete(&server, &ask)["choices"][0];
    assert_eq!(echoed["text"], "( A lamp lamp");
    assert_eq!(rests(echoed).last().map(String::as_str), Some(" lamp"));
}

#[test]
fn every_offset_leads_to_its_token() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let mut n_whole = 0;
    for (seed, prompt) in prompts(5).iter().enumerate() {
        for echo in [false, true] {
            let ask = json!({"prompt": prompt, "seed": seed, "max_tokens": 40, "logprobs": 0, "echo": echo});
            let choice = &complete(&server, &ask)["choices"][0];
            let tokens = choice["logprobs"]["tokens"].as_array().expect("tokens").iter();
            for (rest, token) in rests(choice).iter().zip(tokens.filter_map(Value::as_str)) {
                // Several tokens may make one character, and the token that ends the turn has no text.
                if token.contains(char::REPLACEMENT_CHARACTER) || token == "<|im_end|>" {
                    continue;
                }
                assert!(rest.starts_with(token), "{token:?} in {rest:?}");
                n_whole += 1;
            }
        }
    }
    assert!(n_whole > 100, "{n_whole} tokens with whole characters");
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
