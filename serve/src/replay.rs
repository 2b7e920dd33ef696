//! `/replay`: recorded episodes to look at, step by step.
//!
//! `/replay` lists the [`Recordings`], `/replay/N?step=K` shows the page of an episode after K turns beside what the
//! agent read and did there, `/replay/N/page/K` is that page alone, and `/replay/N.json` the episode as recorded.
//! Pages come from replaying the actions, not from the file. [`standalone`] writes all of it as one document without a server.

pub(crate) mod episode;
pub(crate) mod list;
pub(crate) mod recordings;
mod standalone;
mod tokens;

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use webshop_agent::Episode;

use crate::app::App;
use crate::http::{self, Routes};
use crate::{document, picture, site};
use recordings::{Recording, Recordings};

/// The routes of recorded episodes.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/replay", index)
        .get("/replay/{number}", show)
        .get("/replay/{number}/page/{step}", page)
}

async fn index(State(app): State<Arc<App>>, Query(filter): Query<list::Filter>) -> Response {
    let place = list::Place {
        heading: "Recorded episodes".to_owned(),
        base: "/replay".to_owned(),
        limit: list::LISTED,
        back: Some(("To the entrance", "/".to_owned())),
    };
    document::ok(&list::document(place, app.recordings.newest_first(), filter))
}

/// The query of an episode's address.
#[derive(Deserialize)]
pub(crate) struct Step {
    /// The number of turns before the page.
    #[serde(default)]
    pub(crate) step: usize,
}

async fn show(
    State(app): State<Arc<App>>,
    Path(number): Path<String>,
    Query(Step { step }): Query<Step>,
) -> Response {
    if let Some(number) = number.strip_suffix(".json") {
        return match find(&app, number, 0) {
            Ok((_, recording)) => http::ok(&recording.episode),
            Err(missing) => missing.into(),
        };
    }
    app.run(move |app| match find(app, &number, step) {
        Ok((number, recording)) => {
            let place = place(&app.recordings, number, "/replay", "/replay");
            let tokenizer = app.model.as_ref().map(|model| &*model.tokenizer);
            document::ok(&episode::document(recording, place, step, tokenizer))
        }
        Err(missing) => missing.into(),
    })
    .await
}

async fn page(State(app): State<Arc<App>>, Path((number, step)): Path<(String, usize)>) -> Response {
    app.run(move |app| match find(app, &number, step) {
        Ok((_, recording)) => document::ok_text(static_page(recording, step)),
        Err(missing) => missing.into(),
    })
    .await
}

/// The shop's page after `step` turns of an episode, a document to look at only. It holds its drawings, because the server's
/// own shop need not have the products.
pub(crate) fn static_page(recording: &Recording, step: usize) -> String {
    let drawn = |drawing: String| picture::data_address(&drawing);
    picture::with_addresses(&page_after(recording, step), recording.shop.catalog(), drawn)
}

/// The shop's page after `step` turns of an episode, with the addresses of its drawings.
fn page_after(recording: &Recording, step: usize) -> String {
    let env = episode::env_after(recording, step);
    site::view::static_page(&recording.shop, recording.episode.goal, env.page())
}

/// The place of one of the recordings, whose addresses have their numbers behind `base`; `list` is the address of the list.
fn place(recordings: &Recordings, number: usize, base: &str, list: &str) -> episode::Place {
    let at = |number: usize| format!("{base}/{number}");
    episode::Place {
        title: format!("Episode {number}"),
        path: at(number),
        list: list.to_owned(),
        beside: [
            ("Newer", (number + 1 < recordings.len()).then(|| at(number + 1))),
            ("Older", number.checked_sub(1).map(at)),
        ],
    }
}

/// Why there is nothing at an address.
struct NotFound(String);

impl From<NotFound> for Response {
    fn from(missing: NotFound) -> Response {
        document::missing(&missing.0)
    }
}

/// The episode that an address names, which has at least `step` turns.
fn find<'a>(app: &'a App, number: &str, step: usize) -> Result<(usize, &'a Recording), NotFound> {
    let n_recorded = app.recordings.len();
    let found = number.parse().ok().and_then(|at| app.recordings.get(at).map(|recording| (at, recording)));
    let (at, recording) = found.ok_or_else(|| {
        NotFound(format!("there is no recorded episode `{number}`; there are {n_recorded}"))
    })?;
    match recording.episode.turns.len() {
        n_turns if step > n_turns => {
            Err(NotFound(format!("episode {at} has no step `{step}`; its last is {n_turns}")))
        }
        _ => Ok((at, recording)),
    }
}

/// How an episode ended, in a word or two.
fn end_of(episode: &Episode) -> &'static str {
    let gave_up = episode.turns.last().is_some_and(|turn| turn.agent.terminates);
    match (episode.terminated, gave_up, episode.truncated) {
        (true, _, _) => "bought",
        (_, true, _) => "ended without a purchase",
        (_, _, true) => "cut off",
        _ => "not ended",
    }
}
