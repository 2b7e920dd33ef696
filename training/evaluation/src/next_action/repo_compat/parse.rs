//! Parses a completion as the re-implementation does: format and action independently.
//!
//! The JSON object is the text from the first `{` to the last `}`. If strict, the format is
//! [`FormatMode::Strict`], except that the rationale may have any type; a valid action is scored even if text
//! around the object makes the format invalid. If not strict, alternative names of keys and types are
//! accepted:
//!
//! | name | alternatives |
//! |---|---|
//! | `action` | `next_action` |
//! | `name` | `target`, `element`; a leading `#` is dropped |
//! | `text` | `value` |
//! | `type` | `action`, within the action |
//! | `click` | `press`, `tap` |
//! | `type_and_submit` | `type`, `enter_text`, `input` |
//! | `terminate` | `close`, `exit` |

use serde_json::{Map, Value};
use webshop_agent::next_action::{FormatError, FormatMode, NextActionCompletion, WrittenAction};

use crate::next_action::attempt::ParsedAttempt;
use crate::next_action::repo_compat::config::RepoConfig;

pub(super) fn parse(config: &RepoConfig, completion: &str) -> ParsedAttempt {
    let object = match object_in(completion) {
        Ok(object) => object,
        Err(problem) => return ParsedAttempt { problem: Some(problem), action: None },
    };
    if config.strict {
        return parse_strictly(completion, &object);
    }
    let action = lenient_action(&object);
    let is_text = |key| matches!(object.get(key), Some(Value::String(_)));
    let has_rationale = is_text("rationale") || (config.normalize_variants && has_nested_rationale(&object));
    let problem = if !has_rationale {
        Some(FormatError::Field { field: "rationale", problem: "no string" })
    } else if config.normalize_variants {
        None
    } else {
        let given = object.get("action").unwrap_or(&Value::Null);
        WrittenAction::read(given, FormatMode::Json).err()
    };
    ParsedAttempt { problem, action: Some(action) }
}

/// The object from the first opening to the last closing brace.
fn object_in(completion: &str) -> Result<Map<String, Value>, FormatError> {
    let braces = completion.find('{').zip(completion.rfind('}')).filter(|(open, close)| open < close);
    let Some((open, close)) = braces else {
        return Err(FormatError::NoObject);
    };
    serde_json::from_str(&completion[open..=close]).map_err(|error| FormatError::NoJson(error.to_string()))
}

fn parse_strictly(completion: &str, object: &Map<String, Value>) -> ParsedAttempt {
    let given = object.get("action").unwrap_or(&Value::Null);
    let (action, of_action) = match WrittenAction::read(given, FormatMode::Strict) {
        Ok(action) => (Some(action), None),
        Err(problem) => (None, Some(problem)),
    };
    let of_whole = match NextActionCompletion::read(completion, FormatMode::Strict) {
        Err(FormatError::Field { field: "rationale", .. }) | Ok(_) => of_action,
        Err(problem) => Some(problem),
    };
    ParsedAttempt { problem: of_whole, action }
}

/// Whether the rationale is an object with a text under one of three keys.
fn has_nested_rationale(object: &Map<String, Value>) -> bool {
    let nested = object.get("rationale").and_then(Value::as_object);
    let keys = ["justification", "reason", "rationale"];
    nested.is_some_and(|nested| keys.iter().any(|key| matches!(nested.get(*key), Some(Value::String(_)))))
}

/// The action, with alternative names resolved. An unknown type becomes the empty type name.
fn lenient_action(object: &Map<String, Value>) -> WrittenAction {
    let nothing = Map::new();
    let under = |key| object.get(key).and_then(Value::as_object);
    let action = under("action").or_else(|| under("next_action")).unwrap_or(&nothing);
    let type_name = type_name(action);
    if type_name == "terminate" {
        return WrittenAction { type_name: type_name.into(), ..WrittenAction::default() };
    }
    let name = text_of(first_of(action, &["name", "target", "element"]));
    let text = text_of(first_of(action, &["text", "value"]));
    let name = name.strip_prefix('#').unwrap_or(name);
    WrittenAction { type_name: type_name.into(), name: name.into(), text: text.into() }
}

fn type_name(action: &Map<String, Value>) -> &'static str {
    let hint = text_of(first_of(action, &["type", "action"])).to_lowercase();
    match hint.as_str() {
        "type_and_submit" | "type" | "enter_text" | "input" => "type_and_submit",
        "click" | "press" | "tap" => "click",
        "terminate" | "close" | "exit" => "terminate",
        _ if action.get("type").is_some_and(|value| value == "interact") => {
            match text_of(action.get("action")).to_lowercase().as_str() {
                "type" | "enter_text" => "type_and_submit",
                "click" | "press" | "tap" => "click",
                _ => "",
            }
        }
        _ => "",
    }
}

/// The first value under one of the keys that is truthy in Python: not null, false, 0 or empty.
fn first_of<'a>(action: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    let is_truthy = |value: &&Value| match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    };
    keys.iter().filter_map(|key| action.get(*key)).find(is_truthy)
}

fn text_of(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}
