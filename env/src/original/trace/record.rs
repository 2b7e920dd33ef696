//! The lines of a trace: scripted and traced episodes.

use crate::action::NoopReason;
use crate::reward::original_fields::VerboseInfo;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeSet;
use std::fmt;
use webshop_products::{GoalRecord, Selection};

/// An episode to trace: session name, goal and actions. Unknown fields are ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ScriptedEpisode {
    /// The session name, which URLs show; `goal_idx` if absent. A number also selects the goal. Without
    /// either, a name is drawn.
    #[serde(default)]
    pub session: Option<SessionName>,
    /// The number of the goal, from the end if negative.
    #[serde(default)]
    pub goal_idx: Option<i64>,
    /// A goal of the episode's own, with precedence over `goal_idx`.
    #[serde(default)]
    pub goal: Option<GoalRecord>,
    /// Seeds the generator before the first draw of the episode.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The texts of the actions, in order.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// The name of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a session name is a text or a number")]
pub enum SessionName {
    /// A number, which is also the goal's.
    Number(i64),
    /// Any text.
    Text(String),
    /// A boolean, which Python uses as 1 or 0 and prints as `True` or `False`.
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

/// A traced episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedEpisode {
    /// The number of the goal; `None` for a goal of the episode's own.
    pub goal_idx: Option<u32>,
    /// The session name.
    pub session: String,
    /// The goal.
    pub goal: GoalRecord,
    /// The instruction block of the page.
    pub instruction_text: String,
    /// The first page.
    pub reset: TracedPage,
    /// The steps, one per action.
    pub steps: Vec<TracedStep>,
}

/// One traced step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedStep {
    /// The text of the action.
    pub action: String,
    /// The page after it.
    #[serde(flatten)]
    pub page: TracedPage,
    /// The reward of a purchase; 0.0 for other actions, the integer 0 for a no-op.
    pub reward: Number,
    /// Whether the action bought something.
    pub done: bool,
    /// Always null, as in the original.
    pub info: (),
    /// How the reward came about; `None` without a purchase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_info: Option<VerboseInfo>,
    /// The reason of a no-op for which the original fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noop: Option<NoopReason>,
}

/// A page in all its views, and the state of the session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedPage {
    /// The page as text.
    pub text: String,
    /// The page as marked-up text.
    pub text_rich: String,
    /// The URL.
    pub url: String,
    /// The text after earlier texts and actions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ret_obs: Option<String>,
    /// Whether there is a search bar.
    pub has_search_bar: bool,
    /// The clickable labels in order.
    pub clickables: Vec<String>,
    /// The URL again, as part of the original's state.
    pub state_url: String,
    /// The state of the session.
    pub session: TracedSession,
}

/// The original's state of a session between two requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TracedSession {
    /// The number of the results page; `None` before the first search.
    pub page: Option<u32>,
    /// The query, split at single spaces.
    pub keywords: Option<Vec<String>>,
    /// The current product.
    pub asin: Option<String>,
    /// The products opened, sorted.
    pub asins: BTreeSet<String>,
    /// The selected values, in the order of selection.
    pub options: Selection,
    /// Counts of actions since the search bar, in the order of their first occurrence.
    pub actions: IndexMap<&'static str, u32>,
    /// Whether this user has ever bought anything.
    pub done: bool,
}
