//! Shop-R1's actions: taken by a user, or written by a model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    /// Click a link, a button or an option. A purchase is a click.
    Click,
    /// Fill in a field and submit it.
    TypeAndSubmit,
    /// End the session without a purchase.
    Terminate,
}

impl ActionType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Click, Self::TypeAndSubmit, Self::Terminate];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::TypeAndSubmit => "type_and_submit",
            Self::Terminate => "terminate",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An action that a user took: the ground truth of a step.
///
/// In JSON, `{"type": …, "name": …, "text": …}`. Keys that the type does not need are ignored.
///
/// ```
/// use webshop_agent::next_action::NextAction;
/// let bought: NextAction = serde_json::from_str(r#"{"type": "click", "name": "buy now", "text": ""}"#).unwrap();
/// assert_eq!(bought, NextAction::Click { name: "buy now".into() });
/// assert_eq!(bought.to_string(), r#"{"type":"click","name":"buy now"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum NextAction {
    /// Click an element.
    Click {
        /// The element's name.
        name: String,
    },
    /// Fill in a field and submit it.
    TypeAndSubmit {
        /// The field's name.
        name: String,
        /// The typed text.
        text: String,
    },
    /// End the session without a purchase.
    Terminate {},
}

impl NextAction {
    /// The type.
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

/// An action as a model wrote it. The type may not exist, and fields that it needs may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WrittenAction {
    /// The written type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The written name; empty if missing.
    #[serde(default)]
    pub name: String,
    /// The written text; empty if missing.
    #[serde(default)]
    pub text: String,
}

impl WrittenAction {
    /// The type; `None` if it does not exist.
    pub fn action_type(&self) -> Option<ActionType> {
        ActionType::named(&self.type_name)
    }
}

impl From<&NextAction> for WrittenAction {
    /// The action as a correct model writes it.
    fn from(action: &NextAction) -> Self {
        let (name, text) = match action {
            NextAction::Click { name } => (name.as_str(), ""),
            NextAction::TypeAndSubmit { name, text } => (name.as_str(), text.as_str()),
            NextAction::Terminate {} => ("", ""),
        };
        Self { type_name: action.action_type().name().into(), name: name.into(), text: text.into() }
    }
}
