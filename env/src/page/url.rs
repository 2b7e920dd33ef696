//! URLs of pages, as in the original.

use crate::page::Page;
use webshop_pycompat::{UnicodeAge, json_dict, repr_dict};

/// The base URL of the original.
const BASE: &str = "http://127.0.0.1:3000";

impl Page {
    /// The URL of this page in the session with this name. Nothing in it is escaped; the selected values are
    /// written as JSON on the item page and as a Python dictionary elsewhere.
    pub fn url(&self, session: &str) -> String {
        let keywords = |query: &str| query.replace(' ', "+");
        match self {
            Page::Search(_) => format!("{BASE}/{session}"),
            Page::Results(page) => {
                format!("{BASE}/search_results/{session}/{}/{}", keywords(&page.query), page.page_number)
            }
            Page::Item(page) => format!(
                "{BASE}/item_page/{session}/{}/{}/{}/{}",
                page.id,
                keywords(&page.query),
                page.page_number,
                json_dict(page.selection.iter())
            ),
            Page::Detail(page) => format!(
                "{BASE}/item_sub_page/{session}/{}/{}/{}/{}/{}",
                page.id,
                keywords(&page.query),
                page.page_number,
                page.detail,
                repr_dict(page.selection.iter(), UnicodeAge::V12_1)
            ),
            Page::Done(page) => {
                format!(
                    "{BASE}/done/{session}/{}/{}",
                    page.id,
                    repr_dict(page.selection.iter(), UnicodeAge::V12_1)
                )
            }
        }
    }
}
