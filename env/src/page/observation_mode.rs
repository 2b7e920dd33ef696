//! The text forms of a page.

use crate::page::Page;
use serde::{Deserialize, Serialize};

/// The text forms of an observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationMode {
    /// The HTML document.
    Html,
    /// The visible text on one line.
    #[default]
    Text,
    /// The visible text, one piece a line, with clickable pieces marked.
    TextRich,
    /// The URL.
    Url,
    /// The page's fields as JSON.
    Json,
}

impl Page {
    /// The page as text. Only a URL shows `session`, the name of the session.
    pub fn render(&self, mode: ObservationMode, session: &str) -> String {
        match mode {
            ObservationMode::Html => self.html(),
            ObservationMode::Text => self.text(),
            ObservationMode::TextRich => self.text_rich(),
            ObservationMode::Url => self.url(session),
            ObservationMode::Json => {
                serde_json::to_string(self).expect("a page holds strings and finite numbers only")
            }
        }
    }
}
