//! Values and errors of the library as Python's.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::fmt::Display;
use webshop_env::{AvailableActions, EnvConfig, ObservationMode, RewardBreakdown};

/// A `ValueError` with this text.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The settings of an episode. Raises `ValueError` if it has no step.
pub(crate) fn env_config(max_steps: i64, observation: ObservationMode) -> PyResult<EnvConfig> {
    match u32::try_from(max_steps) {
        Ok(max_steps @ 1..) => Ok(EnvConfig { max_steps, observation }),
        _ => Err(value_error(format!("`max_steps` is {max_steps}; it must be from 1 to {}", u32::MAX))),
    }
}

/// The value that Python's `json` reads from what `value` is written as.
pub(crate) fn from_json<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(value_error)?;
    py.import("json")?.call_method1("loads", (text,))
}

/// `{"has_search_bar": bool, "clickables": list[str]}`.
pub(crate) fn available<'py>(py: Python<'py>, actions: AvailableActions) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("has_search_bar", actions.has_search_bar)?;
    dict.set_item("clickables", actions.clickables)?;
    Ok(dict)
}

/// The counts of a purchase with its reward, as a dictionary.
pub(crate) fn breakdown<'py>(py: Python<'py>, counts: &RewardBreakdown) -> PyResult<Bound<'py, PyAny>> {
    let dict = from_json(py, counts)?;
    dict.set_item("r_type", counts.r_type())?;
    dict.set_item("total", counts.total())?;
    Ok(dict)
}
