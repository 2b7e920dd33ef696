//! Free text in a constrained turn: a thought, or the argument of an action.
//!
//! A [`Thought`] and a [`FreeText`] consist of an opening delimiter, free tokens and a closing delimiter. A
//! set of tokens is forbidden inside. The maximum lengths are in the turn's [`Budget`](crate::Budget).

use crate::error::LmError;
use crate::generation::constraint::Allowed;
use crate::tokenizer::BpeTokenizer;

/// Whether a turn must begin with a thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtStart {
    /// The thought is optional.
    Offered,
    /// The turn begins with the thought.
    Required,
}

/// Free text before the completion, such as `<think>…</think>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thought {
    pub(super) start: ThoughtStart,
    pub(super) opening: Vec<u32>,
    pub(super) inside: FreeRun,
}

impl Thought {
    /// A thought of any number of tokens between `opening` and `closing`, in which special tokens are spelled
    /// out. Forbidden inside are special tokens other than `marks` and, if `forbidden` is not empty, tokens
    /// that contain one of these characters or a control character. The first token of `closing` ends the
    /// free text. Fails if a delimiter is empty.
    pub fn new(
        tokenizer: &BpeTokenizer,
        (opening, closing): (&str, &str),
        start: ThoughtStart,
        marks: &[u32],
        forbidden: &[char],
    ) -> Result<Self, LmError> {
        let forbidden = if forbidden.is_empty() {
            tokenizer.special_ids().to_vec()
        } else {
            special_or_with(tokenizer, forbidden)
        };
        let forbidden = forbidden.into_iter().filter(|id| !marks.contains(id)).collect();
        let inside = FreeRun::new(tokenizer.encode(closing)?, 0, forbidden)?;
        Ok(Self { start, opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }

    /// Number of tokens of the opening and the closing.
    pub fn n_delimiter_tokens(&self) -> usize {
        self.opening.len() + self.inside.closing.len()
    }
}

/// A completion with a free argument, such as `search[…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeText {
    pub(super) opening: Vec<u32>,
    pub(super) inside: FreeRun,
}

impl FreeText {
    /// A text of at least one token between `opening` and `closing`, in which special tokens are spelled out.
    /// Forbidden inside are special tokens and tokens that contain a control character or one of the
    /// characters `forbidden`. The first token of `closing` ends the free text. Fails if a delimiter is
    /// empty.
    pub fn new(
        tokenizer: &BpeTokenizer,
        (opening, closing): (&str, &str),
        forbidden: &[char],
    ) -> Result<Self, LmError> {
        let inside = FreeRun::new(tokenizer.encode(closing)?, 1, special_or_with(tokenizer, forbidden))?;
        Ok(Self { opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }

    /// Number of tokens of the opening and the closing.
    pub fn n_delimiter_tokens(&self) -> usize {
        self.opening.len() + self.inside.closing.len()
    }
}

/// Whether this is the byte-level spelling of a control character (a byte below the space).
fn is_control(spelled: char) -> bool {
    ('\u{100}'..'\u{120}').contains(&spelled)
}

/// Special tokens, and tokens that contain a control character or one of the characters `forbidden`.
fn special_or_with(tokenizer: &BpeTokenizer, forbidden: &[char]) -> Vec<u32> {
    let is_forbidden = |id: &u32| {
        let token = tokenizer.token(*id).unwrap_or_default();
        tokenizer.is_special(*id) || token.contains(is_control) || token.contains(forbidden)
    };
    (0..tokenizer.vocab_size() as u32).filter(is_forbidden).collect()
}

/// Free tokens and the closing delimiter after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeRun {
    /// Not empty.
    pub(super) closing: Vec<u32>,
    min_tokens: usize,
    /// Forbidden ids, ascending, from `min_tokens` tokens on.
    forbidden: Vec<u32>,
    /// Forbidden ids, ascending, before that: also the first token of `closing`.
    forbidden_at_first: Vec<u32>,
}

impl FreeRun {
    pub(super) fn new(
        closing: Vec<u32>,
        min_tokens: usize,
        mut forbidden: Vec<u32>,
    ) -> Result<Self, LmError> {
        let closing = not_empty(closing)?;
        forbidden.retain(|id| *id != closing[0]);
        let mut forbidden_at_first = forbidden.clone();
        forbidden_at_first.push(closing[0]);
        forbidden_at_first.sort_unstable();
        Ok(Self { closing, min_tokens, forbidden, forbidden_at_first })
    }

    /// The allowed tokens after `n_inside` free tokens, of which there are at most `max_tokens`.
    pub(super) fn allowed(&self, n_inside: usize, max_tokens: usize) -> Allowed<'_> {
        if n_inside < self.min_tokens {
            Allowed::AllBut(&self.forbidden_at_first)
        } else if n_inside < max_tokens {
            Allowed::AllBut(&self.forbidden)
        } else {
            Allowed::Only(&self.closing[..1])
        }
    }
}

fn not_empty(ids: Vec<u32>) -> Result<Vec<u32>, LmError> {
    if ids.is_empty() {
        return Err(LmError::Sampling(
            "the opening and the closing of free text need at least one token each".into(),
        ));
    }
    Ok(ids)
}
