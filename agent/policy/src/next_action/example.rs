//! A step of somebody's visit, to be learned from or judged by: what stood before, and what was done next.

use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_env::Action;

use crate::next_action::action::NextAction;
use crate::prompt_format::shop_r1::say_step;

/// One recorded step.
///
/// Its prompt is whatever a dialect makes of it ([`crate::prompt_format::Dialect::question`]), so that one file of samples serves all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// By which it is told from others.
    pub id: String,
    /// Who took the step.
    pub source: SampleSource,
    /// The split of the goal, whose steps are all in one.
    pub split: String,
    /// The goal's number in its shop, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<u32>,
    /// Position of the step in the visit, from 0.
    pub step: usize,
    /// What went before, oldest first.
    pub context: Vec<TakenStep>,
    /// The present page in simplified HTML.
    pub page: String,
    /// Why it was taken, in one sentence; empty if nobody said.
    #[serde(default)]
    pub rationale: String,
    /// The gold action.
    pub action: NextAction,
}

impl Sample {
    /// The answer that takes the step, for its reason.
    pub fn answer(&self) -> String {
        say_step(&self.rationale, &self.action)
    }
}

/// One step of a visit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenStep {
    /// The page in simplified HTML.
    pub page: String,
    /// What was done on it; `None` if it was nothing that can be done.
    pub action: Option<NextAction>,
    /// Why, in one sentence; empty if nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
}

/// Where samples come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleSource {
    /// A demonstrated trip.
    Demonstration,
    /// A trip of somebody who knows what is wanted and where it is.
    Oracle,
    /// A trip of a policy.
    Policy,
    /// A trip of a person.
    Human,
    /// A page on which nothing is left to be hoped for.
    DeadEnd,
}

impl SampleSource {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Demonstration, Self::Oracle, Self::Policy, Self::Human, Self::DeadEnd];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demonstration => "demonstration",
            Self::Oracle => "oracle",
            Self::Policy => "policy",
            Self::Human => "human",
            Self::DeadEnd => "dead_end",
        }
    }
}

impl fmt::Display for SampleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The sentence that stands for a rationale where nobody said one: what was read off the page, if that was thought, or else
/// what is done.
///
/// ```
/// use crate::next_action::rationale_of;
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

/// Why a customer leaves who sees nothing that would do.
pub const LEAVING: &str = "I find nothing that I want.";

/// Whether a label is the number of a product: ten digits and letters, `b0…` in the original.
fn is_product(label: &str) -> bool {
    label.len() == 10 && label.starts_with('b') && label.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
