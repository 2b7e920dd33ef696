//! One episode as a Python class.

use crate::convert::{available, breakdown, env_config, value_error};
use crate::goals::goal_id;
use crate::info::Info;
use crate::observation::observation_mode;
use crate::shop::Shop;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};
use std::sync::Arc;
use webshop_env::{Action, Compat, NoopReason, ObservationMode, Page, Session as State, ShopEnv, StepInfo};

/// What `pickle` calls to make a session again, and its arguments: the shop and the snapshot.
type Pickled<'py> = (Bound<'py, PyAny>, (Py<Shop>, Bound<'py, PyBytes>));

/// One episode: a goal and a place in the shop.
///
/// goal: its number. max_steps: the number of actions after which the episode is truncated. name: the name in URLs, by
/// default the goal's number. Raises ValueError for an unknown goal, and if there is no step. One thread at a time may use a session; another gets RuntimeError.
#[pyclass(module = "webshop")]
pub(crate) struct Session {
    shop: Py<Shop>,
    env: ShopEnv,
    reward: f64,
    info: StepInfo,
}

impl Session {
    /// An episode in the state of `env`; one that is over has the reward of its purchase.
    fn at(shop: Py<Shop>, env: ShopEnv) -> Session {
        let breakdown = env.session().purchase(env.shop());
        let reward = breakdown.map_or(0.0, |counts| counts.total());
        Session { shop, env, reward, info: StepInfo { noop: None, breakdown } }
    }

    /// The page.
    pub(crate) fn page(&self) -> &Page {
        self.env.page()
    }

    /// Why the last action did nothing.
    pub(crate) fn noop_reason(&self) -> Option<NoopReason> {
        self.info.noop
    }

    /// The rules by which the shop parses actions.
    pub(crate) fn compat(&self) -> Compat {
        self.env.shop().config().compat
    }
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (shop, goal=0, *, max_steps=15, name=None))]
    fn new(py: Python<'_>, shop: Py<Shop>, goal: i64, max_steps: i64, name: Option<&str>) -> PyResult<Self> {
        let inner = Arc::clone(&shop.get().inner);
        let goal = goal_id(&inner, goal)?;
        let config = env_config(max_steps, ObservationMode::Text)?;
        let env = py.detach(|| {
            let mut env = ShopEnv::new(inner, config);
            env.resume(name.map_or_else(|| State::start(goal), |name| State::start_as(name, goal)));
            env
        });
        Ok(Session::at(shop, env))
    }

    /// Takes one action, `search[words]` or `click[label]`, and returns this session.
    ///
    /// A text that is no action, or an action without a meaning on this page, changes nothing but the number of steps;
    /// `noop` says why. A surrogate without its other half is read as �. Raises TypeError if the action is no str.
    fn step<'py>(
        mut slf: PyRefMut<'py, Self>,
        py: Python<'py>,
        action: &Bound<'py, PyString>,
    ) -> PyRefMut<'py, Self> {
        let this = &mut *slf;
        let action = Action::parse(&action.to_string_lossy(), this.compat());
        let env = &mut this.env;
        let step = py.detach(|| env.step(&action));
        this.reward = step.reward;
        this.info = step.info;
        slf
    }

    /// The shop.
    #[getter]
    fn shop(&self, py: Python<'_>) -> Py<Shop> {
        self.shop.clone_ref(py)
    }

    /// The page's visible text on one line.
    #[getter]
    fn text(&self) -> String {
        self.env.page().text()
    }

    /// The page's visible text, one piece a line, with clickable pieces marked.
    #[getter]
    fn text_rich(&self) -> String {
        self.env.page().text_rich()
    }

    /// The page as an HTML document.
    #[getter]
    fn html(&self) -> String {
        self.env.page().html()
    }

    /// The page in a form of observations: "text", "text_rich", "html", "json" (its fields) or "url".
    ///
    /// Raises ValueError for another name.
    fn observe(&self, observation: &str) -> PyResult<String> {
        let mode = observation_mode(observation)?;
        Ok(self.env.page().render(mode, &self.env.session().name()))
    }

    /// The page's address in the original's site.
    #[getter]
    fn url(&self) -> String {
        self.env.page().url(&self.env.session().name())
    }

    /// What can be done here: whether there is a search bar, and the labels that can be clicked.
    #[getter]
    fn available<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        available(py, self.env.page().available_actions())
    }

    /// The text of the goal.
    #[getter]
    fn instruction(&self) -> &str {
        &self.env.shop().goals().get(self.env.session().goal()).instruction
    }

    /// The number of the goal.
    #[getter]
    fn goal(&self) -> u32 {
        self.env.session().goal().0
    }

    /// The number of actions taken.
    #[getter]
    fn steps(&self) -> u32 {
        self.env.session().steps()
    }

    /// The number of actions after which the episode is truncated.
    #[getter]
    fn max_steps(&self) -> u32 {
        self.env.config().max_steps
    }

    /// The reward of the last action, 0 to 1; only a purchase earns any.
    #[getter]
    fn reward(&self) -> f64 {
        self.reward
    }

    /// Whether a purchase has ended the episode.
    #[getter]
    fn terminated(&self) -> bool {
        self.env.is_terminated()
    }

    /// Whether the step limit has ended the episode.
    #[getter]
    fn truncated(&self) -> bool {
        self.env.is_truncated()
    }

    /// Whether the episode is over.
    #[getter]
    fn done(&self) -> bool {
        self.env.is_over()
    }

    /// Why the last action did nothing; None if it did something.
    #[getter]
    fn noop(&self) -> Option<String> {
        self.info.noop.map(|reason| reason.to_string())
    }

    /// How the reward of the last action came about; None without a purchase.
    #[getter]
    fn breakdown<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.info.breakdown.as_ref().map(|counts| breakdown(py, counts)).transpose()
    }

    /// The digest of the state, 16 hexadecimal digits; equal for equal states on every machine.
    #[getter]
    fn digest(&self) -> String {
        self.env.session().digest().to_string()
    }

    /// The info of the last step: goal, instruction, noop, step, digest, available_actions, and after a purchase
    /// reward_parts, as the properties of these names or `available` and `breakdown`. New objects each time.
    #[getter]
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Info::new(&self.env, &self.info).into_dict(py)
    }

    /// The state as bytes, some 60 and the query.
    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.env.snapshot())
    }

    /// The session of a snapshot that was taken in an equal shop.
    ///
    /// Raises ValueError for bytes that are no snapshot, are damaged, or belong to another shop.
    #[classmethod]
    fn restore(_: &Bound<'_, PyType>, py: Python<'_>, shop: Py<Shop>, snapshot: &[u8]) -> PyResult<Self> {
        let inner = Arc::clone(&shop.get().inner);
        let env = py.detach(|| ShopEnv::restore(inner, snapshot)).map_err(value_error)?;
        Ok(Session::at(shop, env))
    }

    /// n independent copies.
    fn fork(&self, py: Python<'_>, n: usize) -> Vec<Session> {
        let copy = |env| Session {
            shop: self.shop.clone_ref(py),
            env,
            reward: self.reward,
            info: self.info.clone(),
        };
        self.env.fork(n).into_iter().map(copy).collect()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.borrow();
        let arguments = (this.shop.clone_ref(slf.py()), this.snapshot(slf.py()));
        Ok((slf.get_type().getattr("restore")?, arguments))
    }

    /// What Jupyter shows: the page, as a browser does.
    fn _repr_html_(&self) -> String {
        let document = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<iframe srcdoc=\"{document}\" title=\"WebShop\" style=\"width: 100%; height: 420px; border: 1px solid #ccc\"></iframe>"
        )
    }

    fn __repr__(&self) -> String {
        format!("<webshop.Session: goal {}, {} steps>", self.goal(), self.steps())
    }
}
