//! Requests that are refused or fail, in OpenAI's form.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;

use serde_json::{Value, json};
use webshop_lm::Qwen2;
use webshop_serve::ServeConfig;

use super::{CONTEXT, MODEL, TOKENIZER, chain, complete, model_config, serving, with};
use crate::common::client::{Reply, Served, config, served, wait_until};

/// Asserts that a reply is an error with this status, type, parameter, code and part of the message.
fn check(reply: &Reply, status: u16, [kind, param, code]: [&str; 3], part: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    let body = reply.json();
    let error = body["error"].as_object().expect("an error");
    assert_eq!(error.keys().collect::<Vec<_>>(), ["message", "type", "param", "code"]);
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    assert_eq!([text("type"), text("param"), text("code")], [kind, param, code], "{reply:?}");
    assert!(text("message").contains(part), "`{part}` in {reply:?}");
}

const INVALID: &str = "invalid_request_error";

#[test]
fn wrong_fields_are_named() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let chat = json!({"model": "webshop", "messages": [{"role": "user", "content": "a"}]});
    let text = json!({"model": "webshop", "prompt": "a"});
    for (base, path, more, param, part) in [
        (&text, "completions", json!({"n": 2}), "n", "should be 1"),
        (&text, "completions", json!({"temperature": 2.5}), "temperature", "less than or equal to 2"),
        (&text, "completions", json!({"temperature": "hot"}), "temperature", "valid number"),
        (&text, "completions", json!({"top_p": 0}), "top_p", "must be above 0"),
        (&text, "completions", json!({"seed": 0.5}), "seed", "valid integer"),
        (&text, "completions", json!({"stop": ["a", ""]}), "stop", "none of them empty"),
        (&text, "completions", json!({"stop": ["a", "b", "c", "d", "e"]}), "stop", "at most 4"),
        (&text, "completions", json!({"logprobs": 21}), "logprobs", "less than or equal to 20"),
        (&text, "completions", json!({"max_tokens": 0}), "max_tokens", "at least 1"),
        (&text, "completions", json!({"prompt": ["a", "b"]}), "prompt", "a request for each prompt"),
        (&text, "completions", json!({"prompt": []}), "prompt", "no tokens"),
        (&text, "completions", json!({"prompt": null}), "prompt", "should not be null"),
        (&text, "completions", json!({"prompt": [1, 100000]}), "prompt", "the token id `100000`"),
        (&text, "completions", json!({"model": 3}), "model", "valid string"),
        (&text, "completions", json!({"stream": 1}), "stream", "valid boolean"),
        (
            &text,
            "completions",
            json!({"stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
            "boolean",
        ),
        (&chat, "chat/completions", json!({"messages": []}), "messages", "at least one message"),
        (
            &chat,
            "chat/completions",
            json!({"messages": [{"content": "a"}]}),
            "messages[0].role",
            "Field required",
        ),
        (
            &chat,
            "chat/completions",
            json!({"messages": [{"role": "cook", "content": "a"}]}),
            "messages[0].role",
            "`user`",
        ),
        (
            &chat,
            "chat/completions",
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content",
            "list of text parts",
        ),
        (
            &chat,
            "chat/completions",
            json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}),
            "messages[0].tool_calls",
            "arguments",
        ),
        (&chat, "chat/completions", json!({"top_logprobs": 2}), "top_logprobs", "`logprobs` be true"),
        (&chat, "chat/completions", json!({"tools": [{"type": "function"}]}), "tools", "a `function`"),
        (
            &chat,
            "chat/completions",
            json!({"tools": [], "tool_choice": "required"}),
            "tool_choice",
            "cannot be forced",
        ),
    ] {
        let reply = server.post(&format!("/v1/{path}"), &with(base.clone(), &more));
        check(&reply, 400, [INVALID, param, ""], part);
    }
    check(&server.send("POST", "/v1/completions", "", "{"), 400, [INVALID, "", ""], "the body is not JSON");
    check(&server.send("POST", "/v1/completions", "", "[]"), 400, [INVALID, "", ""], "not a JSON object");
    // Fields that are not known are ignored.
    complete(&server, &with(text, &json!({"frequency_penalty": 0, "user": "x", "max_tokens": 1})));
}

#[test]
fn a_prompt_without_room_for_a_completion_is_too_long() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let prompt = |n_tokens: usize| json!({"model": "webshop", "prompt": vec![7; n_tokens], "max_tokens": 50, "seed": 1});
    let kinds = [INVALID, "prompt", "context_length_exceeded"];
    for n_tokens in [CONTEXT, CONTEXT + 1, 10 * CONTEXT] {
        let reply = server.post("/v1/completions", &prompt(n_tokens));
        check(&reply, 400, kinds, &format!("the prompt has {n_tokens} tokens"));
        let begin =
            format!("{{\"error\":{{\"message\":\"This model's maximum context length is {CONTEXT} tokens.");
        assert!(reply.body.starts_with(&begin), "{reply:?}");
    }
    // One token fits; the largest number is a limit and not a demand.
    let last = complete(&server, &prompt(CONTEXT - 1));
    assert_eq!(last["usage"]["completion_tokens"], 1);
    // A score needs no room.
    let score = json!({"echo": true, "max_tokens": 0, "logprobs": 0});
    complete(&server, &with(prompt(CONTEXT), &score));
    check(
        &server.post("/v1/completions", &with(prompt(CONTEXT + 1), &score)),
        400,
        kinds,
        "maximum context length",
    );
    let messages = json!([{"role": "user", "content": "word ".repeat(CONTEXT)}]);
    let reply = server.post("/v1/chat/completions", &json!({"model": "webshop", "messages": messages}));
    check(&reply, 400, [INVALID, "messages", "context_length_exceeded"], "maximum context length");
}

