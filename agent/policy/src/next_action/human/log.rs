//! Session logs of the original's site: one line for each opened page.
//!
//! ```text
//! {"page": "index", "url": …, "goal": {"asin", "instruction_text", …}}
//! {"page": "search_results", …, "content": {"keywords", "page", …}}
//! {"page": "item_page", …, "content": {"keywords", "page", "asin", "options"}}
//! {"page": "item_sub_page", …}        the URL names the text
//! {"page": "done", …}
//! ```
//!
//! [`actions`] returns the action that leads from each page to the next, or an error if there is none, as
//! after the browser's own buttons. The content of pages is not logged.

use std::collections::BTreeMap;

use serde::Deserialize;
use webshop_env::{Action, Detail};

use crate::next_action::human::skip::{Skip, SkipReason};

/// One line.
#[derive(Debug, Deserialize)]
pub(super) struct Opened {
    page: PageName,
    #[serde(default)]
    url: String,
    pub goal: LoggedGoal,
    #[serde(default)]
    content: Content,
}

/// The goal of a line.
#[derive(Debug, Deserialize)]
pub(super) struct LoggedGoal {
    #[serde(default)]
    pub asin: String,
    pub instruction_text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PageName {
    Index,
    SearchResults,
    ItemPage,
    ItemSubPage,
    Done,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Content {
    keywords: Keywords,
    page: u32,
    asin: String,
    options: BTreeMap<String, String>,
}

/// The words of a search, as a list or joined.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Keywords {
    Words(Vec<String>),
    Text(String),
}

impl Default for Keywords {
    fn default() -> Self {
        Self::Words(Vec::new())
    }
}

impl Keywords {
    fn text(&self) -> String {
        match self {
            Self::Words(words) => words.join(" "),
            Self::Text(text) => text.clone(),
        }
    }
}

/// The actions that open one page after the other, each with its line, up to the purchase.
pub(super) fn actions(pages: &[(usize, Opened)]) -> Result<Vec<(usize, Action)>, Skip> {
    let unknown = |line, detail| Skip { line, reason: SkipReason::NoAction, detail };
    match pages.first() {
        Some((_, first)) if first.page == PageName::Index => (),
        Some((line, _)) => return Err(unknown(*line, "the first page is not `index`".into())),
        None => return Err(unknown(0, "the log is empty".into())),
    }
    let mut actions = Vec::new();
    for pair in pages.windows(2) {
        let [(_, from), (line, to)] = pair else { continue };
        if from.page == PageName::Done {
            break;
        }
        match action_text(from, to) {
            Some(text) if text.is_empty() => (),
            Some(text) => actions.push((*line, text.parse().unwrap_or_else(|never| match never {}))),
            None => {
                let detail = format!("from `{}` to `{}`", from.summary(), to.summary());
                return Err(unknown(*line, detail));
            }
        }
    }
    Ok(actions)
}

/// The action that leads from one page to the next: empty if it is the same page, `None` if there is none.
fn action_text(from: &Opened, to: &Opened) -> Option<String> {
    use PageName::{Done, Index, ItemPage, ItemSubPage, SearchResults};
    let click = |label: &str| Some(format!("click[{label}]"));
    let is_same_search = from.content.keywords == to.content.keywords;
    let is_same_item = from.content.asin.eq_ignore_ascii_case(&to.content.asin);
    match (from.page, to.page) {
        (Index, Index) => Some(String::new()),
        (_, Index) => click("back to search"),
        (Index, SearchResults) => Some(format!("search[{}]", to.content.keywords.text())),
        (SearchResults, SearchResults) if is_same_search => {
            match i64::from(to.content.page) - i64::from(from.content.page) {
                0 => Some(String::new()),
                1 => click("next >"),
                -1 => click("< prev"),
                _ => None,
            }
        }
        (SearchResults, ItemPage) if is_same_search => click(&to.content.asin),
        (ItemPage, SearchResults) if is_same_search && from.content.page == to.content.page => {
            click("< prev")
        }
        (ItemPage, ItemPage) if is_same_item => {
            let before = &from.content.options;
            let mut changed =
                to.content.options.iter().filter(|(name, value)| before.get(*name) != Some(value));
            match (changed.next(), changed.next()) {
                _ if before.keys().any(|name| !to.content.options.contains_key(name)) => None,
                (None, _) => Some(String::new()),
                (Some((_, value)), None) => click(value),
                (Some(_), Some(_)) => None,
            }
        }
        (ItemPage, ItemSubPage) if is_same_item => click(to.detail()?.label()),
        (ItemSubPage, ItemPage) if is_same_item => click("< prev"),
        (ItemPage, Done) => click("buy now"),
        _ => None,
    }
}

impl Opened {
    /// The text named by the URL, which is
    /// `/item_sub_page/<session>/<asin>/<keywords>/<page>/<text>/<options>`.
    fn detail(&self) -> Option<Detail> {
        let parts = || self.url.rsplit('/');
        Detail::ALL.into_iter().find(|detail| parts().any(|part| part.eq_ignore_ascii_case(detail.label())))
    }

    fn summary(&self) -> String {
        let Content { keywords, page, asin, .. } = &self.content;
        match self.page {
            PageName::Index => "index".into(),
            PageName::SearchResults => format!("search_results {} {page}", keywords.text()),
            PageName::ItemPage => format!("item_page {asin}"),
            PageName::ItemSubPage => format!("item_sub_page {asin}"),
            PageName::Done => "done".into(),
        }
    }
}
