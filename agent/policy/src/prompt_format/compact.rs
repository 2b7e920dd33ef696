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

use crate::prompt_format::completion::ParsedCompletion;
use crate::prompt_format::text;

pub use crate::prompt_format::compact_renderer::{
    CompactRenderer, DETAIL_CHARS, END, END_THINK, MAX_MARKS, PROMPT_VERSION, Piece, PromptConfig, THINK,
    TURN, dollars, encode_pieces, mark, marks,
};

/// A completion on `page` with its end token; without tags if `thought` is empty.
pub fn render_completion(thought: &str, action: &Action, page: &Page) -> Vec<Piece> {
    let Some(k) = mark_of(action, page) else { return text::render_completion(thought, action) };
    let click = vec![Piece::words("click["), Piece::special(mark(k)), Piece::Text("]".into())];
    text::with_thought(thought, click)
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
pub fn parse(completion: &str, page: &Page, rules: Compat) -> ParsedCompletion {
    let parsed = text::parse(completion, rules);
    let product = match (&parsed.action, page) {
        (Action::Click(label), Page::Results(page)) => asin_of(label, page),
        _ => None,
    };
    match product {
        Some(asin) => ParsedCompletion { action: Action::Click(asin), ..parsed },
        None => parsed,
    }
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
    use webshop_env::{Detail, DetailPage, ResultItem, SearchPage};
    use webshop_products::{Cents, ProductId, ProductIdx, Selection};

    use super::*;

    fn results() -> Page {
        let item = |(at, asin): (u32, &str)| ResultItem {
            product: ProductIdx(at),
            id: ProductId::new(asin).unwrap(),
            title: "Lamp".into(),
            price_tag: "$5.0".into(),
            lowest_price: Cents(500),
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
    fn a_range_of_prices_is_shown_by_its_highest_amount_or_by_both() {
        let Page::Results(mut page) = results() else { unreachable!() };
        page.items[0].highest_price = Cents(1299);
        let rendered = |price_ranges| {
            let mut renderer = CompactRenderer::new(PromptConfig { price_ranges, ..PromptConfig::new(5) });
            text_of(&renderer.render(&Page::Results(page.clone()), None))
        };
        assert_eq!(rendered(false), "<|1|> Lamp $012<|2|> Lamp $005<|im_start|>");
        assert_eq!(rendered(true), "<|1|> Lamp $005 $012<|2|> Lamp $005<|im_start|>");
    }

    #[test]
    fn a_page_of_details_is_shown_up_to_a_number_of_characters() {
        let page = Page::Detail(DetailPage {
            instruction: "a lamp".into(),
            query: "lamp".into(),
            page_number: 1,
            product: ProductIdx(7),
            id: ProductId::new("B0LAMPAAAA").unwrap(),
            selection: Selection::default(),
            detail: Detail::Features,
            lines: vec!["café lamp".into(), "warm light".into()],
        });
        let rendered = |detail_chars| {
            let mut renderer = CompactRenderer::new(PromptConfig { detail_chars, ..PromptConfig::new(5) });
            text_of(&renderer.render(&page, None))
        };
        assert_eq!(rendered(14), " café lamp warm<|im_start|>");
        assert_eq!(rendered(20), " café lamp warm light<|im_start|>");
        assert_eq!(rendered(19), " café lamp warm ligh<|im_start|>");
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
