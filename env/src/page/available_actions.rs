//! The actions available on a page.

use crate::action::Action;
use crate::page::{Page, SearchPage};
use serde::{Deserialize, Serialize};

/// The available actions of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AvailableActions {
    /// Whether the page has a search bar. A search is accepted on the other pages too.
    pub has_search_bar: bool,
    /// The labels, lower case: buttons, then products, then option values; each once, at the
    /// place of its first appearance.
    pub clickables: Vec<String>,
}

impl AvailableActions {
    /// Collects labels, which are lower-cased already, dropping repeats.
    pub(crate) fn collect(has_search_bar: bool, labels: impl Iterator<Item = String>) -> Self {
        let mut clickables: Vec<String> = Vec::with_capacity(24);
        let mut summaries: Vec<u64> = Vec::with_capacity(24);
        for label in labels {
            // Pages hold a few dozen labels; a hash set costs more than it saves.
            let summary = summary(&label);
            if !summaries.contains(&summary) || !clickables.contains(&label) {
                clickables.push(label);
                summaries.push(summary);
            }
        }
        AvailableActions { has_search_bar, clickables }
    }

    /// The clicks that do something. The search button is a label without an effect of its own, and an empty
    /// label or one with a line break cannot be written as an action.
    pub fn clicks(&self) -> impl Iterator<Item = Action> {
        self.labels().map(|label| Action::Click(label.to_owned()))
    }

    /// The labels of [`AvailableActions::clicks`].
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.clickables.iter().map(String::as_str);
        labels.filter(|label| !matches!(*label, "" | "search") && !label.contains('\n'))
    }
}

/// A number that is equal for equal labels and seldom for others: their length, first and last bytes.
fn summary(label: &str) -> u64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number: u64, &byte| number << 8 | u64::from(byte));
    let bytes = label.as_bytes();
    let [first, last] = [&bytes[..bytes.len().min(8)], &bytes[bytes.len().saturating_sub(8)..]].map(number);
    first ^ last.rotate_left(20) ^ (bytes.len() as u64).rotate_right(8)
}

impl Page {
    /// The available actions of this page.
    pub fn available_actions(&self) -> AvailableActions {
        let buttons = |labels: &'static [&'static str]| labels.iter().map(|&label| label.to_owned());
        match self {
            Page::Search(SearchPage { .. }) => AvailableActions::collect(true, buttons(&["search"])),
            Page::Results(page) => {
                let shown: &[&str] = match page.page_number {
                    0 | 1 => &["back to search", "next >"],
                    _ => &["back to search", "< prev", "next >"],
                };
                let links = page.items.iter().map(|item| item.id.as_str().to_lowercase());
                AvailableActions::collect(false, buttons(shown).chain(links))
            }
            Page::Item(page) => {
                let details = page.details().iter().map(|detail| detail.label().to_lowercase());
                let values = page.options.iter().flat_map(|list| &list.values);
                let labels = buttons(&["back to search", "< prev"])
                    .chain(details)
                    .chain(buttons(&["buy now"]))
                    .chain(values.map(|label| label.text.to_string()));
                AvailableActions::collect(false, labels)
            }
            Page::Detail(_) => AvailableActions::collect(false, buttons(&["back to search", "< prev"])),
            Page::Done(_) => AvailableActions::default(),
        }
    }
}
