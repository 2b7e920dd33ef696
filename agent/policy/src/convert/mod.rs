//! Rollouts as data for trainers: recorded trips as chats, in the forms in use, and back.
//!
//! A [`Teller`] makes a recorded trip again and tells it as lines of a [`Format`]; a [`Listener`] reads such lines,
//! makes the trips that they tell of, and gives back episodes. Either way the shop decides: what it does not answer
//! as the line says is no data.
//!
//! | format | one line |
//! |---|---|
//! | `messages` | `{"custom_id", "messages": [{"role", "content"}], "tools"?, "metadata": {…}}`, as OpenAI's interface and RAGEN have it |
//! | `sharegpt` | `{"id", "conversations": [{"from": "human", "value"}], "meta": {…}}`, as ETO has it |
//! | `agenttraj` | `{"item_id", "conversations": [{"from", "loss", "value"}]}`, as AgentGym has it; `loss` is true where an answer was the customer's |
//!
//! A trip is one line where the dialect keeps its history, and a line for each turn where it tells it anew
//! ([`History`]); `agenttraj` has room for whole trips only. Tokens and log-probabilities are not told: trainers that
//! want them read the records.

pub mod export;
pub mod format;
pub mod import;


use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use webshop_products::GoalId;

use webshop_lm::Message;
use crate::prompt_format::{Dialect, History};
pub use crate::convert::import::Listener;
pub use crate::convert::export::{Teller, Told};

/// How chats are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenAI's messages.
    Messages,
    /// ShareGPT's conversations.
    Sharegpt,
    /// AgentGym's trajectories.
    Agenttraj,
}

impl Format {
    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Sharegpt => "sharegpt",
            Self::Agenttraj => "agenttraj",
        }
    }

    /// Why a dialect cannot be told in it, if so.
    fn lacks(self, dialect: Dialect) -> Option<String> {
        let is_retold = dialect.history() == History::Retold;
        (self == Self::Agenttraj && is_retold).then(|| {
            format!(
                "`{self}` holds whole trips, and `{dialect}` makes each turn a chat of its own; \
                 choose another dialect, such as `agentgym-react`"
            )
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What was shown before each answer of a chat in any of the formats, and the answer.
pub(crate) fn turns(line: &str) -> Result<Vec<(String, Message)>, String> {
    format::read(line).map(|line| line.turns)
}

/// A chat and what it is about.
#[derive(Clone, Debug)]
struct Chat {
    messages: Vec<Message>,
    /// How many of the last answers are the customer's. Any before were put into its mouth.
    n_answers: usize,
    about: About,
}

/// What is known of a chat beside its words. Whoever reads chats of others must do without most of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct About {
    goal: Option<GoalId>,
    /// Which of several trips for the goal.
    sample: Option<u64>,
    /// Which turn of the trip, from 0, where each is a chat of its own.
    turn: Option<usize>,
    max_steps: Option<u32>,
    goal_fingerprint: Option<Arc<str>>,
    policy: Option<Arc<str>>,
    model: Option<Arc<str>>,
    dialect: Option<Dialect>,
    prompt_version: Option<Arc<str>>,
    /// What came of the trip; written under the format's own names.
    #[serde(skip)]
    outcome: Option<Outcome>,
}

/// What came of a trip.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    reward: f64,
    is_success: bool,
    terminated: bool,
    n_turns: usize,
}
