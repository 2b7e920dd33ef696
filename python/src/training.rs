//! Training with episodes that Python brings, and the worker that makes them.

use crate::command_line::number;
use crate::convert::value_error;
use crate::pool;
use pyo3::prelude::*;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use webshop_agent::{Episode, EpisodeCoordinates};
use webshop_products::GoalId;
use webshop_training::{EpisodeRequest, RolloutWorkers};

/// Step, shop, goal, sample: see `webshop.training.EpisodeRequest`.
type Coordinates = (u64, u64, u32, u64);

/// A Python function that takes the fields of a request and returns lines.
struct Function(Py<PyAny>);

impl RolloutWorkers for Function {
    fn rollout(&self, request: &EpisodeRequest) -> Result<Vec<Episode>, Box<dyn Error + Send + Sync>> {
        let coordinates: Vec<Coordinates> =
            request.coordinates.iter().map(|one| (one.step, one.shop, one.goal.0, one.sample)).collect();
        let fields = (&*request.config, &request.model, request.temperature, request.top_p, coordinates);
        let lines: Vec<String> = Python::attach(|py| {
            let lines = self.0.call1(py, fields).and_then(|lines| lines.extract(py));
            lines.inspect_err(|error| error.print(py))
        })?;
        Ok(lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?)
    }
}

/// Runs `webshop train` with these arguments, the name of the program first, and with training episodes that `rollout`
/// returns as lines; returns its exit code.
///
/// Once in a process, as `main`.
#[pyfunction]
pub(crate) fn train(py: Python<'_>, arguments: Vec<OsString>, rollout: Py<PyAny>) -> u8 {
    let workers = Function(rollout);
    number(py.detach(|| webshop_cli::train_with_workers(arguments, &workers)))
}

/// Makes training episodes in this process: `webshop.training.RolloutWorker`.
#[pyclass(frozen, module = "webshop.training")]
pub(crate) struct RolloutWorker(webshop_training::RolloutWorker);

#[pymethods]
impl RolloutWorker {
    /// Opens the shops of a run. Takes seconds, as they are generated.
    ///
    /// Raises ValueError for a text that is no configuration, and for files that are not there.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        py.detach(|| webshop_training::RolloutWorker::open(config)).map(Self).map_err(value_error)
    }

    /// The episodes at these coordinates, in their order, as lines of `webshop rollout --out`.
    ///
    /// Raises ValueError for coordinates that the run does not have, and for a folder without a model.
    fn rollout(
        &self,
        py: Python<'_>,
        model: PathBuf,
        temperature: f64,
        top_p: f64,
        coordinates: Vec<Coordinates>,
    ) -> PyResult<Vec<String>> {
        let coordinates: Vec<EpisodeCoordinates> = coordinates
            .into_iter()
            .map(|(step, shop, goal, sample)| EpisodeCoordinates { step, shop, goal: GoalId(goal), sample })
            .collect();
        pool::compute(py, || {
            let episodes = self.0.rollout(&model, (temperature, top_p), &coordinates).map_err(value_error)?;
            episodes.iter().map(|episode| serde_json::to_string(episode).map_err(value_error)).collect()
        })?
    }
}
