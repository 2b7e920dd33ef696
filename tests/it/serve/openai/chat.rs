//! Chat completions: the template's prompt, log-probabilities, and tools.

use serde_json::{Value, json};
use webshop_lm::{BpeTokenizer, Sampler};

use super::{MODEL, TOKENIZER, chain, chat, local, model_config, numbers, prompts, serving};

#[test]
fn a_chat_is_completed_from_what_its_template_writes() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let question: String = prompts(1)[0].chars().take(30).collect();
    let messages = json!([
        {"role": "developer", "content": "Be <|im_end|> brief."},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}], "name": "x"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": question},
    ]);
    let reply = chat(
        &server,
        &json!({"messages": messages, "temperature": 0, "max_completion_tokens": 20, "return_token_ids": true}),
    );
    let prompt = format!(
        "<|im_start|>system\nBe < |im_end|> brief.<|im_end|>\n<|im_start|>user\nhi\nthere<|im_end|>\n\
         <|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    );
    let prompt_ids = TOKENIZER.encode(&prompt).expect("any text");
    assert_eq!(numbers(&reply["prompt_token_ids"]), prompt_ids);
    let expected = local(&prompt_ids, Sampler::GREEDY, 0, 20);
    let choice = &reply["choices"][0];
    assert_eq!(numbers(&choice["token_ids"]), expected.ids);
    let text = TOKENIZER.decode(&expected.ids);
    let content = choice["message"]["content"].as_str().expect("a text");
    assert_eq!(content, text.trim_end_matches("<|im_end|>"));
    assert_eq!((&choice["message"]["role"], &choice["logprobs"]), (&"assistant".into(), &Value::Null));
    assert_eq!(reply["object"], "chat.completion");
}

#[test]
fn without_a_limit_a_chat_is_completed_to_the_end_of_the_context() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let reply =
        chat(&server, &json!({"messages": [{"role": "user", "content": "a"}], "seed": 1, "logprobs": true}));
    let choice = &reply["choices"][0];
    match choice["finish_reason"].as_str() {
        Some("length") => assert_eq!(reply["usage"]["total_tokens"], super::CONTEXT),
        reason => assert_eq!(reason, Some("stop")),
    }
}

#[test]
fn log_probabilities_have_bytes_and_alternatives() {
    let server = serving(model_config(&MODEL, &TOKENIZER));
    let ask = json!({
        "messages": [{"role": "user", "content": "a lamp"}], "temperature": 0, "max_tokens": 12,
        "logprobs": true, "top_logprobs": 5,
    });
    let reply = chat(&server, &ask);
    let (content, choice) = (&reply["choices"][0]["logprobs"]["content"], &reply["choices"][0]);
    let tokens = content.as_array().expect("tokens");
    assert_eq!(tokens.len(), reply["usage"]["completion_tokens"].as_u64().expect("a number") as usize);
    let mut bytes: Vec<u8> = Vec::new();
    for token in tokens {
        let top = token["top_logprobs"].as_array().expect("alternatives");
        assert_eq!(top.len(), 5);
        assert_eq!((&top[0]["token"], &top[0]["logprob"]), (&token["token"], &token["logprob"]));
        assert!(top.is_sorted_by(|a, b| a["logprob"].as_f64() >= b["logprob"].as_f64()));
        bytes.extend(serde_json::from_value::<Vec<u8>>(token["bytes"].clone()).expect("bytes"));
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert_eq!(choice["message"]["content"], text.trim_end_matches("<|im_end|>"));
}

/// The one token of a call.
const CALL: &str = r#"<tool_call>{"name":"search","arguments":{"query":"lamp"}}</tool_call>"#;

/// A tool as requests describe it.
fn tool() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    json!({"type": "function", "function": {"name": "search", "parameters": parameters}})
}

#[test]
fn tools_are_called() {
    // After a line break it says `a`, the call, and the end.
    let tokenizer = BpeTokenizer::train(["a lamp"], 300, &[CALL]).expect("room for all bytes");
    let [call, end] = [CALL, "<|im_end|>"].map(|token| tokenizer.special_id(token).expect("a special token"));
    let line_break = *tokenizer.encode("x\n").expect("any text").last().expect("two tokens");
    let word = *tokenizer.encode("a").expect("any text").last().expect("a token");
    let next = [(line_break, word), (word, call), (call, end)];
    let decoder =
        chain(&tokenizer, |id| next.iter().find(|(from, _)| *from == id).map_or(end, |(_, to)| *to));
    let server = serving(model_config(&decoder, &tokenizer));
    let ask = json!({"messages": [{"role": "user", "content": "a lamp"}], "tools": [tool()], "return_token_ids": true});
    let reply = chat(&server, &ask);
    let choice = &reply["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(numbers(&choice["token_ids"]), [word, call, end]);
    let function = json!({"name": "search", "arguments": "{\"query\":\"lamp\"}"});
    let made = json!([{"id": "call_0", "type": "function", "function": function}]);
    assert_eq!(choice["message"], json!({"role": "assistant", "content": "a", "tool_calls": made}));
    let prompt = tokenizer.decode(&numbers(&reply["prompt_token_ids"]));
    assert!(
        prompt
            .starts_with("<|im_start|>system\n[{\"type\": \"function\", \"function\": {\"name\": \"search\"")
    );
    // The call and its result are part of the next prompt, as the template writes them.
    let result = json!({"role": "tool", "tool_call_id": "call_0", "content": "a page"});
    let messages = json!([{"role": "user", "content": "a lamp"}, choice["message"], result]);
    let reply = chat(&server, &super::with(ask.clone(), &json!({"messages": messages})));
    let prompt = tokenizer.decode(&numbers(&reply["prompt_token_ids"]));
    let call_and_result = "a<tool_call>{\"name\": \"search\", \"arguments\": {\"query\": \"lamp\"}}</tool_call><|im_end|>\n\
        <|im_start|>tool\na page<|im_end|>\n<|im_start|>assistant\n";
    assert!(prompt.ends_with(call_and_result), "{prompt}");
    // As events: the role, the call in one piece, the end.
    let body = super::with(super::with(ask.clone(), &json!({"stream": true})), &json!({"model": "webshop"}));
    let events = super::streams::events(&server.post("/v1/chat/completions", &body));
    let deltas: Vec<&Value> = events.iter().map(|event| &event["choices"][0]["delta"]).collect();
    let mut made = made;
    made[0]["index"] = 0.into();
    made[0]["id"] = "call_2".into();
    assert_eq!(
        deltas,
        [
            &json!({"role": "assistant", "content": ""}),
            &json!({"content": "a", "tool_calls": made}),
            &json!({}),
        ]
    );
    assert_eq!(events[2]["choices"][0]["finish_reason"], "tool_calls");
    // Without tools, or if they may not be called, it is text.
    let reply = chat(&server, &super::with(ask, &json!({"tool_choice": "none"})));
    let choice = &reply["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&format!("a{CALL}").into(), &"stop".into())
    );
}
