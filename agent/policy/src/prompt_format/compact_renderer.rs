//! Pages as token ids in the `compact` layout.
//!
//! A [`CompactRenderer`] turns each [`Page`] of an episode into the tokens that are appended to the model's
//! context. It does not repeat what the context already holds: a results page shown before becomes a short
//! phrase, and an item page after a selected option becomes `ok`. Fewer tokens per episode are faster, and a
//! small model learns from short contexts first.
//!
//! ```text
//! context   = instruction ⟨turn⟩ completion ⟨end⟩ page ⟨turn⟩ completion ⟨end⟩ page …
//! results   = { ⟨mark k⟩ title price }               the first `results_shown` of the page
//! item      = { name: value, value … ; } ⟨mark k⟩ title price
//! price     = the highest if it is a range, or with `price_ranges` both ends of it
//! details   = the first `detail_chars` characters of a description, feature list or attribute page
//! ```
//!
//! The page is the only source. Words are always preceded by a space, so that a word is the same token
//! everywhere (see [`webshop_lm::tokenizer`]). Page text never yields a special token: only this module
//! places marks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_env::{ItemPage, NoopReason, Page, ResultsPage};
use webshop_products::{Cents, ProductIdx};

use crate::error::AgentError;
use webshop_lm::BpeTokenizer;

/// The version of the layout, recorded with every result. A change of layout changes it.
pub const PROMPT_VERSION: &str = "compact-v2";

/// The most products on a results page.
pub const MAX_MARKS: usize = 10;

/// [`PromptConfig::detail_chars`] where nothing else is stated: more than the longest such page of the embedded catalogs (349), and
/// less than the feature lists of most of the original's products.
pub const DETAIL_CHARS: usize = 400;

/// Opens a turn of the model. Qwen's own marker, so its tokenizers have it as one token.
pub const TURN: &str = "<|im_start|>";
/// Ends a turn of the model. It is sampled, and so trained on.
pub const END: &str = "<|im_end|>";
/// Opens the written thought.
pub const THINK: &str = "<think>";
/// Ends the written thought.
pub const END_THINK: &str = "</think>";

/// The mark of listed product `k` (from 1), on the results page and on its own page.
pub fn mark(k: usize) -> String {
    format!("<|{k}|>")
}

/// All marks: the special tokens of the layout besides those of Qwen.
pub fn marks() -> Vec<String> {
    (1..=MAX_MARKS).map(mark).collect()
}

/// How much of a page is in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptConfig {
    /// Products of a results page that are shown, 1 to 10.
    pub results_shown: usize,
    /// Whether a price that is a range is shown by its lowest and its highest amount; else by the highest alone.
    #[serde(default)]
    pub price_ranges: bool,
    /// The most characters of a description, feature list or attribute page that are shown. Experts read all of a page, so that
    /// their demonstrations may copy what a prompt with fewer does not show.
    #[serde(default = "detail_chars")]
    pub detail_chars: usize,
}

fn detail_chars() -> usize {
    DETAIL_CHARS
}

impl PromptConfig {
    /// The first `results_shown` products of a results page, of each the highest price alone, and [`DETAIL_CHARS`].
    pub const fn new(results_shown: usize) -> Self {
        Self { results_shown, price_ranges: false, detail_chars: DETAIL_CHARS }
    }

    /// The lines of a page that lists details, as far as they are shown.
    fn detail(self, lines: &[String]) -> Piece {
        let text = lines.join(" ");
        let end = text.char_indices().nth(self.detail_chars).map_or(text.len(), |(end, _)| end);
        Piece::words(&text[..end])
    }

    /// The price of a product as it is shown.
    fn price(self, lowest: Cents, highest: Cents) -> Piece {
        let highest_only = !self.price_ranges || lowest == highest;
        let lowest = if highest_only { String::new() } else { format!("{} ", dollars(lowest)) };
        Piece::words(lowest + &dollars(highest))
    }
}

/// Text to be encoded: a special token, or text that cannot yield one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A special token.
    Special(String),
    /// Text in which special tokens are not recognized.
    Text(String),
}

