//! Free writing within a turn: a thought, and the words of a search.
//!
//! A [`Thought`] and a [`FreeText`] know the tokens before and behind them and which tokens may not be said inside. How
//! many may be said is the turn's business: [`crate::generation::constraint::Budget`].

use crate::generation::constraint::Allowed;
use crate::error::LmError;
use crate::tokenizer::ShopTokenizer;

/// Where a turn's thought begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtStart {
    /// The model says the opening, or leaves the thought out.
    Offered,
    /// The model has to say the opening.
    Required,
}

/// Free writing before the action, such as `<think>…</think>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thought {
    pub(super) start: ThoughtStart,
    pub(super) opening: Vec<u32>,
    pub(super) inside: FreeRun,
}

impl Thought {
    /// Any number of tokens between `opening` and `closing`, which are written with special tokens spelled out. Inside,
    /// everything may be said but special tokens other than `marks` and, if there are such, the characters `forbidden`
    /// and line breaks; the first token of `closing` ends it.
    pub fn new(
        tokenizer: &ShopTokenizer,
        (opening, closing): (&str, &str),
        start: ThoughtStart,
        marks: &[u32],
        forbidden: &[char],
    ) -> Result<Self, LmError> {
        let forbidden = if forbidden.is_empty() {
            tokenizer.special_ids().to_vec()
        } else {
            breaking_out(tokenizer, forbidden)
        };
        let forbidden = forbidden.into_iter().filter(|id| !marks.contains(id)).collect();
        let inside = FreeRun::new(tokenizer.encode(closing)?, 0, forbidden)?;
        Ok(Self { start, opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }

    /// Tokens of a thought in which nothing is said.
    pub fn form_tokens(&self) -> usize {
        self.opening.len() + self.inside.closing.len()
    }
}

/// An action with free words in it, such as `search[…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeText {
    pub(super) opening: Vec<u32>,
    pub(super) inside: FreeRun,
}

impl FreeText {
    /// One token or more between `opening` and `closing`, which are written with special tokens spelled out. Inside,
    /// everything may be said but special tokens, the characters `forbidden`, line breaks and other control characters;
    /// the first token of `closing` ends it.
    pub fn new(
        tokenizer: &ShopTokenizer,
        (opening, closing): (&str, &str),
        forbidden: &[char],
    ) -> Result<Self, LmError> {
        let inside = FreeRun::new(tokenizer.encode(closing)?, 1, breaking_out(tokenizer, forbidden))?;
        Ok(Self { opening: not_empty(tokenizer.encode(opening)?)?, inside })
    }

    /// Tokens around the words.
    pub fn form_tokens(&self) -> usize {
        self.opening.len() + self.inside.closing.len()
    }
}

/// Whether a byte-level vocabulary spells a byte below the space so: line breaks, tabs and what JSON has no place for.
fn is_control(spelled: char) -> bool {
    ('\u{100}'..'\u{120}').contains(&spelled)
}

/// Special tokens, and tokens with one of these characters, a line break or another control character in them.
fn breaking_out(tokenizer: &ShopTokenizer, forbidden: &[char]) -> Vec<u32> {
    let breaks_out = |id: &u32| {
        let token = tokenizer.token(*id).unwrap_or_default();
        tokenizer.is_special(*id) || token.contains(is_control) || token.contains(forbidden)
    };
    (0..tokenizer.vocab_size() as u32).filter(breaks_out).collect()
}

/// Free tokens up to a closing sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FreeRun {
    /// Not empty.
    pub(super) closing: Vec<u32>,
    min_tokens: usize,
    /// What may not be said inside, without and with the end itself, ascending.
    forbidden: Vec<u32>,
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

    /// After `n_said` tokens inside, of `max_tokens` at most.
    pub(super) fn allowed(&self, n_said: usize, max_tokens: usize) -> Allowed<'_> {
        if n_said < self.min_tokens {
            Allowed::AllBut(&self.forbidden_at_first)
        } else if n_said < max_tokens {
            Allowed::AllBut(&self.forbidden)
        } else {
            Allowed::Only(&self.closing[..1])
        }
    }
}

fn not_empty(ids: Vec<u32>) -> Result<Vec<u32>, LmError> {
    if ids.is_empty() {
        return Err(LmError::Sampling(
            "free text needs a token that opens it and one that closes it".into(),
        ));
    }
    Ok(ids)
}
