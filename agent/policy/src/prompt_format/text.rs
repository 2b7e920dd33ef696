//! `text`: the pages of the original's `text` observation, and its action language with thought tags.
//!
//! ```text
//! context    = page ⟨turn⟩ completion ⟨end⟩ page ⟨turn⟩ completion ⟨end⟩ page …
//! completion = [ <think> words </think> ] action ⟨end⟩
//! action     = search[words] | click[label]
//! ```
//!
//! Every page is written whole ([`Page::text`]): ten results with their ASINs, prices as the page has them, and again
//! after each action, also one that did nothing. Pages and completions of `compact` are the same with fewer tokens and
//! with marks.

use webshop_env::{Action, Compat, Page};

use crate::prompt_format::compact_renderer::{END, END_THINK, Piece, THINK, TURN};
use crate::prompt_format::completion::ParsedCompletion;

/// The version of the format, recorded with every result. A change of its text changes it.
pub(super) const VERSION: &str = "text-v1";

/// What `page` adds to the context, up to and including the token that opens the model's turn.
pub(super) fn render(page: &Page) -> Vec<Piece> {
    vec![Piece::words(page.text()), Piece::special(TURN)]
}

/// A completion with its end token; without tags if `thought` is empty.
pub(super) fn render_completion(thought: &str, action: &Action) -> Vec<Piece> {
    with_thought(thought, vec![Piece::words(action.to_string())])
}

/// A completion of these pieces after a thought, with its end token.
pub(super) fn with_thought(thought: &str, action: Vec<Piece>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if !thought.is_empty() {
        pieces.extend([Piece::special(THINK), Piece::words(thought), Piece::special(END_THINK)]);
    }
    pieces.extend(action);
    pieces.push(Piece::special(END));
    pieces
}

/// Parses the decoded completion of one turn in a shop with these rules, with or without the end token. A completion
/// without an action is a [`Action::Noop`].
pub(super) fn parse(text: &str, rules: Compat) -> ParsedCompletion {
    let text = text.trim();
    let text = text.strip_suffix(END).unwrap_or(text).trim();
    let (thought, action) = match text.strip_prefix(THINK).and_then(|rest| rest.split_once(END_THINK)) {
        Some((thought, action)) => (Some(thought.trim().to_string()), action.trim()),
        None => (None, text),
    };
    let action = Action::parse(action, rules);
    let is_well_formed = !matches!(action, Action::Noop(_));
    ParsedCompletion::new(thought, action, is_well_formed)
}
