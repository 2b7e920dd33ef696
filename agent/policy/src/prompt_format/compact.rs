//! What the model says: an optional written thought, then one action.
//!
//! ```text
//! utterance = [ <think> words </think> ] action ⟨end⟩
//! action    = search[words] | click[label] | click[⟨mark k⟩]
//! ```
//!
//! The `plain` dialect is the shop's raw action language with the Qwen family's thought tags and one
//! shorthand: a candidate on a results page is named by the mark it was shown under, which stands for its
//! ASIN. [`utterance`] writes and [`parse`] reads; one undoes the other on every admissible action of a page.
//! Parsing never fails: an utterance without an action is a [`Action::Noop`] that passes the turn.

use webshop_env::{Action, Compat, Page, ResultsPage};

use crate::prompt_format::{AnswerForm, Utterance};
use webshop_lm::{Message, Role};
use crate::prompt_format::conversation::Dialogue;
use crate::prompt_format::compact_renderer::{END, END_THINK, MAX_MARKS, Piece, THINK, mark};

/// The outer form of answers.
pub(super) const FORM: AnswerForm =
    AnswerForm { thought: Some((THINK, END_THINK)), search: (" search[", "]"), forbidden: &['[', ']'] };

/// The raw shop as a chat, for models that know no marks: pages as text, answers as actions.
pub(super) fn messages(trip: &Dialogue) -> Vec<Message> {
    let past = trip.past().iter();
    let told = past.flat_map(|turn| [shown(&turn.seen.observation), turn.answer.clone()]);
    told.chain([shown(&trip.now().observation)]).collect()
}

fn shown(observation: &str) -> Message {
    Message::text(Role::User, observation)
}

/// A turn on `page` in the words of the dialect, with its end mark; no tags if `thought` is empty.
pub fn utterance(thought: &[Piece], action: &Action, page: &Page) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if !thought.is_empty() {
        pieces.push(Piece::special(THINK));
        pieces.extend(thought.iter().cloned());
        pieces.push(Piece::special(END_THINK));
    }
    match mark_of(action, page) {
        Some(k) => {
            pieces.extend([Piece::words("click["), Piece::special(mark(k)), Piece::Text("]".into())]);
        }
        None => pieces.push(Piece::words(action.to_string())),
    }
    pieces.push(Piece::special(END));
    pieces
}

/// Parses decoded model text of one turn on `page`, with or without the final end mark.
///
/// ```
/// use crate::prompt_format::compact::parse;
/// use webshop_env::{Page, SearchPage};
/// let page = Page::Search(SearchPage { instruction: "a lamp".into() });
/// let said = parse("<think> anything goes </think> search[lamp]<|im_end|>", &page);
/// assert_eq!(said.thought.as_deref(), Some("anything goes"));
/// assert_eq!(said.action.to_string(), "search[lamp]");
/// ```
pub fn parse(text: &str, page: &Page) -> Utterance {
    let text = text.trim();
    let text = text.strip_suffix(END).unwrap_or(text).trim();
    let (thought, action) = match text.strip_prefix(THINK).and_then(|rest| rest.split_once(END_THINK)) {
        Some((thought, action)) => (Some(thought.trim().to_string()), action.trim()),
        None => (None, text),
    };
    let action = match (Action::parse(action, Compat::Repaired), page) {
        (Action::Click(label), Page::Results(page)) => Action::Click(asin_of(&label, page).unwrap_or(label)),
        (action, _) => action,
    };
    let is_well_formed = !matches!(action, Action::Noop(_));
    Utterance::of(thought, action, is_well_formed)
}

/// The mark under which `page` shows the candidate that `action` clicks.
fn mark_of(action: &Action, page: &Page) -> Option<usize> {
    let (Action::Click(label), Page::Results(page)) = (action, page) else { return None };
    let place = page.items.iter().position(|item| item.id.as_str().eq_ignore_ascii_case(label))?;
    (place < MAX_MARKS).then_some(place + 1)
}

/// The label of the candidate that `page` shows under the mark `label`.
fn asin_of(label: &str, page: &ResultsPage) -> Option<String> {
    let k = (1..=MAX_MARKS).find(|&k| mark(k) == label.trim())?;
    Some(page.items.get(k - 1)?.id.as_str().to_lowercase())
}

#[cfg(test)]
mod tests {
    use webshop_env::{ResultItem, SearchPage};
    use webshop_products::{ProductId, ProductIdx};

    use super::*;

    fn results() -> Page {
        let item = |(at, asin): (u32, &str)| ResultItem {
            product: ProductIdx(at),
            id: ProductId::new(asin).unwrap(),
            title: "Lamp".into(),
            price_tag: "$5.0".into(),
            visited: false,
        };
        Page::Results(ResultsPage {
            instruction: "a lamp".into(),
            query: "lamp".into(),
            page_number: 1,
            total: 2,
            items: [(7, "B0LAMPAAAA"), (3, "B0LAMPBBBB")].into_iter().map(item).collect(),
        })
    }

    fn written(pieces: &[Piece]) -> String {
        pieces.iter().map(Piece::text).collect()
    }

    #[test]
    fn an_unfinished_thought_passes_the_turn() {
        let said = parse("<think> waterproof yes", &results());
        assert!(said.thought.is_none());
        assert!(matches!(said.action, Action::Noop(_)));
    }

    #[test]
    fn a_mark_stands_for_the_candidate_shown_under_it() {
        let action = Action::Click("b0lampbbbb".into());
        let text = written(&utterance(&[Piece::words("the second")], &action, &results()));
        assert_eq!(text, "<think> the second</think> click[<|2|>]<|im_end|>");
        assert_eq!(parse(&text, &results()).action, action);
    }

    #[test]
    fn a_mark_that_is_not_shown_stays_what_it_is() {
        assert_eq!(parse("click[<|3|>]", &results()).action, Action::Click("<|3|>".into()));
        let door = Page::Search(SearchPage { instruction: "a lamp".into() });
        assert_eq!(parse("click[<|1|>]", &door).action, Action::Click("<|1|>".into()));
    }

    #[test]
    fn what_is_no_candidate_is_said_as_it_is() {
        for action in [Action::Click("next >".into()), Action::Search("red lamp".into())] {
            let text = written(&utterance(&[], &action, &results()));
            assert_eq!(text, format!(" {action}<|im_end|>"));
            assert_eq!(parse(&text, &results()), Utterance::of(None, action, true));
        }
    }
}
