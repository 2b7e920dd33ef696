//! `/watch`: training runs as they go.
//!
//! `/watch/N` shows a run's latest numbers, its curves and its latest episodes; `/watch` is the list of the runs, or the
//! only one. `/watch/N/episodes/FILE` lists a file of recorded episodes and `/watch/N/episodes/FILE/K?step=S` shows one of
//! them, as [`replay`] shows recordings. [`runs`] has what is known of a run, [`episodes`] reads the files.
//!
//! A page of a run that has not ended is loaded again every few seconds, by the site's script or by the browser.

mod episodes;
pub(crate) mod runs;

use std::path::PathBuf;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use percent_encoding::utf8_percent_encode;
use tokio::task::spawn_blocking;
use webshop_agent::Episode;

use crate::app::App;
use crate::document;
use crate::http::{self, Routes};
use crate::replay::episode::Place;
use crate::replay::list::{self, Filter, Rows};
use crate::replay::{self, Step};
use runs::{RunError, RunStage, RunState, Runs, file_name};

/// The number of episodes on the page of a run.
const SHOWN_EPISODES: usize = 10;
/// The number of files of episodes on the page of a run.
const SHOWN_FILES: usize = 12;

/// The routes of runs.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/watch", index)
        .get("/watch/{number}", show)
        .get("/watch/{number}/episodes/{file}", list_file)
        .get("/watch/{number}/episodes/{file}/{index}", show_episode)
        .get("/watch/{number}/episodes/{file}/{index}/page/{step}", show_page)
}

/// Several runs, or none.
#[derive(Template)]
#[template(path = "runs.html")]
struct RunsView {
    is_live: bool,
    runs: Vec<RunRow>,
}

/// A run in the list.
struct RunRow {
    name: String,
    /// Its state, or why that is unknown.
    state: Result<RunState, String>,
}

/// One run.
#[derive(Template)]
#[template(path = "run.html")]
struct RunView<'a> {
    is_live: bool,
    number: usize,
    n_runs: usize,
    name: &'a str,
    state: &'a RunState,
    /// The names of the newest files of episodes.
    files: Vec<String>,
    /// The first episodes of the newest file.
    rows: Rows<'a>,
    /// Why the episodes cannot be listed.
    problem: Option<String>,
}

/// A run that cannot be shown now.
#[derive(Template)]
#[template(path = "run_problem.html")]
struct ProblemView<'a> {
    is_live: bool,
    name: &'a str,
    problem: String,
}

impl RunStage {
    /// In a word or two.
    fn title(self) -> &'static str {
        match self {
            RunStage::Waiting => "not begun",
            RunStage::Running => "in progress",
            RunStage::Finished => "finished",
        }
    }
}

async fn index(State(app): State<Arc<App>>) -> Response {
    with_runs(app, |runs, names| {
        if let [name] = names {
            return show_run(runs, 0, name, 1);
        }
        let listed = |(number, name): (usize, &String)| RunRow {
            name: name.clone(),
            state: runs.state(number).map_err(|error| error.to_string()),
        };
        let runs: Vec<RunRow> = names.iter().enumerate().map(listed).collect();
        let is_finished =
            |run: &RunRow| run.state.as_ref().is_ok_and(|state| state.stage == RunStage::Finished);
        document::ok(&RunsView { is_live: !runs.iter().all(is_finished), runs })
    })
    .await
}

async fn show(State(app): State<Arc<App>>, Path(number): Path<String>) -> Response {
    with_run(app, number, |runs, number, name, n_runs| show_run(runs, number, name, n_runs)).await
}

async fn list_file(
    State(app): State<Arc<App>>,
    Path((number, file)): Path<(String, String)>,
    Query(filter): Query<Filter>,
) -> Response {
    with_run(app, number, move |runs, number, name, _| {
        let read = || -> Result<Option<Vec<Episode>>, RunError> {
            let path = runs.state(number)?.episode_file(&file).cloned();
            path.map(|path| episodes::first(&path, usize::MAX)).transpose()
        };
        let episodes = match read() {
            Ok(Some(episodes)) => episodes,
            Ok(None) => return no_file(name, &file),
            Err(error) => return problem(name, &error),
        };
        let heading = format!("Episodes of {name}, {file}");
        let (base, back) = (address(number, &file), format!("/watch/{number}"));
        let place = list::Place { heading, base, limit: list::LISTED, back: Some(("The run", back)) };
        document::ok(&list::document(place, episodes.iter().enumerate(), filter))
    })
    .await
}

