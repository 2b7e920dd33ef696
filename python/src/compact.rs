//! The prompt of the format `compact`, which this project's own agents read, as a Python class.

use crate::convert::value_error;
use crate::session::Session;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};
use webshop_agent::compact::{
    CompactRenderer, MAX_MARKS, PROMPT_VERSION, Piece, PromptConfig, parse, render_completion,
};
use webshop_env::{Action, Compat, NoopReason, Page};

/// A renderer that shows this much of a page.
///
/// # Errors
/// `ValueError`, if the products of a results page are not 1 to 10, or no character of a page of details is shown.
pub(crate) fn renderer(config: PromptConfig) -> PyResult<CompactRenderer> {
    let PromptConfig { results_shown, detail_chars, .. } = config;
    if !(1..=MAX_MARKS).contains(&results_shown) {
        return Err(value_error(format!(
            "`results_shown` is {results_shown}; a page of results shows 1 to {MAX_MARKS} products"
        )));
    }
    if detail_chars == 0 {
        return Err(value_error("`detail_chars` is 0; of a page of details at least 1 character is shown"));
    }
    Ok(CompactRenderer::new(config))
}

/// The text that a page adds to the context, with the token that opens the agent's turn.
pub(crate) fn prompt(renderer: &mut CompactRenderer, page: &Page, noop: Option<NoopReason>) -> String {
    renderer.render(page, noop).iter().map(Piece::text).collect()
}

/// The action of a completion on `page`; a mark such as `<|3|>` is the product listed under it.
pub(crate) fn action_of(completion: &str, page: &Page, rules: Compat) -> String {
    parse(completion, page, rules).action.to_string()
}

/// The prompt of one episode in the format `compact`, page by page.
///
/// results_shown: products of a results page that are shown, 1 to 10. price_ranges: whether a price that is a range is
/// shown by both ends; else by the highest alone. detail_chars: the most characters of a description, feature list or
/// attribute page, at least 1. All are as the agent was trained (`[prompt]` of its `config.toml`).
/// `version` is the layout's. It keeps what the context already holds, so that it must see every page of an episode
/// once, in order, from the first one. Pickles as its state. Raises ValueError for other numbers.
#[pyclass(module = "webshop")]
#[derive(Clone)]
pub(crate) struct CompactPrompt {
    renderer: CompactRenderer,
}

#[pymethods]
impl CompactPrompt {
    /// The version of the layout, recorded with every result.
    #[classattr]
    #[expect(non_upper_case_globals, reason = "a Python attribute")]
    const version: &'static str = PROMPT_VERSION;

    #[new]
    #[pyo3(signature = (*, results_shown=5, price_ranges=false, detail_chars=400))]
    fn new(results_shown: usize, price_ranges: bool, detail_chars: usize) -> PyResult<Self> {
        Ok(CompactPrompt { renderer: renderer(PromptConfig { results_shown, price_ranges, detail_chars })? })
    }

    /// The text that the session's page adds to the context, up to and including `<|im_start|>`.
    fn render(&mut self, session: &Session) -> String {
        prompt(&mut self.renderer, session.page(), session.noop_reason())
    }

    /// The action of a completion on the session's page, `noop` if it has none.
    ///
    /// A thought between `<think>` and `</think>` and the end token are left out; a mark such as `<|3|>` is the product
    /// that the page lists under it.
    #[staticmethod]
    fn action(session: &Session, completion: &Bound<'_, PyString>) -> String {
        action_of(&completion.to_string_lossy(), session.page(), session.compat())
    }

    /// The completion that takes an action on the session's page, with the end token, and after a thought unless that is
    /// empty.
    #[staticmethod]
    #[pyo3(signature = (session, action, thought=""))]
    fn completion(session: &Session, action: &str, thought: &str) -> String {
        let action = Action::parse(action, session.compat());
        render_completion(thought, &action, session.page()).iter().map(Piece::text).collect()
    }

    /// An independent copy.
    fn copy(&self) -> Self {
        self.clone()
    }

    /// The prompt of a state that `__reduce__` wrote.
    ///
    /// Raises ValueError for another text.
    #[classmethod]
    fn restore(_: &Bound<'_, PyType>, state: &str) -> PyResult<Self> {
        Ok(CompactPrompt { renderer: serde_json::from_str(state).map_err(value_error)? })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let state = serde_json::to_string(&slf.borrow().renderer).map_err(value_error)?;
        Ok((slf.get_type().getattr("restore")?, (state,)))
    }
}