impl Piece {
    /// Trimmed text after a space, so that its first word is encoded as every other word.
    pub fn words(text: impl AsRef<str>) -> Self {
        Self::Text(format!(" {}", text.as_ref().trim()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        match self {
            Self::Special(text) | Self::Text(text) => text,
        }
    }

    /// The special token with this text.
    pub fn special(text: impl Into<String>) -> Self {
        Self::Special(text.into())
    }
}

/// The token ids of `pieces`.
///
/// # Errors
/// If the tokenizer lacks a special token.
pub fn encode_pieces(tokenizer: &BpeTokenizer, pieces: &[Piece]) -> Result<Vec<u32>, AgentError> {
    let mut ids = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Special(text) => ids.push(tokenizer.special_id(text)?),
            Piece::Text(text) => ids.extend(tokenizer.encode_text(text)?),
        }
    }
    Ok(ids)
}

/// Renders the pages of one episode, and keeps what the context already holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompactRenderer {
    config: PromptConfig,
    shown_results: Option<(Arc<str>, u32)>,
    listed: Vec<ProductIdx>,
    shown_item: Option<ProductIdx>,
    has_started: bool,
}

impl CompactRenderer {
    /// A renderer at the start of an episode.
    pub fn new(config: PromptConfig) -> Self {
        Self { config, shown_results: None, listed: Vec::new(), shown_item: None, has_started: false }
    }

    /// The text appended to the context for `page`, up to and including the token that opens the model's
    /// turn. With `noop`, the page is the previous one and the text is `nothing happens`.
    pub fn render(&mut self, page: &Page, noop: Option<NoopReason>) -> Vec<Piece> {
        let mut pieces = match (noop, page) {
            (Some(_), _) => vec![Piece::words("nothing happens")],
            (None, Page::Search(_)) if self.has_started => vec![Piece::words("back at the search")],
            (None, Page::Search(search)) => vec![Piece::words(&search.instruction)],
            (None, Page::Results(results)) => self.results(results),
            (None, Page::Item(item)) => self.item(item),
            (None, Page::Detail(page)) => vec![self.config.detail(&page.lines)],
            (None, Page::Done(_)) => vec![Piece::words("done")],
        };
        self.has_started = true;
        pieces.push(Piece::special(TURN));
        pieces
    }

    fn results(&mut self, page: &ResultsPage) -> Vec<Piece> {
        let key = (page.query.clone(), page.page_number);
        self.shown_item = None;
        if self.shown_results.as_ref() == Some(&key) {
            return vec![Piece::words("back at the results")];
        }
        self.shown_results = Some(key);
        self.listed = page.items.iter().map(|item| item.product).collect();
        if page.items.is_empty() {
            return vec![Piece::words("no results")];
        }
        let mut pieces = Vec::new();
        for (k, item) in page.items.iter().take(self.config.results_shown).enumerate() {
            pieces.push(Piece::special(mark(k + 1)));
            pieces.push(Piece::words(&item.title));
            pieces.push(self.config.price(item.lowest_price, item.highest_price));
        }
        pieces
    }

    fn item(&mut self, page: &ItemPage) -> Vec<Piece> {
        if self.shown_item == Some(page.product) {
            return vec![Piece::words("ok")];
        }
        self.shown_item = Some(page.product);
        let options = page.options.iter().map(|group| {
            let values: Vec<&str> = group.values.iter().map(|value| &*value.text).collect();
            Piece::words(format!("{}: {};", group.name, values.join(", ")))
        });
        let mark = self.mark_of(page.product).map(Piece::special);
        let price = self.config.price(page.lowest_price, page.highest_price);
        options.chain(mark).chain([Piece::words(&page.title), price]).collect()
    }

    /// The mark of `product` on the last results page.
    fn mark_of(&self, product: ProductIdx) -> Option<String> {
        let place = self.listed.iter().position(|&listed| listed == product)?;
        (place < MAX_MARKS).then(|| mark(place + 1))
    }
}

/// An amount in whole dollars as three digits, `$084`, so that the first differing digit orders two amounts;
/// each digit is a token. Larger amounts are `$999`. Price limits are multiples of ten dollars, so only an amount less than
/// a dollar above its limit compares otherwise: $40.49 and a limit of $40 are both `$040`.
pub fn dollars(amount: Cents) -> String {
    format!("${:03}", amount.0.div_euclid(100).clamp(0, 999))
}
