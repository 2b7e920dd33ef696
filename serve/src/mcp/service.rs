//! MCP over HTTP: rmcp's transport, with the answers that it has no words for.
//!
//! rmcp keeps the sessions of the protocol, checks hosts and origins, and reads and writes messages. Here are its check
//! of hosts and origins for requests that it does not serve, the status 503 of a server whose sessions are all in use,
//! and the end of sessions: 204, or 404 if there is none.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::allowed::Allowed;
use super::handler::{BeginError, BeginErrorSlot, Handler, Shared};
use super::task::Task;
use crate::error::SessionError;
use crate::sessions::Sessions;

/// The header with the session of the protocol, up to 2025-11-25.
pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// The header with the version of the protocol.
pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";

/// MCP over HTTP.
pub(crate) struct McpService {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    manager: Arc<LocalSessionManager>,
    shared: Arc<Shared>,
}

impl McpService {
    /// MCP before a table of sessions. A client that sends nothing for `idle` loses its session; a body has at most
    /// `max_body` bytes.
    pub(crate) fn new(
        sessions: &Arc<Sessions>,
        idle: Duration,
        max_body: usize,
        allowed: &Allowed,
    ) -> McpService {
        let shared = Arc::new(Shared::new(sessions));
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(idle);
        let manager = Arc::new(manager);
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(max_body)
            .with_allowed_hosts(allowed.all_hosts())
            .with_allowed_origins(allowed.all_origins());
        let handlers = Arc::clone(&shared);
        let handler = move || Ok(Handler::new(Arc::clone(&handlers)));
        let service = StreamableHttpService::new(handler, Arc::clone(&manager), config);
        McpService { service, manager, shared }
    }

    /// The response to a request.
    ///
    /// # Errors
    /// If all sessions are in use.
    pub(crate) async fn handle(&self, mut request: Request) -> Result<Response, SessionError> {
        if request.method() == Method::DELETE {
            return Ok(self.end(request).await);
        }
        let outcome = BeginErrorSlot::default();
        request.extensions_mut().insert(outcome.clone());
        let mut response = self.service.handle(request).await;
        match outcome.refusal() {
            Some(BeginError::Full(error)) => return Err(error),
            // A client whose address is wrong has no session, and does not end one.
            Some(BeginError::Address) => drop(response.headers_mut().remove(SESSION_HEADER)),
            None => {}
        }
        Ok(response.map(Body::new))
    }

    /// The refusal of a request, which rmcp does not serve, whose host or origin is not allowed.
    pub(crate) async fn refuse_foreign(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        // rmcp checks host and origin before the method, and it takes no PUT.
        let mut asked = Request::new(Body::empty());
        (*asked.method_mut(), *asked.uri_mut()) = (Method::PUT, uri.clone());
        for name in [header::HOST, header::ORIGIN] {
            asked.headers_mut().extend(headers.get(&name).map(|value| (name, value.clone())));
        }
        let response = self.service.handle(asked).await;
        (response.status() != StatusCode::METHOD_NOT_ALLOWED).then(|| response.map(Body::new))
    }

    /// Ends the session of the protocol, the one that the address names, or both.
    async fn end(&self, mut request: Request) -> Response {
        let name = Task::of(request.uri()).ok().and_then(|task| task.name);
        if name.is_some() && !request.headers().contains_key(SESSION_HEADER) {
            // A request that names its session in the address has no session of the protocol. With one that does not
            // exist, rmcp checks host and origin, and nothing else.
            request.headers_mut().remove(VERSION_HEADER);
            request.headers_mut().insert(SESSION_HEADER, HeaderValue::from_static("none"));
        }
        let session = request.headers().get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        let had_session = match session {
            // The manager of local sessions has no errors here.
            Some(id) => self.manager.has_session(&id.into()).await.unwrap_or(false),
            None => false,
        };
        let response = self.service.handle(request).await;
        if response.status() != StatusCode::ACCEPTED {
            return response.map(Body::new);
        }
        let had_name = name.is_some_and(|name| self.shared.names.close(&self.shared.sessions, &name));
        match had_session || had_name {
            true => StatusCode::NO_CONTENT.into_response(),
            false => (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response(),
        }
    }

    /// Ends all sessions and event streams.
    pub(crate) fn stop(&self) {
        self.service.config.cancellation_token.cancel();
    }
}
