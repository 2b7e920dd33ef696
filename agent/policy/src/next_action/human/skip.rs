//! Recordings that make no session.

use std::fmt;

/// A recording that makes no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The line, or the position in a list, from 1.
    pub line: usize,
    /// The reason.
    pub reason: SkipReason,
    /// The value that causes it.
    pub detail: String,
}

/// Why a recording makes no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkipReason {
    /// The shop has no goal with this instruction.
    NoGoal,
    /// An action is a no-op in the shop.
    NotHere,
    /// No action leads from one page to the next.
    NoAction,
    /// The numbers of states and actions differ.
    Uneven,
    /// The chat cannot be parsed.
    NoChat,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGoal => "the shop has no goal with this instruction",
            Self::NotHere => "an action is a no-op in the shop",
            Self::NoAction => "no action leads from one page to the next",
            Self::Uneven => "the numbers of states and actions differ",
            Self::NoChat => "the chat cannot be parsed",
        })
    }
}
