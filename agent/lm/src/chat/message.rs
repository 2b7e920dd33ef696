//! Chat messages, as chat models and their servers exchange them.
//!
//! A [`Message`] has a [`Role`] and a text, and may call tools. It has two JSON forms, which differ in the
//! arguments of tool calls: a string of JSON for a server ([`Message::to_server`]), an object for a chat
//! template ([`Message::to_template`]).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions for the model.
    System,
    /// The user or the environment.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id that the result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments by name.
    pub arguments: Map<String, Value>,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text; may be empty with tool calls.
    pub content: String,
    /// Tool calls of a [`Role::Assistant`].
    pub tool_calls: Vec<ToolCall>,
    /// The id of the call whose result a [`Role::Tool`] message holds.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of text without tool calls.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The result of the tool call `id`.
    pub fn tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::text(Role::Tool, content) }
    }

    /// The JSON for a chat template: arguments as objects.
    pub fn to_template(&self) -> Value {
        self.to_json(|arguments| Value::Object(arguments.clone()))
    }

    /// The JSON for a server with OpenAI's interface: arguments as strings.
    pub fn to_server(&self) -> Value {
        self.to_json(|arguments| Value::String(Value::Object(arguments.clone()).to_string()))
    }

    fn to_json(&self, arguments: impl Fn(&Map<String, Value>) -> Value) -> Value {
        let mut written = json!({ "role": self.role, "content": self.content });
        if !self.tool_calls.is_empty() {
            let call = |call: &ToolCall| {
                let function = json!({ "name": call.name, "arguments": arguments(&call.arguments) });
                json!({ "id": call.id, "type": "function", "function": function })
            };
            written["tool_calls"] = self.tool_calls.iter().map(call).collect();
        }
        if let Some(id) = &self.tool_call_id {
            written["tool_call_id"] = json!(id);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_differ_in_the_arguments() {
        let arguments = json!({ "label": "a \"b\"" }).as_object().cloned().unwrap();
        let call = ToolCall { id: "call_0".into(), name: "click".into(), arguments };
        let message = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") };
        let with = |arguments: Value| {
            let function = json!({ "name": "click", "arguments": arguments });
            let call = json!({ "id": "call_0", "type": "function", "function": function });
            json!({ "role": "assistant", "content": "", "tool_calls": [call] })
        };
        assert_eq!(message.to_template(), with(json!({ "label": "a \"b\"" })));
        assert_eq!(message.to_server(), with(json!(r#"{"label":"a \"b\""}"#)));
        let result = json!({ "role": "tool", "content": "ok", "tool_call_id": "call_0" });
        assert_eq!(Message::tool_result("call_0", "ok").to_server(), result);
    }
}
