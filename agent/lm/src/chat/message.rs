//! Messages between a customer and a shop, as chat models and their servers exchange them.
//!
//! A [`Message`] has a [`Role`] and a text, and may call tools. Its two written forms differ in one point
//! only: to a server ([`Message::to_server`]) the arguments of a call are a string of JSON, in a chat
//! template ([`Message::to_template`]) they are an object. What is said in them is a [`webshop_agent::prompt_format`]'s
//! business.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Whoever sets the task.
    System,
    /// The shop.
    User,
    /// The customer: the model.
    Assistant,
    /// The shop, where it answers a call.
    Tool,
}

/// A tool that the model wants to use.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// By which the answer names the call.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With what.
    pub arguments: Map<String, Value>,
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; empty where a call is all there is.
    pub content: String,
    /// Tools that an [`Role::Assistant`] calls.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a [`Role::Tool`] answers.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message that is nothing but text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// The answer to the call `id`.
    pub fn answer(id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(id.into()), ..Self::text(Role::Tool, content) }
    }

    /// As a chat template reads it.
    pub fn to_template(&self) -> Value {
        self.written(|arguments| Value::Object(arguments.clone()))
    }

    /// As a server with the interface of OpenAI's reads it.
    pub fn to_server(&self) -> Value {
        self.written(|arguments| Value::String(Value::Object(arguments.clone()).to_string()))
    }

    fn written(&self, arguments: impl Fn(&Map<String, Value>) -> Value) -> Value {
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
        let answer = json!({ "role": "tool", "content": "ok", "tool_call_id": "call_0" });
        assert_eq!(Message::answer("call_0", "ok").to_server(), answer);
    }
}
