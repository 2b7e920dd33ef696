//! Single-step examples: a recorded step with the steps before it.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_env::Action;

use crate::next_action::action::NextAction;

/// One recorded step. Prompts are rendered from it
/// ([`PromptFormat::single_step_messages`](crate::PromptFormat::single_step_messages)), so one file serves
/// all formats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// A unique id.
    pub id: String,
    /// Where the step comes from.
    pub source: ExampleSource,
    /// The split of the goal. All steps of a goal are in one split.
    pub split: String,
    /// The goal's number in its shop, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<u32>,
    /// Position of the step in the session, from 0.
    pub step: usize,
    /// The steps before it, oldest first. The oldest may be missing.
    pub context: Vec<TakenStep>,
    /// The current page in simplified HTML.
    pub page: String,
    /// The reason for the action in one sentence; empty if unknown.
    #[serde(default)]
    pub rationale: String,
    /// The ground-truth action.
    pub action: NextAction,
}

/// One step of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenStep {
    /// The page in simplified HTML.
    pub page: String,
    /// The action; `None` for a no-op.
    pub action: Option<NextAction>,
    /// The reason for the action in one sentence; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
}

/// Where an example comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExampleSource {
    /// An expert demonstration.
    Demonstration,
    /// An episode of the oracle.
    Oracle,
    /// A recorded episode of a policy.
    Policy,
    /// A recorded session of a person.
    Human,
    /// A results page without a product worth buying.
    Terminate,
}

impl ExampleSource {
    /// All sources.
    pub const ALL: [Self; 5] =
        [Self::Demonstration, Self::Oracle, Self::Policy, Self::Human, Self::Terminate];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demonstration => "demonstration",
            Self::Oracle => "oracle",
            Self::Policy => "policy",
            Self::Human => "human",
            Self::Terminate => "terminate",
        }
    }
}

impl fmt::Display for ExampleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A rationale for an action without a recorded one: the thought as a sentence or, without a thought, a
/// sentence about the action. Empty for a no-op.
///
/// ```
/// use webshop_agent::next_action::rationale_of;
/// assert_eq!(rationale_of("mesh sole sole yes", &"click[buy now]".parse().unwrap()), "I read: mesh sole sole yes.");
/// assert_eq!(rationale_of("", &"click[size 9]".parse().unwrap()), "I choose size 9.");
/// ```
pub fn rationale_of(thought: &str, action: &Action) -> String {
    if !thought.is_empty() {
        return format!("I read: {thought}.");
    }
    match action {
        Action::Search(_) => "I search for what I want.".into(),
        Action::Click(label) => match label.as_str() {
            "buy now" => "I buy it.".into(),
            "< prev" => "I go back.".into(),
            "next >" => "I look further.".into(),
            "back to search" => "I search anew.".into(),
            label if is_product(label) => "I look at this one.".into(),
            label => format!("I choose {label}."),
        },
        Action::Noop(_) => String::new(),
    }
}

/// The rationale of `terminate` examples.
pub const TERMINATE_RATIONALE: &str = "I find nothing that I want.";

/// Whether a label is a product id: ten letters and digits that begin with `b`.
fn is_product(label: &str) -> bool {
    label.len() == 10 && label.starts_with('b') && label.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
