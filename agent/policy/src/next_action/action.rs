//! Actions as Shop-R1 has them: taken by a customer, or written by a model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of action it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    /// Use a link, a button or a choice. Buying is a click.
    Click,
    /// Fill in a field and send it.
    TypeAndSubmit,
    /// Leave without buying.
    Terminate,
}

impl ActionType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Click, Self::TypeAndSubmit, Self::Terminate];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::TypeAndSubmit => "type_and_submit",
            Self::Terminate => "terminate",
        }
    }

    /// The type of exactly this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An action that a customer took: the gold action of a step.
///
/// In JSON, `{"type": …, "name": …, "text": …}`; what the type has no use for may be there and is not kept.
///
/// ```
/// use crate::next_action::NextAction;
/// let bought: NextAction = serde_json::from_str(r#"{"type": "click", "name": "buy now", "text": ""}"#).unwrap();
/// assert_eq!(bought, NextAction::Click { name: "buy now".into() });
/// assert_eq!(bought.to_string(), r#"{"type":"click","name":"buy now"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NextAction {
    /// Use what is called so.
    Click {
        /// The name that the page gives it.
        name: String,
    },
    /// Fill in the field that is called so, and send it.
    TypeAndSubmit {
        /// The name that the page gives the field.
        name: String,
        /// What is typed.
        text: String,
    },
    /// Leave without buying.
    Terminate {},
}

impl NextAction {
    /// Its type.
    pub fn action_type(&self) -> ActionType {
        match self {
            Self::Click { .. } => ActionType::Click,
            Self::TypeAndSubmit { .. } => ActionType::TypeAndSubmit,
            Self::Terminate {} => ActionType::Terminate,
        }
    }
}

impl fmt::Display for NextAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("strings under fixed keys are JSON"))
    }
}

/// An action as a model wrote it. It may have a type that does not exist, or lack what its type needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WrittenAction {
    /// The written type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The written name, as it stands; empty if there is none.
    #[serde(default)]
    pub name: String,
    /// The written text, as it stands; empty if there is none.
    #[serde(default)]
    pub text: String,
}

impl WrittenAction {
    /// The type, if there is one of that name.
    pub fn action_type(&self) -> Option<ActionType> {
        ActionType::named(&self.type_name)
    }
}

impl From<&NextAction> for WrittenAction {
    /// As a model writes it that is right.
    fn from(action: &NextAction) -> Self {
        let (name, text) = match action {
            NextAction::Click { name } => (name.as_str(), ""),
            NextAction::TypeAndSubmit { name, text } => (name.as_str(), text.as_str()),
            NextAction::Terminate {} => ("", ""),
        };
        Self { type_name: action.action_type().name().into(), name: name.into(), text: text.into() }
    }
}
