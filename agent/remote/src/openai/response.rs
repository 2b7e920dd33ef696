//! Replies of a model server.
//!
//! A [`Reply`] is the message of the first choice, and why it ended. Unknown fields are ignored, because
//! servers add fields of their own. A [`ServerError`] is the reply to a refused request.

use serde::Deserialize;
use serde_json::{Map, Value};

use webshop_agent::PromptFormat;
use webshop_lm::StopReason;
use webshop_lm::chat::{Message, Role, ToolCall};

/// A completion.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    /// The text; empty if there are only calls.
    content: String,
    calls: Vec<Call>,
    /// Why it ended; `None` for unknown reasons.
    pub(super) stop: Option<StopReason>,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    id: Option<String>,
    name: String,
    /// An object, or the text of one.
    arguments: Value,
}

#[derive(Deserialize)]
struct Document {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: RawMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct RawMessage {
    content: Option<String>,
    tool_calls: Option<Vec<RawCall>>,
}

#[derive(Deserialize)]
struct RawCall {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Reply {
    /// Parses a reply.
    pub(super) fn read(text: &str) -> Result<Reply, String> {
        let document: Document =
            serde_json::from_str(text).map_err(|error| format!("not a chat completion: {error}"))?;
        let choice = document.choices.into_iter().next().ok_or("the chat completion has no choices")?;
        let stop = match choice.finish_reason.as_deref() {
            Some("stop" | "tool_calls" | "function_call") => Some(StopReason::EndOfTurn),
            Some("length") => Some(StopReason::Length),
            _ => None,
        };
        let calls = choice.message.tool_calls.unwrap_or_default().into_iter().map(|call| Call {
            id: call.id.filter(|id| !id.is_empty()),
            name: call.function.name,
            arguments: call.function.arguments,
        });
        Ok(Reply { content: choice.message.content.unwrap_or_default(), calls: calls.collect(), stop })
    }

    /// The message of turn `turn` in `prompt_format`. Only the first of several calls is kept, because only
    /// it is executed. A call whose arguments are not an object becomes text without effect.
    pub(super) fn message(self, prompt_format: PromptFormat, turn: usize) -> Message {
        let call = self.calls.into_iter().next().filter(|_| prompt_format.tools().is_some());
        let Some(Call { id, name, arguments }) = call else {
            return Message::text(Role::Assistant, self.content);
        };
        match arguments_of(&arguments) {
            Some(arguments) => {
                let id = id.unwrap_or_else(|| format!("call_{turn}"));
                let tool_calls = vec![ToolCall { id, name, arguments }];
                Message { tool_calls, ..Message::text(Role::Assistant, self.content) }
            }
            None => {
                let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
                Message::text(Role::Assistant, format!("{}{name}({arguments})", self.content))
            }
        }
    }
}

/// The arguments as an object; `None` if they are not one.
fn arguments_of(arguments: &Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// An error reply, in the common forms.
#[derive(Default)]
pub(super) struct ServerError {
    /// The message.
    pub(super) message: Option<String>,
    /// Its codes and types.
    names: Vec<String>,
}

impl ServerError {
    /// Parses the body of an error reply; empty if it is not JSON.
    pub(super) fn read(text: &str) -> ServerError {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return ServerError::default() };
        let error = match &value["error"] {
            Value::Null => &value,
            error => error,
        };
        let message = [error, &error["message"], &error["detail"]].into_iter().find_map(Value::as_str);
        let names = [&error["code"], &error["type"]].into_iter().filter_map(Value::as_str);
        ServerError { message: message.map(str::to_owned), names: names.map(str::to_owned).collect() }
    }

    /// Whether the chat exceeds the model's context: the codes of OpenAI and llama.cpp, and the messages of
    /// vLLM and SGLang, which have others for a prompt alone than for a prompt and its completion.
    pub(super) fn is_context_exceeded(&self) -> bool {
        let is_name =
            |name: &String| matches!(&**name, "context_length_exceeded" | "exceed_context_size_error");
        let messages = [
            "maximum context length",
            "longer than the maximum model length",
            "longer than the model's context length",
        ];
        let is_message = |message: &String| messages.iter().any(|part| message.contains(part));
        self.names.iter().any(is_name) || self.message.as_ref().is_some_and(is_message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(message: Value, finish_reason: &str) -> Reply {
        Reply::read(
            &json!({ "choices": [{ "message": message, "finish_reason": finish_reason }] }).to_string(),
        )
        .unwrap()
    }

    #[test]
    fn text_replies_become_text_messages() {
        let parsed = |finish_reason| reply(json!({ "role": "assistant", "content": "hm" }), finish_reason);
        assert_eq!(parsed("stop").stop, Some(StopReason::EndOfTurn));
        assert_eq!(parsed("length").stop, Some(StopReason::Length));
        assert_eq!(parsed("content_filter").stop, None);
        assert_eq!(parsed("stop").message(PromptFormat::Ragen, 0), Message::text(Role::Assistant, "hm"));
    }

    #[test]
    fn the_first_of_several_calls_is_kept() {
        let call = |id: Value, arguments: Value| json!({ "id": id, "type": "function", "function": { "name": "click", "arguments": arguments } });
        let parsed = |calls: Value| reply(json!({ "content": null, "tool_calls": calls }), "tool_calls");
        let two = parsed(json!([
            call(json!("a"), json!(r#"{"label": "x"}"#)),
            call(json!("b"), json!(r#"{"label": "y"}"#))
        ]));
        let message = two.message(PromptFormat::ToolCall, 3);
        let [made] = &message.tool_calls[..] else { panic!("one call: {message:?}") };
        assert_eq!((made.id.as_str(), &made.arguments["label"]), ("a", &json!("x")));
        let nameless =
            parsed(json!([call(Value::Null, json!({ "label": "x" }))])).message(PromptFormat::ToolCall, 3);
        assert_eq!(nameless.tool_calls[0].id, "call_3");
        let broken =
            parsed(json!([call(json!("a"), json!("{\"label\": "))])).message(PromptFormat::ToolCall, 3);
        assert_eq!(broken, Message::text(Role::Assistant, "click({\"label\": )"));
    }

    #[test]
    fn invalid_replies_are_errors() {
        for text in ["", "{", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"text":"x"}]}"#] {
            assert!(Reply::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn error_replies_of_all_servers_are_parsed() {
        let check = |text, message: Option<&str>, is_context_exceeded| {
            let error = ServerError::read(text);
            assert_eq!(
                (error.message.as_deref(), error.is_context_exceeded()),
                (message, is_context_exceeded),
                "{text}"
            );
        };
        check(r#"{"error":{"message":"no","type":"x","code":"y"}}"#, Some("no"), false);
        check(r#"{"error":"no"}"#, Some("no"), false);
        check(r#"{"object":"error","message":"no"}"#, Some("no"), false);
        check(r#"{"detail":"Not Found"}"#, Some("Not Found"), false);
        check(
            r#"{"error":{"message":"This model's maximum context length is 5"}}"#,
            Some("This model's maximum context length is 5"),
            true,
        );
        check(
            r#"{"message":"The decoder prompt (length 9) is longer than the maximum model length of 5."}"#,
            Some("The decoder prompt (length 9) is longer than the maximum model length of 5."),
            true,
        );
        check(
            r#"{"message":"The input (9 tokens) is longer than the model's context length (5 tokens)."}"#,
            Some("The input (9 tokens) is longer than the model's context length (5 tokens)."),
            true,
        );
        check(r#"{"error":{"code":"context_length_exceeded"}}"#, None, true);
        check("<h1>Bad gateway</h1>", None, false);
    }
}
