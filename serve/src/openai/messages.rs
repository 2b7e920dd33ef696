//! The messages of a chat request.

use serde_json::{Map, Value};
use webshop_lm::chat::{Message, Role, ToolCall};

use super::options::refuse;
use crate::fields::Fields;

/// What `content` may be.
const CONTENT: &str = "Input should be a string or a list of text parts";

/// Reads the field `messages`, at least one.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<Vec<Message>> {
    let objects = fields.required("messages", |fields, name| {
        fields.list(name, "objects", |value| value.as_object().cloned())
    })?;
    if objects.is_empty() {
        refuse(fields, "messages", "Input should have at least one message");
    }
    let read = objects.iter().enumerate().map(|(idx, object)| {
        let mut below = fields.below(&format!("messages[{idx}]"), object);
        let message = message(&mut below);
        fields.add(below.into_errors());
        message
    });
    // All of them, so that every wrong field is named.
    read.collect::<Vec<_>>().into_iter().collect()
}

fn message(fields: &mut Fields<'_>) -> Option<Message> {
    let role = fields.required("role", |fields, name| {
        fields.parsed(name, "`system`, `developer`, `user`, `assistant` or `tool`", |role| match role {
            "system" | "developer" => Some(Role::System),
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            "tool" => Some(Role::Tool),
            _ => None,
        })
    });
    let content = match role {
        // A message that only calls tools may have no content.
        Some(Role::Assistant) => content(fields, "content").or(Some(String::new())),
        _ => fields.required("content", content),
    };
    let tool_calls = tool_calls(fields);
    let tool_call_id = fields.text("tool_call_id", usize::MAX);
    Some(Message { role: role?, content: content?, tool_calls, tool_call_id })
}

/// A text, or the texts of parts, each on lines of its own.
fn content(fields: &mut Fields<'_>, name: &str) -> Option<String> {
    let value = fields.value(name)?;
    let found = match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let text = |part: &Value| match part.get("type")?.as_str()? {
                "text" => part.get("text")?.as_str().map(str::to_owned),
                _ => None,
            };
            parts.iter().map(text).collect::<Option<Vec<_>>>().map(|texts| texts.join("\n"))
        }
        _ => None,
    };
    if found.is_none() {
        refuse(fields, name, CONTENT);
    }
    found
}

fn tool_calls(fields: &mut Fields<'_>) -> Vec<ToolCall> {
    let expected = "calls with a function's name, and its arguments as the text of a JSON object";
    fields.list("tool_calls", expected, tool_call).unwrap_or_default()
}

fn tool_call(value: &Value) -> Option<ToolCall> {
    let function = value.get("function")?;
    let arguments: Map<String, Value> = match function.get("arguments")?.as_str()? {
        "" => Map::new(),
        text => serde_json::from_str(text).ok()?,
    };
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    Some(ToolCall { id: text(value, "id").unwrap_or_default(), name: text(function, "name")?, arguments })
}
