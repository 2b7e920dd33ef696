//! The input of a reward: a completion, its gold action, and the action parsed from it.

use webshop_agent::next_action::{FormatError, NextAction, WrittenAction};

/// A completion and what its reward depends on.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The whole completion.
    pub completion: &'a str,
    /// The recorded action.
    pub gold: &'a NextAction,
    /// s: mean self-certainty ([`webshop_lm::Certainty`]) over the tokens of the
    /// rationale, 0 without any. Finite.
    pub certainty: f64,
    /// Number of words in the prompt's user messages; used by the re-implementation's difficulty factor only.
    pub n_prompt_words: usize,
}

/// The action of a completion and the error of its format. Rules that are not strict have both.
pub(super) struct ParsedAttempt {
    /// Why the format is invalid; `None` for a valid one.
    pub problem: Option<FormatError>,
    /// The action, if one could be parsed.
    pub action: Option<WrittenAction>,
}
