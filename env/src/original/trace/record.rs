//! The lines of a trace: what is asked for, and what came of it.

use crate::action::NoopReason;
use crate::reward::original_fields::VerboseInfo;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeSet;
use std::fmt;
use webshop_products::{GoalRecord, Selection};

/// One trip to trace: who goes, for what, and what is said. Unknown fields are left alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ScriptedEpisode {
    /// The customer's name, which addresses show; `goal_idx` is one if this is absent. A number also names
    /// the goal. Without either, a name is drawn.
    #[serde(default)]
    pub session: Option<SessionName>,
    /// The goal's number, from the end if negative.
    #[serde(default)]
    pub goal_idx: Option<i64>,
    /// A goal of the trip's own; it goes before `goal_idx`.
    #[serde(default)]
    pub goal: Option<GoalRecord>,
    /// Seeds the generator anew before anything of the trip is drawn.
    #[serde(default)]
    pub seed: Option<u64>,
    /// What the customer says, in order.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// What a session is called by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a customer is called by a text or a number")]
pub enum SessionName {
    /// A number, which is the goal's too.
    Number(i64),
    /// Any text.
    Text(String),
    /// A truth value, which Python takes for 1 or 0 and prints in words.
    Truth(bool),
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionName::Number(number) => write!(f, "{number}"),
            SessionName::Text(text) => f.write_str(text),
            SessionName::Truth(true) => f.write_str("True"),
            SessionName::Truth(false) => f.write_str("False"),
        }
    }
}

/// One trip as it went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedEpisode {
    /// The number of the goal, unless the trip brought its own.
    pub goal_idx: Option<u32>,
    /// The customer's name.
    pub session: String,
    /// The goal.
    pub goal: GoalRecord,
    /// The block of the page that tells it.
    pub instruction_text: String,
    /// The page on which the trip began.
    pub reset: TracedPage,
    /// What each action brought.
    pub steps: Vec<TracedStep>,
}

/// What one action brought.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedStep {
    /// The action, as it was said.
    pub action: String,
    /// The page after it.
    #[serde(flatten)]
    pub page: TracedPage,
    /// The purchase's worth; 0.0 for other moves, and the whole number 0 for what was none.
    pub reward: Number,
    /// Whether something was bought.
    pub done: bool,
    /// Nothing, always, as in the original.
    pub info: (),
    /// How the reward came about, if something was bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_info: Option<VerboseInfo>,
    /// Why nothing happened, where the original fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noop: Option<NoopReason>,
}

/// A page in all its views, and the customer's state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedPage {
    /// The observation as plain text.
    pub text: String,
    /// The observation with marks.
    pub text_rich: String,
    /// The address.
    pub url: String,
    /// The plain text behind earlier ones and actions, if these were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ret_obs: Option<String>,
    /// Whether there is a search bar.
    pub has_search_bar: bool,
    /// The labels that can be clicked, in their order.
    pub clickables: Vec<String>,
    /// The address once more, as part of the original's state.
    pub state_url: String,
    /// What the shop keeps of the customer.
    pub session: TracedSession,
}

/// What the original keeps of a customer between two requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedSession {
    /// The page of results, if something was searched for.
    pub page: Option<u32>,
    /// The words searched for, split at single spaces.
    pub keywords: Option<Vec<String>>,
    /// The product looked at.
    pub asin: Option<String>,
    /// The products opened, sorted.
    pub asins: BTreeSet<String>,
    /// What is chosen, in the order of choosing.
    pub options: Selection,
    /// How often what was done since the search bar, in the order of the first times.
    pub actions: IndexMap<&'static str, u32>,
    /// Whether this customer has ever bought anything.
    pub done: bool,
}