#[test]
fn models_are_listed_and_others_not_found() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let list = server.get("/v1/models").json();
    let model = &list["data"][0];
    assert_eq!(
        (&list["object"], &model["id"], &model["object"]),
        (&"list".into(), &"webshop".into(), &"model".into())
    );
    assert_eq!(model["max_model_len"], CONTEXT);
    assert_eq!(server.get("/v1/models/webshop").json(), *model);
    let not_found =
        |reply: Reply, part: &str| check(&reply, 404, [INVALID, "model", "model_not_found"], part);
    not_found(server.get("/v1/models/gpt"), "The model `gpt` does not exist");
    not_found(
        server.post("/v1/completions", &json!({"model": "gpt", "prompt": "a"})),
        "this server has `webshop`",
    );
    let none = served(config());
    assert_eq!(none.get("/v1/models").json(), json!({"object": "list", "data": []}));
    let request = json!({"model": "webshop", "messages": [{"role": "user", "content": "a"}]});
    not_found(none.post("/v1/chat/completions", &request), "started without `--model`");
}

#[test]
fn requests_that_no_handler_takes_are_refused_in_the_same_form() {
    let server = served(ServeConfig { max_body: 1000, ..config() });
    let unknown = server.post("/v1/embeddings", &json!({"model": "webshop", "input": "a"}));
    check(&unknown, 404, [INVALID, "", "no_such_address"], "nothing is at this address");
    let get = server.get("/v1/completions");
    check(&get, 405, [INVALID, "", "method_not_allowed"], "does not take this method");
    assert_eq!(get.header("allow"), Some("POST"));
    let large = server.post("/v1/completions", &json!({"model": "webshop", "prompt": "a".repeat(2000)}));
    check(&large, 413, [INVALID, "", "body_too_large"], "larger than the server's `--max-body`");
    // Other interfaces keep their own forms.
    assert_eq!(server.get("/agentgym/nothing").json(), json!({"detail": "Not Found"}));
    assert_eq!(server.get("/reset").body, "");
}

/// Sends a request for a stream and reads the status, with the connection left open.
fn open_stream(server: &Served, request: &Value) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(&server.address).expect("the server listens");
    let (body, host) = (with(request.clone(), &json!({"stream": true})).to_string(), &server.address);
    let n_bytes = body.len();
    let head =
        format!("POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {n_bytes}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).expect("an open connection");
    let mut line = String::new();
    BufReader::new(stream.try_clone().expect("a second handle")).read_line(&mut line).expect("a status line");
    (line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"), stream)
}

#[test]
fn a_full_queue_refuses_and_asks_to_try_again() {
    // A model that never ends, one lane, and one place in the queue.
    let endless = chain(&TOKENIZER, |id| id);
    let model = model_config(&endless, &TOKENIZER);
    let server = serving(webshop_serve::ModelConfig { lanes: 1, max_waiting: 1, ..model });
    let request = json!({"model": "webshop", "prompt": "a", "max_tokens": 30000});
    // One runs and one waits. The second is refused as long as the first has not left the queue.
    let mut open = Vec::new();
    wait_until("two requests are accepted", || {
        let (status, stream) = open_stream(&server, &request);
        match status {
            200 => open.push(stream),
            refused => assert_eq!(refused, 429),
        }
        open.len() == 2
    });
    let reply = server.post("/v1/completions", &request);
    check(&reply, 429, ["rate_limit_error", "", "rate_limit_exceeded"], "try again later");
    assert_eq!(reply.header("retry-after"), Some("1"));
    // Clients that leave make room.
    drop(open);
    let short = with(request, &json!({"max_tokens": 2}));
    let served = (0..6000).find_map(|_| {
        let reply = server.post("/v1/completions", &short);
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(served.expect("room in the end")["usage"]["completion_tokens"], 2);
}

#[test]
fn a_model_that_fails_says_so_and_goes_on() {
    let broken: Qwen2 = super::random(&TOKENIZER);
    for (name, weight) in broken.parameters() {
        if name == "model.norm.weight" {
            weight.set(&(weight.as_tensor() * f64::NAN).expect("a product")).expect("the same shape");
        }
    }
    let decoder = Arc::new(broken.into_decoder().expect("weights"));
    let server = serving(model_config(&decoder, &TOKENIZER));
    let request = json!({"model": "webshop", "prompt": "a"});
    for _ in 0..2 {
        check(&server.post("/v1/completions", &request), 500, ["server_error", "", ""], "the model failed");
    }
    let streamed = server.post("/v1/completions", &with(request, &json!({"stream": true})));
    assert!(streamed.body.starts_with("data: {\"error\":{\"message\":\"the model failed"), "{streamed:?}");
}
