//! The flag that names a form of observations.

use webshop_env::ObservationMode;

/// [`ObservationMode`] as a flag.
#[derive(clap::ValueEnum, Clone, Copy)]
#[value(rename_all = "snake_case")]
pub(crate) enum ObservationArg {
    /// The visible text on one line
    Text,
    /// The visible text, one piece a line, with clickable pieces marked
    TextRich,
    /// The HTML document
    Html,
    /// The URL
    Url,
    /// The page's fields as JSON
    Json,
}

impl From<ObservationArg> for ObservationMode {
    fn from(mode: ObservationArg) -> ObservationMode {
        match mode {
            ObservationArg::Text => ObservationMode::Text,
            ObservationArg::TextRich => ObservationMode::TextRich,
            ObservationArg::Html => ObservationMode::Html,
            ObservationArg::Url => ObservationMode::Url,
            ObservationArg::Json => ObservationMode::Json,
        }
    }
}
