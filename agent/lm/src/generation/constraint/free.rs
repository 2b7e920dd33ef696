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
        let mut ids = forbidden_ids(tokenizer, |token| {
            !forbidden.is_empty() && (token.contains(is_control) || token.contains(forbidden))
        });
        ids.retain(|id| !marks.contains(id));
        let inside = FreeRun::new(tokenizer.vocab_size(), tokenizer.encode(closing)?, 0, ids)?;
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
        let ids = forbidden_ids(tokenizer, |token| token.contains(is_control) || token.contains(forbidden));
        let inside = FreeRun::new(tokenizer.vocab_size(), tokenizer.encode(closing)?, 1, ids)?;
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

/// The ids of special tokens, of tokens whose text is forbidden, and those of no token, ascending.
fn forbidden_ids(tokenizer: &BpeTokenizer, is_forbidden: impl Fn(&str) -> bool) -> Vec<u32> {
    let allows = |id: u32| tokenizer.token(id).is_some_and(|token| !is_forbidden(&token));
    let ids = 0..tokenizer.vocab_size() as u32;
    ids.filter(|id| tokenizer.is_special(*id) || !allows(*id)).collect()
}

/// Free tokens and the closing delimiter after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeRun {
    /// One more than the highest id of a token.
    n_ids: u32,
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
        n_ids: usize,
        closing: Vec<u32>,
        min_tokens: usize,
        mut forbidden: Vec<u32>,
    ) -> Result<Self, LmError> {
        let closing = not_empty(closing)?;
        forbidden.retain(|id| *id != closing[0]);
        let mut forbidden_at_first = forbidden.clone();
        forbidden_at_first.push(closing[0]);
        forbidden_at_first.sort_unstable();
        Ok(Self { n_ids: n_ids as u32, closing, min_tokens, forbidden, forbidden_at_first })
    }

    /// The allowed tokens after `n_inside` free tokens, of which there are at most `max_tokens`.
    pub(super) fn allowed(&self, n_inside: usize, max_tokens: usize) -> Allowed<'_> {
        if n_inside < self.min_tokens {
            Allowed::BelowBut(self.n_ids, &self.forbidden_at_first)
        } else if n_inside < max_tokens {
            Allowed::BelowBut(self.n_ids, &self.forbidden)
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
