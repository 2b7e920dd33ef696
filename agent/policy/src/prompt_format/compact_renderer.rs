//! What the model reads: pages as token ids in the `plain` layout.
//!
//! A [`Transcriber`] turns each [`Page`] of a trip into the tokens appended to the model's context. It is
//! stateful where a reader would be: what has just been read is not repeated. A results page that was
//! already shown comes back as one word, and an item page after a chosen option is a nod. Fewer tokens a
//! trip is speed, and a small model learns from short contexts first.
//!
//! ```text
//! context   = instruction ⟨turn⟩ utterance ⟨end⟩ page ⟨turn⟩ utterance ⟨end⟩ page …
//! results   = { ⟨mark k⟩ title price }               the first `results_shown` of the page
//! item      = { name: value, value … ; } ⟨mark k⟩ title price
//! ```
//!
//! Words are always preceded by a space, so that a word is the same token wherever it stands (see
//! [`webshop_lm::tokenizer`]). Page text never yields a special token: only this module places marks.
//!
//! It does not parse what the model says; that is [`crate::prompt_format`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_env::{ItemPage, NoopReason, Page, ResultsPage};
use webshop_products::{Catalog, Cents, Price, ProductIdx};

use crate::error::AgentError;
use webshop_lm::ShopTokenizer;

/// Version of the layout. It travels with every result; a change of layout is a change of version.
pub const PROMPT_VERSION: &str = "plain-v2";

/// Most candidates a results page can show: the shop lists ten a page.
pub const MAX_MARKS: usize = 10;

/// Longest part of a description, feature list or attribute page that is read, in characters.
const DETAIL_CHARS: usize = 240;

/// Opens an agent turn. The Qwen family's own marker, so that its tokenizers know it as one token.
pub const TURN: &str = "<|im_start|>";
/// Ends an agent turn; sampled by the model and therefore trained.
pub const END: &str = "<|im_end|>";
/// Opens the written thought.
pub const THINK: &str = "<think>";
/// Ends the written thought.
pub const END_THINK: &str = "</think>";

/// The mark that stands before candidate `k` (from 1), on the results page and on its own.
pub fn mark(k: usize) -> String {
    format!("<|{k}|>")
}

/// Every special token of the plain layout beyond those of the tokenizer itself.
pub fn marks() -> Vec<String> {
    (1..=MAX_MARKS).map(mark).collect()
}

/// How much of a page is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptConfig {
    /// Candidates of a results page that are shown, 1 to 10.
    pub results_shown: usize,
}

/// A piece of trusted or untrusted text on its way to token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A special token, placed by the layout.
    Special(String),
    /// Plain text: can never yield a special token.
    Text(String),
}

impl Piece {
    /// Plain text preceded by the space that makes its first word an ordinary word.
    pub fn words(text: impl AsRef<str>) -> Self {
        Self::Text(format!(" {}", text.as_ref().trim()))
    }

    /// The text itself, special or not.
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

/// Token ids of `pieces`, in order.
pub fn encode(tokenizer: &ShopTokenizer, pieces: &[Piece]) -> Result<Vec<u32>, AgentError> {
    let mut ids = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Special(text) => ids.push(tokenizer.special_id(text)?),
            Piece::Text(text) => ids.extend(tokenizer.encode_plain(text)?),
        }
    }
    Ok(ids)
}

/// Reads one trip's pages aloud, remembering what has been read.
#[derive(Clone, Debug)]
pub struct Transcriber {
    config: PromptConfig,
    shown_results: Option<(Arc<str>, u32)>,
    listed: Vec<ProductIdx>,
    shown_item: Option<ProductIdx>,
    greeted: bool,
}

impl Transcriber {
    /// A reader at the shop's door.
    pub fn new(config: PromptConfig) -> Self {
        Self { config, shown_results: None, listed: Vec::new(), shown_item: None, greeted: false }
    }

    /// What is appended to the context when `page` is met, up to and including the mark that opens the
    /// agent's turn. `noop` says that the last action was not understood or not possible; the page is
    /// then the old one.
    pub fn read(&mut self, catalog: &Catalog, page: &Page, noop: Option<&NoopReason>) -> Vec<Piece> {
        let mut pieces = match (noop, page) {
            (Some(_), _) => vec![Piece::words("nothing happens")],
            (None, Page::Search(_)) if self.greeted => vec![Piece::words("back at the door")],
            (None, Page::Search(search)) => vec![Piece::words(&search.instruction)],
            (None, Page::Results(results)) => self.results(catalog, results),
            (None, Page::Item(item)) => self.item(catalog, item),
            (None, Page::Detail(detail)) => vec![Piece::words(shorten(&detail.lines.join(" ")))],
            (None, Page::Done(_)) => vec![Piece::words("done")],
        };
        self.greeted = true;
        pieces.push(Piece::special(TURN));
        pieces
    }

    fn results(&mut self, catalog: &Catalog, page: &ResultsPage) -> Vec<Piece> {
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
            let price = &catalog.get(item.product).price;
            pieces.push(Piece::special(mark(k + 1)));
            pieces.push(Piece::words(&item.title));
            pieces.push(Piece::words(weighed(price)));
        }
        pieces
    }

    fn item(&mut self, catalog: &Catalog, page: &ItemPage) -> Vec<Piece> {
        if self.shown_item == Some(page.product) {
            return vec![Piece::words("ok")];
        }
        self.shown_item = Some(page.product);
        let options = page.options.iter().map(|group| {
            let values: Vec<&str> = group.values.iter().map(|value| &*value.text).collect();
            Piece::words(format!("{}: {};", group.name, values.join(", ")))
        });
        let mark = self.mark_of(page.product).map(Piece::special);
        let price = Piece::words(weighed(&catalog.get(page.product).price));
        options.chain(mark).chain([Piece::words(&page.title), price]).collect()
    }

    /// The mark under which `product` was listed.
    fn mark_of(&self, product: ProductIdx) -> Option<String> {
        let place = self.listed.iter().position(|&listed| listed == product)?;
        (place < MAX_MARKS).then(|| mark(place + 1))
    }
}

/// The price a customer weighs: the dearer end of a range.
pub fn weighed(price: &Price) -> String {
    dollars(price.high)
}

/// An amount as whole dollars in three digits, `$084`: of two such amounts the first digit that differs
/// tells which is more, and a digit is a token. Limits are whole tens below a thousand, so nothing that
/// decides is lost; more than `$999` is written so.
pub fn dollars(amount: Cents) -> String {
    format!("${:03}", amount.0.div_euclid(100).clamp(0, 999))
}

fn shorten(text: &str) -> &str {
    match text.char_indices().nth(DETAIL_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
