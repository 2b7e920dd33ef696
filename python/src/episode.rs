//! A recorded episode as a Python class.

use crate::convert::{breakdown, env_config, value_error};
use crate::goals::goal_id;
use crate::observation::observation_mode;
use crate::shop::Shop;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use std::sync::Arc;
use webshop_env::{Action, ShopEnv, transcript_of_actions};

/// An episode as `webshop rollout --out` records it: one line of JSON. Use `read` or `play` to get one.
///
/// Equal if the lines are equal; pickles as its line.
#[pyclass(frozen, eq, hash, module = "webshop")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Episode {
    line: String,
}

impl Episode {
    /// The fields of the environment. The line was read before.
    fn record(&self) -> PyResult<webshop_env::Episode> {
        webshop_env::Episode::read(&self.line).map_err(value_error)
    }
}

#[pymethods]
impl Episode {
    /// Reads one line of a file of episodes.
    ///
    /// Raises ValueError for a text that is no episode, or one of another version of the format.
    #[classmethod]
    fn read(_: &Bound<'_, PyType>, line: &str) -> PyResult<Episode> {
        let episode = Episode { line: line.trim().to_owned() };
        episode.record()?;
        Ok(episode)
    }

    /// Plays actions from the start of a goal and records them; those after the end of the episode are left out.
    ///
    /// Raises ValueError for an unknown goal or observation.
    #[classmethod]
    #[pyo3(signature = (shop, goal, actions, *, max_steps=15, observation="text"))]
    fn play(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        shop: Py<Shop>,
        goal: i64,
        actions: Vec<Bound<'_, PyString>>,
        max_steps: i64,
        observation: &str,
    ) -> PyResult<Episode> {
        let shop = Arc::clone(&shop.get().inner);
        let goal = goal_id(&shop, goal)?;
        let config = env_config(max_steps, observation_mode(observation)?)?;
        let compat = shop.config().compat;
        let parse = |action: &Bound<'_, PyString>| Action::parse(&action.to_string_lossy(), compat);
        let actions: Vec<Action> = actions.iter().map(parse).collect();
        let line = py.detach(|| {
            let mut env = ShopEnv::new(shop, config);
            env.reset(goal);
            let mut episode: webshop_env::Episode = webshop_env::Episode::new(&env, ());
            for action in actions {
                if env.is_over() {
                    break;
                }
                let step = env.step(&action);
                episode.push(&env, action, &step, ());
            }
            serde_json::to_string(&episode)
        });
        Ok(Episode { line: line.map_err(value_error)? })
    }

    /// The line, without its end.
    #[getter]
    fn line(&self) -> &str {
        &self.line
    }

    /// All fields of the line, those of the policy and the model too.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.line,))
    }

    /// The number of the goal.
    #[getter]
    fn goal(&self) -> PyResult<u32> {
        Ok(self.record()?.goal.0)
    }

    /// The actions in order; one that was not understood is `noop`.
    #[getter]
    fn actions(&self) -> PyResult<Vec<String>> {
        Ok(self.record()?.turns.iter().map(|turn| turn.action.to_string()).collect())
    }

    /// The sum of the rewards, 0 to 1.
    #[getter]
    fn reward(&self) -> PyResult<f64> {
        Ok(self.record()?.reward)
    }

    /// How the reward came about; None without a purchase.
    #[getter]
    fn breakdown<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.record()?.breakdown.as_ref().map(|counts| breakdown(py, counts)).transpose()
    }

    /// Whether a purchase ended the episode.
    #[getter]
    fn terminated(&self) -> PyResult<bool> {
        Ok(self.record()?.terminated)
    }

    /// Whether the episode was cut, by the step limit or by an agent that could not continue.
    #[getter]
    fn truncated(&self) -> PyResult<bool> {
        Ok(self.record()?.truncated)
    }

    /// Plays the actions again: None if every state, observation and reward is as recorded, else the first difference.
    ///
    /// Raises ValueError if the episode was recorded in another shop.
    fn replay(&self, py: Python<'_>, shop: Py<Shop>) -> PyResult<Option<String>> {
        let shop = Arc::clone(&shop.get().inner);
        let record = self.record()?;
        let difference = py.detach(|| record.replay(&shop)).map_err(value_error)?;
        Ok(difference.map(|difference| difference.to_string()))
    }

    /// The episode as text for people: the requirements, and what each action shows.
    ///
    /// Raises ValueError if the episode was recorded in another shop.
    fn transcript(&self, py: Python<'_>, shop: Py<Shop>) -> PyResult<String> {
        let shop = Arc::clone(&shop.get().inner);
        let record = self.record()?;
        record.check_shop(&shop).map_err(value_error)?;
        let goal = record.goal;
        let actions: Vec<Action> = record.turns.iter().map(|turn| turn.action.clone()).collect();
        Ok(py.detach(|| transcript_of_actions(&shop, goal, &actions)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type().getattr("read")?, PyTuple::new(slf.py(), [slf.get().line()])?))
    }

    fn __repr__(&self) -> PyResult<String> {
        let record = self.record()?;
        Ok(format!(
            "<webshop.Episode: goal {}, {} actions, reward {}>",
            record.goal.0,
            record.turns.len(),
            record.reward
        ))
    }
}