async fn show_episode(
    State(app): State<Arc<App>>,
    Path((number, file, index)): Path<(String, String, String)>,
    Query(Step { step }): Query<Step>,
) -> Response {
    with_run(app, number, move |runs, number, name, _| {
        let (index, is_json) = match index.strip_suffix(".json") {
            Some(index) => (index, true),
            None => (index.as_str(), false),
        };
        let found = match find(runs, number, name, &file, index, step) {
            Ok(found) => found,
            Err(response) => return *response,
        };
        if is_json {
            return http::ok(&found.recording.episode);
        }
        let base = address(number, &file);
        let at = |index: usize| format!("{base}/{index}");
        let place = Place {
            title: format!("Episode {} of {file}", found.index),
            path: at(found.index),
            list: base.clone(),
            beside: [
                ("Previous", found.index.checked_sub(1).map(at)),
                ("Next", found.is_followed.then(|| at(found.index + 1))),
            ],
        };
        let tokenizer = match runs.tokenizer(number) {
            Ok(tokenizer) => tokenizer,
            Err(error) => return problem(name, &error),
        };
        document::ok(&replay::episode::document(&found.recording, place, step, tokenizer.as_deref()))
    })
    .await
}

async fn show_page(
    State(app): State<Arc<App>>,
    Path((number, file, index, step)): Path<(String, String, String, usize)>,
) -> Response {
    with_run(app, number, move |runs, number, name, _| match find(runs, number, name, &file, &index, step) {
        Ok(found) => document::ok_text(replay::static_page(&found.recording, step)),
        Err(response) => *response,
    })
    .await
}

/// The address of a file of episodes.
fn address(number: usize, file: &str) -> String {
    format!("/watch/{number}/episodes/{}", utf8_percent_encode(file, http::SEGMENT))
}

/// An episode of a file.
struct Found {
    index: usize,
    recording: replay::recordings::Recording,
    is_followed: bool,
}

/// The episode that an address names, which has at least `step` turns; else the response that says so.
fn find(
    runs: &dyn Runs,
    number: usize,
    name: &str,
    file: &str,
    index: &str,
    step: usize,
) -> Result<Found, Box<Response>> {
    let failed = |error: RunError| Box::new(problem(name, &error));
    let state = runs.state(number).map_err(failed)?;
    let path: &PathBuf = state.episode_file(file).ok_or_else(|| Box::new(no_file(name, file)))?;
    let missing = |message: String| Box::new(document::missing(&message));
    let no_episode = || missing(format!("`{file}` of the run `{name}` has no episode `{index}`"));
    let index: usize = index.parse().map_err(|_| no_episode())?;
    let (recording, is_followed) =
        episodes::nth(runs, number, path, index).map_err(failed)?.ok_or_else(no_episode)?;
    match recording.episode.turns.len() {
        n_turns if step > n_turns => {
            Err(missing(format!("episode {index} has no step `{step}`; its last is {n_turns}")))
        }
        _ => Ok(Found { index, recording, is_followed }),
    }
}

fn show_run(runs: &dyn Runs, number: usize, name: &str, n_runs: usize) -> Response {
    let state = match runs.state(number) {
        Ok(state) => state,
        Err(error) => return problem(name, &error),
    };
    let newest = state.episodes.first();
    let (first, problem) = match newest.map(|path| episodes::first(path, SHOWN_EPISODES)).transpose() {
        Ok(first) => (first.unwrap_or_default(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    document::ok(&RunView {
        is_live: state.stage != RunStage::Finished,
        number,
        n_runs,
        name,
        files: state.episodes.iter().take(SHOWN_FILES).map(|path| file_name(path)).collect(),
        rows: Rows::new(
            address(number, &newest.map(|path| file_name(path)).unwrap_or_default()),
            first.iter().enumerate(),
        ),
        problem,
        state: &state,
    })
}

/// What `respond` makes of the runs and their names, on a thread that may wait for files.
async fn with_runs(
    app: Arc<App>,
    respond: impl FnOnce(&dyn Runs, &[String]) -> Response + Send + 'static,
) -> Response {
    let work = move || {
        let Some(runs) = app.runs.as_deref() else {
            return document::ok(&RunsView { is_live: false, runs: Vec::new() });
        };
        match runs.names() {
            Ok(names) => respond(runs, &names),
            Err(error) => problem("Training runs", &error),
        }
    };
    spawn_blocking(work).await.expect("no handler panics, and none is cancelled")
}

/// What `respond` makes of a run, its number, its name and the number of runs.
async fn with_run(
    app: Arc<App>,
    number: String,
    respond: impl FnOnce(&dyn Runs, usize, &str, usize) -> Response + Send + 'static,
) -> Response {
    if app.runs.is_none() {
        return document::missing("this server watches no training run");
    }
    with_runs(app, move |runs, names| {
        let found = number.parse().ok().and_then(|at: usize| Some((at, names.get(at)?)));
        match found {
            Some((at, name)) => respond(runs, at, name, names.len()),
            None => document::missing(&format!("there is no run `{number}`; there are {}", names.len())),
        }
    })
    .await
}

/// A run that cannot be shown now; it is tried again.
fn problem(name: &str, error: &RunError) -> Response {
    let view = ProblemView { is_live: true, name, problem: error.to_string() };
    document::with_status(StatusCode::INTERNAL_SERVER_ERROR, &view)
}

fn no_file(name: &str, file: &str) -> Response {
    document::missing(&format!("the run `{name}` has no file `{file}` of episodes"))
}
