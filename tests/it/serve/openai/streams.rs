//! Streamed completions.

use serde_json::{Value, json};

use super::{MODEL, TOKENIZER, model_config, prompts, serving, with};
use crate::common::client::{Reply, Served};

/// The documents of a streamed reply, which ends in order.
pub(super) fn events(reply: &Reply) -> Vec<Value> {
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")), "{reply:?}");
    let mut data: Vec<&str> =
        reply.body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{reply:?}");
    data.into_iter().map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// The reply as a whole, and its events with usage.
fn both(server: &Served, path: &str, request: &Value) -> (Value, Vec<Value>) {
    let whole = server.post(path, request).json();
    let streamed = with(request.clone(), &json!({"stream": true, "stream_options": {"include_usage": true}}));
    let mut events = events(&server.post(path, &streamed));
    let last = events.pop().expect("an event with the usage");
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &whole["usage"]));
    for event in &events {
        assert_eq!((&event["usage"], event["choices"].as_array().map(Vec::len)), (&Value::Null, Some(1)));
        assert_eq!((&event["id"], &event["object"]), (&events[0]["id"], &events[0]["object"]));
    }
    (whole, events)
}

/// The texts at `path` of all events, joined.
fn joined(events: &[Value], path: &str) -> String {
    events.iter().filter_map(|event| event.pointer(path)?.as_str()).collect()
}

/// The lists at `path` of all events, as one.
fn listed(events: &[Value], path: &str) -> Vec<Value> {
    events.iter().filter_map(|event| event.pointer(path)?.as_array()).flatten().cloned().collect()
}

#[test]
fn the_pieces_of_a_text_join_to_the_whole() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    for (seed, prompt) in prompts(5).iter().enumerate() {
        for more in [
            json!({"max_tokens": 50}),
            json!({"max_tokens": 50, "logprobs": 2, "return_token_ids": true}),
            json!({"max_tokens": 20, "logprobs": 0, "echo": true}),
            json!({"max_tokens": 0, "logprobs": 1, "echo": true}),
            json!({"max_tokens": 50, "stop": ["e", "o", " t"]}),
        ] {
            let request = with(json!({"model": "webshop", "prompt": prompt, "seed": seed}), &more);
            let (whole, events) = both(&server, "/v1/completions", &request);
            let choice = &whole["choices"][0];
            assert_eq!(
                joined(&events, "/choices/0/text"),
                choice["text"].as_str().expect("a text"),
                "{more}"
            );
            let (last, pieces) = events.split_last().expect("an end");
            assert_eq!(last["choices"][0]["finish_reason"], choice["finish_reason"]);
            assert!(pieces.iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
            for field in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
                let pointer = format!("/choices/0/logprobs/{field}");
                let whole = choice["logprobs"][field].as_array().cloned().unwrap_or_default();
                assert_eq!(listed(&events, &pointer), whole, "{more}: {field}");
            }
            let ids = choice["token_ids"].as_array().cloned().unwrap_or_default();
            assert_eq!(listed(&events, "/choices/0/token_ids"), ids);
        }
    }
}

#[test]
fn the_pieces_of_a_chat_join_to_the_whole() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let mut n_pieces = 0;
    for more in [
        json!({}),
        json!({"logprobs": true, "top_logprobs": 2, "return_token_ids": true}),
        json!({"stop": "a"}),
    ] {
        let messages =
            json!([{"role": "user", "content": prompts(1)[0].chars().take(40).collect::<String>()}]);
        let request = json!({"model": "webshop", "messages": messages, "seed": 9, "max_tokens": 60});
        let (whole, events) = both(&server, "/v1/chat/completions", &with(request, &more));
        let (choice, first) = (&whole["choices"][0], &events[0]["choices"][0]);
        assert_eq!(first["delta"], json!({"role": "assistant", "content": ""}));
        assert_eq!(first["prompt_token_ids"], whole["prompt_token_ids"]);
        assert_eq!(
            joined(&events, "/choices/0/delta/content"),
            choice["message"]["content"].as_str().expect("a text")
        );
        assert_eq!(
            joined(&events, "/choices/0/finish_reason"),
            choice["finish_reason"].as_str().expect("a reason")
        );
        let logprobs = choice["logprobs"]["content"].as_array().cloned().unwrap_or_default();
        assert_eq!(listed(&events, "/choices/0/logprobs/content"), logprobs);
        n_pieces += events.len();
    }
    assert!(n_pieces > 20, "{n_pieces} events are more than one a reply");
}
