//! OpenEnv 0.10: one session for each WebSocket, stateless HTTP, tasks, and tools by JSON-RPC.
//!
//! [`frames`] are the messages of the WebSocket at `/ws`, [`http`] the addresses that the reference server has
//! beside it, [`tasks`] its Task API, [`rpc`] its JSON-RPC at `/mcp`, an address that it shares with MCP.
//! [`documents`] are the observations, states and schemas that all of them send.

mod documents;
mod frames;
mod http;
pub(crate) mod rpc;
mod tasks;

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use crate::app::App;
use crate::error::SessionError;
use crate::http::Routes;
use crate::sessions::Interface;
use crate::sessions::owned::Owned;
use crate::socket;

/// The name of the environment in the Task API and the metadata.
const NAME: &str = "webshop";

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    Routes::default().socket("/ws", open_frames).and(http::routes()).and(tasks::routes())
}

/// The query of `/ws`.
#[derive(Deserialize)]
struct SocketQuery {
    session_id: Option<String>,
}

async fn open_frames(
    State(app): State<Arc<App>>,
    Query(query): Query<SocketQuery>,
    upgrade: WebSocketUpgrade,
) -> Response {
    socket::open(app, upgrade, move |app| {
        let refuse = |error: SessionError| frames::refusal(&error);
        let Some(name) = query.session_id.filter(|name| !name.is_empty()) else {
            let owned = open(app).map_err(refuse)?;
            return Ok(Arc::new(move |app, text| frames::reply(app, &owned.session, true, text)));
        };
        let (session, attachment) = app.sessions.attach(Interface::OpenEnv, &name).map_err(refuse)?;
        Ok(Arc::new(move |app, text| {
            let _ends_with_the_connection = &attachment;
            frames::reply(app, &session, false, text)
        }))
    })
}

/// Opens the WebSocket at `/mcp`.
pub(crate) fn open_rpc(app: Arc<App>, upgrade: WebSocketUpgrade) -> Response {
    socket::open(app, upgrade, |app| {
        let owned = open(app).map_err(|error| rpc::refusal(&error))?;
        Ok(Arc::new(move |app, text| {
            socket::Reply::Text(rpc::reply(app, Some(&owned.session), text.as_bytes()))
        }))
    })
}

/// A session that is closed with its connection.
fn open(app: &App) -> Result<Owned, SessionError> {
    Owned::open(&app.sessions, Interface::OpenEnv)
}
