//! Observations by name.

use crate::convert::value_error;
use pyo3::prelude::*;
use webshop_env::{ObservationMode, ShopEnv};

/// The form of observations called `name`.
///
/// # Errors
/// `ValueError`, if there is none.
pub(crate) fn observation_mode(name: &str) -> PyResult<ObservationMode> {
    match name {
        "text" => Ok(ObservationMode::Text),
        "text_rich" => Ok(ObservationMode::TextRich),
        "html" => Ok(ObservationMode::Html),
        "json" => Ok(ObservationMode::Json),
        "url" => Ok(ObservationMode::Url),
        other => Err(value_error(format!(
            "unknown observation `{other}`; use `text`, `text_rich`, `html`, `json` or `url`"
        ))),
    }
}

/// The current page in a form of observations, whichever the environment's own is.
///
/// # Errors
/// `ValueError`, if a page cannot be written as JSON.
pub(crate) fn observe(env: &ShopEnv, mode: ObservationMode) -> PyResult<String> {
    let page = env.page();
    match mode {
        ObservationMode::Text => Ok(page.text()),
        ObservationMode::TextRich => Ok(page.text_rich()),
        ObservationMode::Html => Ok(page.html()),
        ObservationMode::Url => Ok(page.url(&env.session().name())),
        ObservationMode::Json => serde_json::to_string(page).map_err(value_error),
    }
}
