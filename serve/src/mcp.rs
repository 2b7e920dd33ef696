//! MCP: an agent shops with the tools `search`, `click` and `view_page`, over HTTP or over standard input.
//!
//! The task is in the address, where the agent does not choose it ([`task`]). A [`handler::Handler`] serves the tools
//! to one client; [`service`] is the HTTP transport, [`stdio`] the other one. [`names`] are the sessions that a client
//! names, because the protocol of 2026 has none. [`allowed`] are the hosts and origins that requests may have.
//!
//! The address `/mcp` is OpenEnv's too: its JSON-RPC comes over a WebSocket, or by POST requests without any of the
//! headers that MCP clients send. Hosts and origins are checked for both.
//!
//! There are neither resources nor prompts, and an agent cannot reset its session.

pub(crate) mod allowed;
mod handler;
mod names;
pub(crate) mod service;
pub(crate) mod stdio;
mod task;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::http::{self, Routes};
use crate::openenv::{self, rpc};

/// Headers that only MCP clients send.
const MCP_HEADERS: [&str; 2] = [service::SESSION_HEADER, service::VERSION_HEADER];

/// The routes of this interface, and of OpenEnv's JSON-RPC.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/mcp", get).post("/mcp", post).delete("/mcp", serve)
}

async fn get(
    State(app): State<Arc<App>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    request: Request,
) -> Response {
    match upgrade {
        Ok(upgrade) => match app.mcp.refuse_foreign(request.uri(), request.headers()).await {
            Some(refused) => refused,
            None => openenv::open_rpc(app, upgrade),
        },
        Err(_) => serve(State(app), request).await,
    }
}

async fn post(State(app): State<Arc<App>>, request: Request) -> Response {
    if is_of_mcp(request.headers()) {
        return serve(State(app), request).await;
    }
    if let Some(refused) = app.mcp.refuse_foreign(request.uri(), request.headers()).await {
        return refused;
    }
    match Bytes::from_request(request, &app).await {
        Ok(body) => rpc::post(app, body).await,
        Err(rejection) => rejection.into_response(),
    }
}

/// Whether an MCP client sent a POST request with these headers: it takes event streams.
fn is_of_mcp(headers: &HeaderMap) -> bool {
    let takes_events = |value: &[u8]| {
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        value.contains("text/event-stream")
    };
    headers.get_all(header::ACCEPT).iter().any(|value| takes_events(value.as_bytes()))
        || MCP_HEADERS.iter().any(|name| headers.contains_key(*name))
}

async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    match app.mcp.handle(request).await {
        Ok(response) => response,
        Err(full) => {
            let body = (StatusCode::SERVICE_UNAVAILABLE, [http::JSON], rpc::refusal(&full));
            http::retry(body.into_response())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn mcp_clients_are_known_by_their_headers() {
        let of_mcp = |name: &'static str, value: &'static str| {
            let header = (HeaderName::from_static(name), HeaderValue::from_static(value));
            is_of_mcp(&HeaderMap::from_iter([header]))
        };
        assert!(of_mcp("accept", "application/json, Text/Event-Stream;q=0.9"));
        assert!(of_mcp("mcp-session-id", "x") && of_mcp("mcp-protocol-version", "2025-11-25"));
        assert!(!of_mcp("accept", "application/json") && !of_mcp("accept", "*/*"));
        assert!(!of_mcp("content-type", "application/json"));
    }
}
