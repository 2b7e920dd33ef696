//! `/`: where a person is given a goal or chooses one.
//!
//! A goal is given by drawing: the n-th that is given is the same for every server with the same seed and split.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use webshop_products::{Goal, GoalId, Purpose, Split};

use super::goal;
use crate::app::App;
use crate::document;
use crate::error::SessionError;
use crate::http::Routes;
use crate::sessions::Sessions;

/// The goals that are given to people, by the number of goals given before.
const GIVEN: Purpose = Purpose::new("site-given-goals");

/// The number of goals in the list.
const LISTED: usize = 10;

#[derive(Template)]
#[template(path = "entrance.html")]
struct EntranceView<'a> {
    problem: Option<String>,
    split: Split,
    n_drawn: usize,
    n_recorded: usize,
    is_recording: bool,
    is_watching: bool,
    /// The last goal's number.
    last: usize,
    goals: Vec<&'a Goal>,
    before: Option<usize>,
    after: Option<usize>,
}

/// The routes of the entrance.
pub(super) fn routes() -> Routes {
    Routes::default().get("/", show).post("/", begin).get("/web", async || Redirect::to("/"))
}

/// Where the list of goals begins.
#[derive(Deserialize)]
struct ListQuery {
    #[serde(default)]
    from: usize,
}

/// The goal that a person chose; empty or absent for any.
#[derive(Deserialize)]
struct GoalForm {
    #[serde(default)]
    goal: String,
}

async fn show(State(app): State<Arc<App>>, Query(listed): Query<ListQuery>) -> Response {
    document::ok(&view(&app, listed.from, None))
}

async fn begin(State(app): State<Arc<App>>, Form(chosen): Form<GoalForm>) -> Response {
    let sessions = &app.sessions;
    let given = match chosen.goal.trim() {
        "" => given(sessions, app.goals_given.fetch_add(1, Ordering::Relaxed)),
        text => goal::numbered(sessions, text),
    };
    match given {
        Ok(GoalId(goal)) => Redirect::to(&format!("/fixed_{goal}")).into_response(),
        Err(error) => {
            let problem = Some(error.to_string());
            document::with_status(StatusCode::NOT_FOUND, &view(&app, 0, problem))
        }
    }
}

/// The goal that is given after `n` others.
fn given(sessions: &Sessions, n: u64) -> Result<GoalId, SessionError> {
    let defaults = sessions.defaults();
    let goal = sessions.shop().goals().goal_for_seed(defaults.split, defaults.seed.child(GIVEN, &[n]));
    goal.ok_or(SessionError::EmptySplit(defaults.split))
}

fn view(app: &App, from: usize, problem: Option<String>) -> EntranceView<'_> {
    let sessions = &app.sessions;
    let (goals, split) = (sessions.shop().goals(), sessions.defaults().split);
    let drawn = goals.split(split);
    let n_drawn = drawn.len();
    let from = from.min(n_drawn);
    let end = (from + LISTED).min(n_drawn);
    EntranceView {
        problem,
        split,
        n_drawn,
        last: goals.goals().len() - 1,
        n_recorded: app.recordings.len(),
        is_recording: app.recorder.is_some(),
        is_watching: app.runs.is_some(),
        goals: drawn[from..end].iter().map(|id| goals.get(*id)).collect(),
        before: (from > 0).then(|| from.saturating_sub(LISTED)),
        after: (end < n_drawn).then_some(end),
    }
}
