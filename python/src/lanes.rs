//! Many episodes that take one step in one call.

use crate::compact::{action_of, prompt, renderer};
use crate::convert::{env_config, value_error};
use crate::goals::goal_id;
use crate::info::Info;
use crate::observation::observation_mode;
use crate::pool::Pool;
use crate::shop::Shop;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use rayon::prelude::*;
use std::sync::Arc;
use webshop_agent::compact::{CompactRenderer, PromptConfig};
use webshop_env::{Action, ObservationMode, VecEnv};
use webshop_products::GoalId;

/// Texts, rewards, terminated, truncated and infos of some lanes: lists, and a dictionary of lists.
type Columns<'py> =
    (Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyList>, Bound<'py, PyDict>);

/// n lanes, each an episode; they begin at goal 0.
///
/// observation: as of `Session.observe`, or "compact": prompts of the format, whose pages of results show
/// `results_shown` products, with both ends of a price that is a range if `price_ranges`, and whose pages of details show
/// `detail_chars` characters, and actions are completions.
/// threads: 0 for one a core. Raises ValueError for another observation, and for a shop without goals.
#[pyclass(module = "webshop._native")]
pub(crate) struct Lanes {
    inner: VecEnv,
    /// With the observation "compact": at the start of an episode, and of each lane.
    prompts: Option<(CompactRenderer, Vec<CompactRenderer>)>,
    pool: Pool,
}

impl Lanes {
    /// Calls `compute` in the pool, which begins with the first call in a process.
    fn compute<T: Send>(
        &mut self,
        py: Python<'_>,
        compute: impl FnOnce(&mut VecEnv) -> T + Send,
    ) -> PyResult<T> {
        let threads = self.pool.threads()?;
        let inner = &mut self.inner;
        Ok(py.detach(|| threads.install(|| compute(inner))))
    }

    /// # Errors
    /// `ValueError`, if a lane is not there or is named twice, or there are not as many values as lanes.
    fn check(&self, lanes: &[usize], n_values: usize) -> PyResult<()> {
        if lanes.len() != n_values {
            return Err(value_error(format!("there are {} lanes and {n_values} values", lanes.len())));
        }
        let mut seen = vec![false; self.inner.n_lanes()];
        for &lane in lanes {
            match seen.get_mut(lane) {
                None => {
                    return Err(value_error(format!("there is no lane {lane} of {}", self.inner.n_lanes())));
                }
                Some(true) => return Err(value_error(format!("lane {lane} is named twice"))),
                Some(is_seen) => *is_seen = true,
            }
        }
        Ok(())
    }

    /// Changes lanes, and reads the columns of these.
    fn columns<'py>(
        &mut self,
        py: Python<'py>,
        lanes: &[usize],
        change: impl FnOnce(&mut VecEnv) + Send,
    ) -> PyResult<Columns<'py>> {
        let is_compact = self.prompts.is_some();
        let read: Vec<(String, Info)> = self.compute(py, |inner| {
            change(inner);
            let read = |&lane: &usize| {
                let step = &inner.steps()[lane];
                let text = if is_compact { String::new() } else { step.observation.content() };
                (text, Info::new(&inner.lanes()[lane], &step.info))
            };
            lanes.par_iter().with_min_len(16).map(read).collect()
        })?;
        let (mut texts, infos): (Vec<String>, Vec<Info>) = read.into_iter().unzip();
        if let Some((_, prompts)) = &mut self.prompts {
            for (text, &lane) in texts.iter_mut().zip(lanes) {
                let step = &self.inner.steps()[lane];
                *text = prompt(&mut prompts[lane], step.observation.page(), step.info.noop);
            }
        }
        let steps = lanes.iter().map(|&lane| &self.inner.steps()[lane]);
        Ok((
            PyList::new(py, texts)?,
            PyList::new(py, steps.clone().map(|step| step.reward))?,
            PyList::new(py, steps.clone().map(|step| step.terminated))?,
            PyList::new(py, steps.map(|step| step.truncated))?,
            Info::into_columns(py, infos)?,
        ))
    }
}

#[pymethods]
impl Lanes {
    #[new]
    #[pyo3(signature = (
        shop, n, *, max_steps=15, observation="text", results_shown=5, price_ranges=false, detail_chars=400, threads=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        shop: Py<Shop>,
        n: usize,
        max_steps: i64,
        observation: &str,
        results_shown: usize,
        price_ranges: bool,
        detail_chars: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let shop = Arc::clone(&shop.get().inner);
        let first = goal_id(&shop, 0)?;
        let (observation, prompts) = match observation {
            "compact" => {
                let start = renderer(PromptConfig { results_shown, price_ranges, detail_chars })?;
                (ObservationMode::Text, Some((start.clone(), vec![start; n])))
            }
            other => (observation_mode(other)?, None),
        };
        let config = env_config(max_steps, observation)?;
        let inner = py.detach(|| VecEnv::new(&shop, config, &vec![first; n]));
        Ok(Lanes { inner, prompts, pool: Pool::new(threads) })
    }

    /// Starts episodes of goals in as many lanes, and returns the columns of these.
    ///
    /// Raises ValueError for an unknown lane or goal, and for a lane named twice.
    fn reset<'py>(&mut self, py: Python<'py>, lanes: Vec<usize>, goals: Vec<i64>) -> PyResult<Columns<'py>> {
        self.check(&lanes, goals.len())?;
        let known =
            |(&lane, goal): (&usize, i64)| Ok((lane, goal_id(self.inner.lanes()[lane].shop(), goal)?));
        let goals: Vec<(usize, GoalId)> = lanes.iter().zip(goals).map(known).collect::<PyResult<_>>()?;
        if let Some((start, prompts)) = &mut self.prompts {
            for &lane in &lanes {
                prompts[lane] = start.clone();
            }
        }
        self.columns(py, &lanes, |inner| {
            inner.reset_lanes(&goals);
        })
    }

    /// Takes actions in as many lanes, and returns the columns of these.
    ///
    /// Raises ValueError for an unknown lane, and for a lane named twice.
    fn step<'py>(
        &mut self,
        py: Python<'py>,
        lanes: Vec<usize>,
        actions: Vec<Bound<'py, PyString>>,
    ) -> PyResult<Columns<'py>> {
        self.check(&lanes, actions.len())?;
        let is_compact = self.prompts.is_some();
        let actions: Vec<String> = actions.iter().map(|text| text.to_string_lossy().into_owned()).collect();
        self.columns(py, &lanes, |inner| {
            let parse = |(&lane, text): (&usize, &String)| {
                let lane_env = &inner.lanes()[lane];
                let compat = lane_env.shop().config().compat;
                if is_compact {
                    return (lane, Action::parse(&action_of(text, lane_env.page(), compat), compat));
                }
                (lane, Action::parse(text, compat))
            };
            let actions: Vec<(usize, Action)> = lanes.iter().zip(&actions).map(parse).collect();
            inner.step_lanes(&actions);
        })
    }

    /// The page of a lane with its clickable pieces marked.
    ///
    /// Raises ValueError for an unknown lane.
    fn render(&self, lane: usize) -> PyResult<String> {
        self.check(&[lane], 1)?;
        Ok(self.inner.lanes()[lane].page().text_rich())
    }
}
