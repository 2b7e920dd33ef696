//! A chat with its meta data, independent of the format.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_lm::chat::Message;
use webshop_products::GoalId;

use crate::prompt_format::{History, PromptFormat};

/// A file format for chats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChatFileFormat {
    /// OpenAI's messages.
    Messages,
    /// ShareGPT's conversations.
    Sharegpt,
    /// AgentGym's trajectories.
    Agenttraj,
}

impl ChatFileFormat {
    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Sharegpt => "sharegpt",
            Self::Agenttraj => "agenttraj",
        }
    }

    /// An error message if the format cannot hold chats in a prompt format.
    pub(super) fn unsupported(self, prompt_format: PromptFormat) -> Option<String> {
        let is_rebuilt = prompt_format.history() == History::Rebuild;
        (self == Self::Agenttraj && is_rebuilt).then(|| {
            format!(
                "`{self}` holds whole episodes, and `{prompt_format}` has one chat per turn; choose another prompt \
                 format, such as `agentgym-react`"
            )
        })
    }
}

impl fmt::Display for ChatFileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A chat and its meta data.
#[derive(Clone, Debug)]
pub(super) struct Chat {
    pub(super) messages: Vec<Message>,
    /// How many of the last assistant messages are completions of the policy. Earlier ones belong to the
    /// prompt.
    pub(super) n_completions: usize,
    pub(super) meta: ChatMeta,
}

/// Meta data of a chat. Chats of other programs lack most of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChatMeta {
    pub(super) goal: Option<GoalId>,
    /// The number of the sample for the goal.
    pub(super) sample: Option<u64>,
    /// The turn of the episode, from 0, in prompt formats with one chat per turn.
    pub(super) turn: Option<usize>,
    pub(super) max_steps: Option<u32>,
    pub(super) goal_fingerprint: Option<Arc<str>>,
    pub(super) policy: Option<Arc<str>>,
    pub(super) model: Option<Arc<str>>,
    pub(super) prompt_format: Option<PromptFormat>,
    pub(super) prompt_version: Option<Arc<str>>,
    /// The result of the episode; each format has names of its own for it.
    #[serde(skip)]
    pub(super) outcome: Option<Outcome>,
}

/// The result of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) reward: f64,
    pub(super) is_success: bool,
    pub(super) terminated: bool,
    pub(super) n_turns: usize,
}
