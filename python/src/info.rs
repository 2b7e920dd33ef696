//! What a step is described by, beside its observation and its reward.

use crate::convert::{available, breakdown};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use webshop_env::{AvailableActions, RewardBreakdown, Shop, ShopEnv, StepInfo};

/// The description of a lane's or a session's last step.
pub(crate) struct Info {
    shop: Arc<Shop>,
    goal: u32,
    available: AvailableActions,
    noop: Option<String>,
    step: u32,
    breakdown: Option<RewardBreakdown>,
    digest: String,
}

impl Info {
    /// Of an environment whose last step had these diagnostics.
    pub(crate) fn new(env: &ShopEnv, step: &StepInfo) -> Info {
        let session = env.session();
        Info {
            shop: Arc::clone(env.shop()),
            goal: session.goal().0,
            available: env.page().available_actions(),
            noop: step.noop.map(|reason| reason.to_string()),
            step: session.steps(),
            breakdown: step.breakdown,
            digest: session.digest().to_string(),
        }
    }

    fn instruction(&self) -> &str {
        &self.shop.goals().goals()[self.goal as usize].instruction
    }

    /// One dictionary; `reward_parts` only after a purchase.
    pub(crate) fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "goal"), self.goal)?;
        dict.set_item(intern!(py, "instruction"), self.instruction())?;
        dict.set_item(intern!(py, "noop"), self.noop)?;
        dict.set_item(intern!(py, "step"), self.step)?;
        dict.set_item(intern!(py, "digest"), self.digest)?;
        if let Some(counts) = &self.breakdown {
            dict.set_item(intern!(py, "reward_parts"), breakdown(py, counts)?)?;
        }
        dict.set_item(intern!(py, "available_actions"), available(py, self.available)?)?;
        Ok(dict)
    }

    /// One list for each field, in the order of `infos`; `reward_parts` has None where nothing was bought.
    pub(crate) fn into_columns(py: Python<'_>, mut infos: Vec<Info>) -> PyResult<Bound<'_, PyDict>> {
        let parts: Vec<Option<Bound<'_, PyAny>>> = infos
            .iter()
            .map(|info| info.breakdown.as_ref().map(|counts| breakdown(py, counts)).transpose())
            .collect::<PyResult<_>>()?;
        let clickables: Vec<Vec<String>> =
            infos.iter_mut().map(|info| std::mem::take(&mut info.available.clickables)).collect();
        let dict = PyDict::new(py);
        dict.set_item("goal", PyList::new(py, infos.iter().map(|info| info.goal))?)?;
        dict.set_item("instruction", PyList::new(py, infos.iter().map(Info::instruction))?)?;
        dict.set_item("noop", PyList::new(py, infos.iter().map(|info| &info.noop))?)?;
        dict.set_item("step", PyList::new(py, infos.iter().map(|info| info.step))?)?;
        dict.set_item("digest", PyList::new(py, infos.iter().map(|info| &info.digest))?)?;
        dict.set_item(
            "has_search_bar",
            PyList::new(py, infos.iter().map(|info| info.available.has_search_bar))?,
        )?;
        dict.set_item("clickables", PyList::new(py, clickables)?)?;
        dict.set_item("reward_parts", PyList::new(py, parts)?)?;
        Ok(dict)
    }
}
