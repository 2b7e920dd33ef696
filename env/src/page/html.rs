//! A page as an HTML document that a browser shows as a shop.
//!
//! The markup is this shop's, but what agents read is the original's: the visible texts and their order,
//! the classes `btn` and `product-link`, radio inputs with name and value, and the ids
//! `search_input`, `instruction-text` and `reward`. [`crate::read_html`] recovers the texts and the available
//! actions from it.
//!
//! Between two tags the templates break the line, never put a lone space: a space alone would be
//! a visible text. Documents are whole in themselves and fetch nothing.

use crate::page::{DetailPage, DonePage, ItemPage, Page, ResultsPage, SearchPage};
use askama::Template;
use askama::filters::Escaper;
use std::fmt::{self, Write};

#[derive(Template)]
#[template(path = "search.html")]
struct SearchView<'a> {
    page: &'a SearchPage,
}

#[derive(Template)]
#[template(path = "results.html")]
struct ResultsView<'a> {
    page: &'a ResultsPage,
}

#[derive(Template)]
#[template(path = "item.html")]
struct ItemView<'a> {
    page: &'a ItemPage,
}

#[derive(Template)]
#[template(path = "detail.html")]
struct DetailView<'a> {
    page: &'a DetailPage,
}

#[derive(Template)]
#[template(path = "done.html")]
struct DoneView<'a> {
    page: &'a DonePage,
}

impl Page {
    /// The page as a whole HTML document.
    pub fn html(&self) -> String {
        let document = match self {
            Page::Search(page) => SearchView { page }.render(),
            Page::Results(page) => ResultsView { page }.render(),
            Page::Item(page) => ItemView { page }.render(),
            Page::Detail(page) => DetailView { page }.render(),
            Page::Done(page) => DoneView { page }.render(),
        };
        document.expect("the templates only print strings and numbers, into memory")
    }
}

/// The escaper of templates: text such that a browser reads back every character, the carriage return included.
#[derive(Clone, Copy, Debug)]
pub struct HtmlText;

impl Escaper for HtmlText {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        for piece in string.split_inclusive(['&', '<', '>', '"', '\'', '\r']) {
            let (plain, last) = match piece.char_indices().next_back() {
                Some((at, last)) => (&piece[..at], last),
                None => continue,
            };
            let escaped = match last {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&#34;",
                '\'' => "&#39;",
                '\r' => "&#13;",
                _ => {
                    dest.write_str(piece)?;
                    continue;
                }
            };
            dest.write_str(plain)?;
            dest.write_str(escaped)?;
        }
        Ok(())
    }
}

/// The letter on the tile that replaces the image.
fn letter(title: &str) -> String {
    let first = title.chars().find(|c| c.is_alphanumeric());
    first.map(String::from).unwrap_or_default()
}
