//! `compact`: the shop's action language with thought tags, and a mark for each listed product.
//!
//! ```text
//! completion = [ <think> words </think> ] action ⟨end⟩
//! action     = search[words] | click[label] | click[⟨mark k⟩]
//! ```
//!
//! A results page shows each product under a mark, a single token for the product's ASIN in clicks.
//! [`render_completion`] and [`parse`] are inverse on every available action of a page. Parsing never fails:
//! a completion without an action is a [`Action::Noop`]. Pages are rendered by [`CompactRenderer`].

use webshop_env::{Action, Compat, Page, ResultsPage};
use webshop_lm::chat::{Message, Role};

use crate::prompt_format::completion::{CompletionForm, ParsedCompletion};
use crate::prompt_format::conversation::Conversation;
use crate::prompt_format::format::Format;

pub use crate::prompt_format::compact_renderer::{
    CompactRenderer, END, END_THINK, MAX_MARKS, PROMPT_VERSION, Piece, PromptConfig, THINK, TURN, dollars,
    encode_pieces, mark, marks,
};

pub(super) struct Compact;

impl Format for Compact {
    fn name(&self) -> &'static str {
        "compact"
    }

    fn version(&self) -> &'static str {
        PROMPT_VERSION
    }

    fn form(&self) -> CompletionForm {
        CompletionForm {
            thought: Some((THINK, END_THINK)),
            search: (" search[", "]"),
            forbidden: &['[', ']'],
        }
    }

    /// The format as a chat, for models that do not know the marks: pages and actions as text.
    fn messages(&self, conversation: &Conversation, _n_dropped: usize) -> Vec<Message> {
        let user = |observation: &str| Message::text(Role::User, observation);
        let past = conversation.past().iter();
        let past = past.flat_map(|turn| [user(&turn.observed.observation), turn.completion.clone()]);
        past.chain([user(&conversation.current().observation)]).collect()
    }

    fn parse(&self, completion: &Message, page: &Page, rules: Compat) -> ParsedCompletion {
        parse(&completion.content, page, rules)
    }

    fn render_action(&self, action: &Action) -> String {
        action.to_string()
    }
}

/// A completion on `page` with its end token; without tags if `thought` is empty.
pub fn render_completion(thought: &str, action: &Action, page: &Page) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if !thought.is_empty() {
        pieces.extend([Piece::special(THINK), Piece::words(thought), Piece::special(END_THINK)]);
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

/// Parses the decoded completion of one turn on `page` of a shop with these rules, with or without the end token.
///
/// ```
/// use webshop_agent::compact::parse;
/// use webshop_env::{Compat, Page, SearchPage};
/// let page = Page::Search(SearchPage { instruction: "a lamp".into() });
/// let parsed = parse("<think> anything goes </think> search[lamp]<|im_end|>", &page, Compat::Repaired);
/// assert_eq!(parsed.thought.as_deref(), Some("anything goes"));
/// assert_eq!(parsed.action.to_string(), "search[lamp]");
/// ```
pub fn parse(text: &str, page: &Page, rules: Compat) -> ParsedCompletion {
    let text = text.trim();
    let text = text.strip_suffix(END).unwrap_or(text).trim();
    let (thought, action) = match text.strip_prefix(THINK).and_then(|rest| rest.split_once(END_THINK)) {
        Some((thought, action)) => (Some(thought.trim().to_string()), action.trim()),
        None => (None, text),
    };
    let action = match (Action::parse(action, rules), page) {
        (Action::Click(label), Page::Results(page)) => Action::Click(asin_of(&label, page).unwrap_or(label)),
        (action, _) => action,
    };
    let is_well_formed = !matches!(action, Action::Noop(_));
    ParsedCompletion::new(thought, action, is_well_formed)
}

/// The mark on `page` of the product that `action` clicks.
fn mark_of(action: &Action, page: &Page) -> Option<usize> {
    let (Action::Click(label), Page::Results(page)) = (action, page) else { return None };
    let place = page.items.iter().position(|item| item.id.as_str().eq_ignore_ascii_case(label))?;
    (place < MAX_MARKS).then_some(place + 1)
}

/// The label of the product under the mark `label` on `page`.
fn asin_of(label: &str, page: &ResultsPage) -> Option<String> {
    let k = (1..=MAX_MARKS).find(|&k| mark(k) == label.trim())?;
    Some(page.items.get(k - 1)?.id.as_str().to_lowercase())
}

#[cfg(test)]
mod tests {
    use webshop_env::{ResultItem, SearchPage};
    use webshop_products::{Cents, ProductId, ProductIdx};

    use super::*;

    fn results() -> Page {
        let item = |(at, asin): (u32, &str)| ResultItem {
            product: ProductIdx(at),
            id: ProductId::new(asin).unwrap(),
            title: "Lamp".into(),
            price_tag: "$5.0".into(),
            highest_price: Cents(500),
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

    fn text_of(pieces: &[Piece]) -> String {
        pieces.iter().map(Piece::text).collect()
    }

    #[test]
    fn an_unfinished_thought_is_a_noop() {
        let parsed = parse("<think> waterproof yes", &results(), Compat::Repaired);
        assert!(parsed.thought.is_none());
        assert!(matches!(parsed.action, Action::Noop(_)));
    }

    #[test]
    fn a_mark_stands_for_the_product_listed_under_it() {
        let action = Action::Click("b0lampbbbb".into());
        let text = text_of(&render_completion("the second", &action, &results()));
        assert_eq!(text, "<think> the second</think> click[<|2|>]<|im_end|>");
        assert_eq!(parse(&text, &results(), Compat::Repaired).action, action);
    }

    #[test]
    fn an_unlisted_mark_is_a_label() {
        assert_eq!(parse("click[<|3|>]", &results(), Compat::Repaired).action, Action::Click("<|3|>".into()));
        let door = Page::Search(SearchPage { instruction: "a lamp".into() });
        assert_eq!(parse("click[<|1|>]", &door, Compat::Repaired).action, Action::Click("<|1|>".into()));
    }

    #[test]
    fn other_actions_are_rendered_as_text() {
        for action in [Action::Click("next >".into()), Action::Search("red lamp".into())] {
            let text = text_of(&render_completion("", &action, &results()));
            assert_eq!(text, format!(" {action}<|im_end|>"));
            assert_eq!(parse(&text, &results(), Compat::Repaired), ParsedCompletion::new(None, action, true));
        }
    }
}
