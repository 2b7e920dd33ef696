//! `POST /v1/chat/completions`.
//!
//! With `tools`, the prompt has the template's own list of them, and the completion is read by the prompt format
//! `tool-call`. A streamed one is then sent in one piece, because a text may turn out to be a call.

use std::sync::Arc;

use axum::response::Response;
use serde_json::{Value, json};
use webshop_agent::PromptFormat;
use webshop_lm::BpeTokenizer;
use webshop_lm::chat::{Message, Role};

use super::error::ApiError;
use super::options::{MAX_TOP, Options, max_tokens, refuse};
use super::reply::{Chunks, Head, ids, stream, usage};
use super::{logprobs, messages};
use crate::fields::Fields;
use crate::http;
use crate::model::{Finish, Generation, Model, Piece};

/// A request for a chat completion.
#[derive(Debug)]
pub(super) struct ChatRequest {
    messages: Vec<Message>,
    /// `None` if the completion cannot call any.
    tools: Option<Vec<Value>>,
    options: Options,
}

impl ChatRequest {
    /// Reads the fields of a request.
    pub(super) fn read(fields: &mut Fields<'_>) -> Option<ChatRequest> {
        let messages = messages::read(fields);
        let options = Options::read(fields);
        let max_tokens =
            max_tokens(fields, "max_completion_tokens", 1).or_else(|| max_tokens(fields, "max_tokens", 1));
        let has_logprobs = fields.boolean("logprobs").unwrap_or(false);
        let n_top = fields.unsigned("top_logprobs", MAX_TOP);
        if n_top.is_some_and(|n_top| n_top > 0) && !has_logprobs {
            refuse(fields, "top_logprobs", "Input should be left out, or `logprobs` be true");
        }
        let tools = tools(fields);
        let (messages, mut options) = (messages?, options?);
        options.settings.max_tokens = max_tokens;
        options.settings.n_top = has_logprobs.then_some(n_top.unwrap_or(0) as usize);
        Some(ChatRequest { messages, tools, options })
    }

    /// Begins the completion.
    pub(super) fn begin(&self, model: &Arc<Model>) -> Result<Generation, ApiError> {
        if self.tools.is_some() && !model.has_tools() {
            let message = format!("The prompts of the model `{}` have no place for tools.", model.name);
            return Err(ApiError::invalid(message, Some("tools")));
        }
        let begun = model
            .encode_chat(&self.messages, self.tools.clone())
            .and_then(|prompt_ids| model.generate(prompt_ids, self.options.settings.clone()));
        begun.map_err(|rejection| ApiError::rejected(&rejection, "messages"))
    }

    /// Answers with the completion.
    pub(super) async fn respond(self, mut generation: Generation) -> Result<Response, ApiError> {
        let head = Head::new("chatcmpl", &generation);
        let Options { includes_usage, streams, .. } = self.options;
        let mut parts = ChatChunks::new(&self, &generation);
        if streams {
            return Ok(stream(head, generation, parts, includes_usage));
        }
        let (piece, finish) = generation.rest().await?;
        let message = parts.message(&piece.text);
        let mut choice = json!({
            "index": 0, "message": server_message(&message), "logprobs": parts.logprobs(&piece),
            "finish_reason": parts.finish_name(finish),
        });
        if parts.returns_ids {
            choice["token_ids"] = ids(&piece.tokens);
        }
        let mut document = head.document("chat.completion", &[choice]);
        document["usage"] = usage(generation.prompt_ids.len(), piece.tokens.len());
        if parts.returns_ids {
            document["prompt_token_ids"] = json!(generation.prompt_ids);
        }
        Ok(http::ok(&document))
    }
}

