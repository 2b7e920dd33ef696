//! Parsing of completions.
//!
//! The whole trimmed text must be one JSON object with exactly the keys `rationale` and `action`. Of
//! duplicate keys the last counts, as in most JSON parsers. `NaN`, `Infinity`, numbers that overflow and
//! single surrogates (`\ud800`) are not JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::next_action::action::{ActionType, WrittenAction};

/// How strictly a completion is checked. Each mode includes the checks of the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatMode {
    /// `rationale` is a string, `action` an object with a string `type`; `name` and `text` are strings if
    /// present. Other keys of `action` are allowed.
    #[default]
    Json,
    /// The type is one of the three.
    Schema,
    /// The action has exactly the keys `type`, `name` and `text`; those that its type needs are not empty,
    /// the others are.
    Strict,
}

/// A parsed completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextActionCompletion {
    /// The rationale as written.
    pub rationale: String,
    /// The action as written.
    pub action: WrittenAction,
}

/// What is wrong with a completion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The text is not one JSON value.
    #[error("the completion is not one JSON value: {0}")]
    NoJson(String),
    /// The JSON value is not an object.
    #[error("the completion is not a JSON object")]
    NoObject,
    /// The keys are not `rationale` and `action`.
    #[error("the keys are {0} instead of exactly `rationale` and `action`")]
    Keys(String),
    /// A field is missing or has the wrong type.
    #[error("`{field}` is {problem}")]
    Field {
        /// The path of the field.
        field: &'static str,
        /// `missing`, or the type it lacks.
        problem: &'static str,
    },
    /// The action type does not exist.
    #[error("`action.type` is `{0}`, not `click`, `type_and_submit` or `terminate`")]
    UnknownType(String),
    /// The keys of the action are not `type`, `name` and `text`.
    #[error("the keys of `action` are {0} instead of exactly `type`, `name` and `text`")]
    ActionKeys(String),
    /// A field that must not be empty is, or the reverse.
    #[error("`{field}` is {problem} in a `{action_type}`")]
    Filled {
        /// The path of the field.
        field: &'static str,
        /// `empty` or `not empty`.
        problem: &'static str,
        /// The action type.
        action_type: ActionType,
    },
}

impl NextActionCompletion {
    /// Parses a completion.
    ///
    /// # Errors
    /// The first failed check of `mode`.
    ///
    /// ```
    /// use webshop_agent::next_action::{FormatMode, NextActionCompletion};
    /// let text = r#"{"rationale": "It fits.", "action": {"type": "click", "name": "buy now"}}"#;
    /// let completion = NextActionCompletion::read(text, FormatMode::Json).unwrap();
    /// assert_eq!(completion.action.name, "buy now");
    /// let error = NextActionCompletion::read(text, FormatMode::Strict).unwrap_err().to_string();
    /// assert_eq!(error, "the keys of `action` are `type`, `name` instead of exactly `type`, `name` and `text`");
    /// ```
    pub fn read(completion: &str, mode: FormatMode) -> Result<Self, FormatError> {
        let value: Value = serde_json::from_str(completion.trim())
            .map_err(|error| FormatError::NoJson(error.to_string().replace(" line 1 column ", " column ")))?;
        let Value::Object(object) = value else {
            return Err(FormatError::NoObject);
        };
        if !has_exactly(&object, &["rationale", "action"]) {
            return Err(FormatError::Keys(listed(&object)));
        }
        let Value::String(rationale) = &object["rationale"] else {
            return Err(FormatError::Field { field: "rationale", problem: "not a string" });
        };
        let action = WrittenAction::read(&object["action"], mode)?;
        Ok(Self { rationale: rationale.clone(), action })
    }
}

impl WrittenAction {
    /// Parses the action of a completion.
    ///
    /// # Errors
    /// The first failed check of `mode`.
    pub fn read(value: &Value, mode: FormatMode) -> Result<Self, FormatError> {
        let Value::Object(object) = value else {
            return Err(FormatError::Field { field: "action", problem: "not an object" });
        };
        let written = Self {
            type_name: string(object, "type", "action.type")?
                .ok_or(FormatError::Field { field: "action.type", problem: "missing" })?,
            name: string(object, "name", "action.name")?.unwrap_or_default(),
            text: string(object, "text", "action.text")?.unwrap_or_default(),
        };
        match (mode, written.action_type()) {
            (FormatMode::Json, _) | (FormatMode::Schema, Some(_)) => (),
            (_, None) => return Err(FormatError::UnknownType(written.type_name)),
            (FormatMode::Strict, Some(action_type)) => {
                if !has_exactly(object, &["type", "name", "text"]) {
                    return Err(FormatError::ActionKeys(listed(object)));
                }
                written.check_filled(action_type)?;
            }
        }
        Ok(written)
    }

    /// Checks that the fields that the type needs are not empty, and the others are.
    pub(super) fn check_filled(&self, action_type: ActionType) -> Result<(), FormatError> {
        let needs_name = action_type != ActionType::Terminate;
        let needs_text = action_type == ActionType::TypeAndSubmit;
        for (field, value, is_needed) in
            [("action.name", &self.name, needs_name), ("action.text", &self.text, needs_text)]
        {
            if value.is_empty() == is_needed {
                let problem = if is_needed { "empty" } else { "not empty" };
                return Err(FormatError::Filled { field, problem, action_type });
            }
        }
        Ok(())
    }
}

/// The string under `key`; `None` if the key is missing.
fn string(
    object: &Map<String, Value>,
    key: &str,
    field: &'static str,
) -> Result<Option<String>, FormatError> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(FormatError::Field { field, problem: "not a string" }),
    }
}

fn has_exactly(object: &Map<String, Value>, keys: &[&str]) -> bool {
    object.len() == keys.len() && keys.iter().all(|key| object.contains_key(*key))
}

fn listed(object: &Map<String, Value>) -> String {
    let keys: Vec<String> = object.keys().map(|key| format!("`{key}`")).collect();
    if keys.is_empty() { "none".into() } else { keys.join(", ") }
}
