//! A model's completion, read as an answer, or what is wrong with it.
//!
//! The whole trimmed text must be one JSON object with exactly the keys `rationale` and `action`. Of keys that stand there
//! twice, the last one counts, as in most readers of JSON; `NaN`, `Infinity`, numbers beyond them and escapes that are half a
//! character (`\ud800` alone) are no JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::next_action::action::{ActionType, WrittenAction};

/// How much form is asked for. Each mode asks for all that the one before it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatMode {
    /// `rationale` is a string, `action` an object with a string `type`; its `name` and `text` are strings where they are
    /// present. It may hold other keys.
    #[default]
    Json,
    /// And the type is one of the three.
    Schema,
    /// And the action has exactly the keys `type`, `name` and `text`; what its type needs is not empty, what it does not
    /// need is.
    Strict,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Why, as it stands.
    pub rationale: String,
    /// What it would do.
    pub action: WrittenAction,
}

/// Why a completion is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not JSON, or more than JSON.
    #[error("the completion is not one JSON value: {0}")]
    NoJson(String),
    /// JSON, but not an object.
    #[error("the completion is no JSON object")]
    NoObject,
    /// Other keys than the two.
    #[error("the keys are {0} instead of exactly `rationale` and `action`")]
    Keys(String),
    /// A value of the wrong kind, or none.
    #[error("`{field}` is {problem}")]
    Field {
        /// Where it stands.
        field: &'static str,
        /// `missing`, or what it should be.
        problem: &'static str,
    },
    /// A type that does not exist.
    #[error("`action.type` is `{0}`, which is none of `click`, `type_and_submit` and `terminate`")]
    UnknownType(String),
    /// Other keys of the action than its three, where they are asked for.
    #[error("the keys of `action` are {0} instead of exactly `type`, `name` and `text`")]
    ActionKeys(String),
    /// A field that has to be filled, or must not be.
    #[error("`{field}` is {problem} in a `{action_type}`")]
    Filled {
        /// Which.
        field: &'static str,
        /// `empty` or `not empty`.
        problem: &'static str,
        /// In an action of this type.
        action_type: ActionType,
    },
}

impl Answer {
    /// Reads a completion.
    ///
    /// # Errors
    /// The first thing that `mode` finds wrong.
    ///
    /// ```
    /// use crate::next_action::{Answer, FormatMode};
    /// let text = r#"{"rationale": "It fits.", "action": {"type": "click", "name": "buy now"}}"#;
    /// let answer = Answer::read(text, FormatMode::Json).unwrap();
    /// assert_eq!(answer.action.name, "buy now");
    /// let error = Answer::read(text, FormatMode::Strict).unwrap_err().to_string();
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
            return Err(FormatError::Field { field: "rationale", problem: "no string" });
        };
        let action = WrittenAction::read(&object["action"], mode)?;
        Ok(Self { rationale: rationale.clone(), action })
    }
}

impl WrittenAction {
    /// Reads the action of an answer by itself.
    ///
    /// # Errors
    /// The first thing that `mode` finds wrong.
    pub fn read(value: &Value, mode: FormatMode) -> Result<Self, FormatError> {
        let Value::Object(object) = value else {
            return Err(FormatError::Field { field: "action", problem: "no object" });
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

    /// Refuses a field that the type needs and that is empty, or the other way round.
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

/// The string under `key`, if there is anything.
fn string(
    object: &Map<String, Value>,
    key: &str,
    field: &'static str,
) -> Result<Option<String>, FormatError> {
    match object.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(FormatError::Field { field, problem: "no string" }),
    }
}

fn has_exactly(object: &Map<String, Value>, keys: &[&str]) -> bool {
    object.len() == keys.len() && keys.iter().all(|key| object.contains_key(*key))
}

fn listed(object: &Map<String, Value>) -> String {
    let keys: Vec<String> = object.keys().map(|key| format!("`{key}`")).collect();
    if keys.is_empty() { "none".into() } else { keys.join(", ") }
}