/// The field `tools`; `None` if it is empty, or `tool_choice` is `none`.
fn tools(fields: &mut Fields<'_>) -> Option<Vec<Value>> {
    let is_function = |value: &Value| value["type"] == "function" && value["function"]["name"].is_string();
    let tools = fields.list("tools", "functions with a `type`, and a `function` with a `name`", |value| {
        is_function(value).then(|| value.clone())
    });
    let expected = "`auto` or `none`: other calls cannot be forced";
    let may_call = fields.parsed("tool_choice", expected, |choice| match choice {
        "auto" => Some(true),
        "none" => Some(false),
        _ => None,
    });
    tools.filter(|tools| !tools.is_empty() && may_call != Some(false))
}

/// A message as a server sends it. Without a text, one that calls a tool has no content.
fn server_message(message: &Message) -> Value {
    let mut sent = message.to_server();
    if message.content.is_empty() && !message.tool_calls.is_empty() {
        sent["content"] = Value::Null;
    }
    sent
}

/// Builds the chunks of a chat completion from its parts.
struct ChatChunks {
    tokenizer: Arc<BpeTokenizer>,
    /// The id of a call, if the completion may be one.
    call_id: Option<String>,
    has_logprobs: bool,
    returns_ids: bool,
    /// The tokens of the prompt; `None` once a chunk has held them.
    prompt_ids: Option<Vec<u32>>,
    has_begun: bool,
    has_called: bool,
}

impl ChatChunks {
    fn new(request: &ChatRequest, generation: &Generation) -> ChatChunks {
        let returns_ids = request.options.returns_ids;
        ChatChunks {
            tokenizer: Arc::clone(&generation.model().tokenizer),
            call_id: request.tools.as_ref().map(|_| format!("call_{}", generation.ordinal)),
            has_logprobs: request.options.settings.n_top.is_some(),
            returns_ids,
            prompt_ids: returns_ids.then(|| generation.prompt_ids.clone()),
            has_begun: false,
            has_called: false,
        }
    }

    /// The message of a whole completion.
    fn message(&mut self, text: &str) -> Message {
        let message = match &self.call_id {
            Some(id) => PromptFormat::ToolCall.completion_message(text, id),
            None => Message::text(Role::Assistant, text),
        };
        self.has_called = !message.tool_calls.is_empty();
        message
    }

    fn finish_name(&self, finish: Finish) -> &'static str {
        if self.has_called { "tool_calls" } else { finish.name() }
    }

    fn logprobs(&self, piece: &Piece) -> Value {
        if self.has_logprobs { logprobs::of_chat(&self.tokenizer, &piece.tokens) } else { Value::Null }
    }

    /// What a piece adds to the message.
    fn delta(&mut self, text: &str) -> Value {
        if self.call_id.is_none() {
            return json!({ "content": text });
        }
        let mut delta = server_message(&self.message(text));
        if let Value::Object(delta) = &mut delta {
            delta.shift_remove("role");
        }
        let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
        for (idx, call) in calls.into_iter().flatten().enumerate() {
            call["index"] = json!(idx);
        }
        delta
    }
}

impl Chunks for ChatChunks {
    const OBJECT: &'static str = "chat.completion.chunk";

    fn needs_whole(&self) -> bool {
        self.call_id.is_some()
    }

    fn of_piece(&mut self, piece: Piece) -> Vec<Value> {
        let mut choices = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            let delta = json!({"role": "assistant", "content": ""});
            let mut first = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
            if let Some(prompt_ids) = self.prompt_ids.take() {
                first["prompt_token_ids"] = json!(prompt_ids);
            }
            choices.push(first);
        }
        let reports_tokens = !piece.tokens.is_empty() && (self.has_logprobs || self.returns_ids);
        if !piece.text.is_empty() || reports_tokens {
            let (delta, logprobs) = (self.delta(&piece.text), self.logprobs(&piece));
            let mut next = json!({"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": null});
            if self.returns_ids {
                next["token_ids"] = ids(&piece.tokens);
            }
            choices.push(next);
        }
        choices
    }

    fn of_finish(&mut self, finish: Finish) -> Value {
        json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": self.finish_name(finish)})
    }
}
