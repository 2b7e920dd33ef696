//! What a model server answers with.
//!
//! A [`Reply`] is the message of its first choice, and why it ended. It is read strictly where an episode depends on it and
//! loosely elsewhere, as servers add fields of their own. A [`ServerError`] is what stands in its place.

use serde::Deserialize;
use serde_json::{Map, Value};

use webshop_lm::{Message, Role, ToolCall};
use webshop_agent::PromptFormat;
use webshop_lm::StopReason;

/// What the model said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    /// Its text; empty where calls are all there is.
    content: String,
    calls: Vec<Call>,
    /// Why it ended; none for reasons that have no name here.
    pub stop: Option<StopReason>,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    id: Option<String>,
    name: String,
    /// An object, or the text of what should have been one.
    arguments: Value,
}

#[derive(Deserialize)]
struct Document {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
    tool_calls: Option<Vec<SaidCall>>,
}

#[derive(Deserialize)]
struct SaidCall {
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
    /// Reads an answer.
    pub fn read(text: &str) -> Result<Reply, String> {
        let document: Document =
            serde_json::from_str(text).map_err(|error| format!("no chat completion, {error}"))?;
        let choice = document.choices.into_iter().next().ok_or("a chat completion without choices")?;
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

    /// The message as an episode in `prompt format` goes on from it after so many turns. Of several calls the first one stands,
    /// as it is the one that is made; a call whose arguments are no object stands in the text, where it means nothing.
    pub fn message(self, prompt_format: PromptFormat, turn: usize) -> Message {
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

/// The arguments as the object that they are or whose text they are.
fn arguments_of(arguments: &Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Object(arguments) => Some(arguments.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// What a server says of an error, in the forms in use.
#[derive(Default)]
pub(super) struct ServerError {
    /// In its own words.
    pub message: Option<String>,
    /// What it calls the error.
    names: Vec<String>,
}

impl ServerError {
    /// Reads what came with an error, whatever it is.
    pub fn read(text: &str) -> ServerError {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return ServerError::default() };
        let error = match &value["error"] {
            Value::Null => &value,
            error => error,
        };
        let told = [error, &error["message"], &error["detail"]].into_iter().find_map(Value::as_str);
        let names = [&error["code"], &error["type"]].into_iter().filter_map(Value::as_str);
        ServerError { message: told.map(str::to_owned), names: names.map(str::to_owned).collect() }
    }

    /// Whether the chat is longer than the model can read: OpenAI's name of it, llama.cpp's, and the words that vLLM
    /// and SGLang have in common.
    pub fn is_about_length(&self) -> bool {
        let is_name =
            |name: &String| matches!(&**name, "context_length_exceeded" | "exceed_context_size_error");
        let says = |message: &String| message.contains("maximum context length");
        self.names.iter().any(is_name) || self.message.as_ref().is_some_and(says)
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
    fn texts_are_texts() {
        let said = |finish_reason| reply(json!({ "role": "assistant", "content": "hm" }), finish_reason);
        assert_eq!(said("stop").stop, Some(StopReason::EndOfTurn));
        assert_eq!(said("length").stop, Some(StopReason::Length));
        assert_eq!(said("content_filter").stop, None);
        assert_eq!(said("stop").message(PromptFormat::Ragen, 0), Message::text(Role::Assistant, "hm"));
    }

    #[test]
    fn of_several_calls_the_first_stands() {
        let call = |id: Value, arguments: Value| json!({ "id": id, "type": "function", "function": { "name": "click", "arguments": arguments } });
        let said = |calls: Value| reply(json!({ "content": null, "tool_calls": calls }), "tool_calls");
        let two = said(json!([
            call(json!("a"), json!(r#"{"label": "x"}"#)),
            call(json!("b"), json!(r#"{"label": "y"}"#))
        ]));
        let message = two.message(PromptFormat::ToolCall, 3);
        let [made] = &message.tool_calls[..] else { panic!("one call: {message:?}") };
        assert_eq!((made.id.as_str(), &made.arguments["label"]), ("a", &json!("x")));
        let nameless =
            said(json!([call(Value::Null, json!({ "label": "x" }))])).message(PromptFormat::ToolCall, 3);
        assert_eq!(nameless.tool_calls[0].id, "call_3");
        let broken = said(json!([call(json!("a"), json!("{\"label\": "))])).message(PromptFormat::ToolCall, 3);
        assert_eq!(broken, Message::text(Role::Assistant, "click({\"label\": )"));
    }

    #[test]
    fn what_is_no_completion_is_refused() {
        for text in ["", "{", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":[{"text":"x"}]}"#] {
            assert!(Reply::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_are_read_in_the_forms_in_use() {
        let check = |text, message: Option<&str>, is_about_length| {
            let error = ServerError::read(text);
            assert_eq!(
                (error.message.as_deref(), error.is_about_length()),
                (message, is_about_length),
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
        check(r#"{"error":{"code":"context_length_exceeded"}}"#, None, true);
        check("<h1>Bad gateway</h1>", None, false);
    }
}
