//! Observations by name.

use crate::convert::value_error;
use pyo3::prelude::*;
use webshop_env::ObservationMode;

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
