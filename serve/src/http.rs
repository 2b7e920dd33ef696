//! Routes that can be listed, and responses.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::App;

/// Routes, with the list of their methods and paths, which axum does not give.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) router: Router<Arc<App>>,
    /// Method, lower case, and path of every route but those of WebSockets.
    pub(crate) paths: Vec<(&'static str, &'static str)>,
}

impl Routes {
    /// Adds a handler of GET requests.
    pub(crate) fn get<T: 'static>(mut self, path: &'static str, handler: impl Handler<T, Arc<App>>) -> Self {
        self.paths.push(("get", path));
        Routes { router: self.router.route(path, get(handler)), ..self }
    }

    /// Adds a handler of POST requests.
    pub(crate) fn post<T: 'static>(mut self, path: &'static str, handler: impl Handler<T, Arc<App>>) -> Self {
        self.paths.push(("post", path));
        Routes { router: self.router.route(path, post(handler)), ..self }
    }

    /// Adds a handler of DELETE requests.
    pub(crate) fn delete<T: 'static>(
        mut self,
        path: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Self {
        self.paths.push(("delete", path));
        Routes { router: self.router.route(path, delete(handler)), ..self }
    }

    /// Adds a handler that opens a WebSocket.
    pub(crate) fn socket<T: 'static>(self, path: &'static str, handler: impl Handler<T, Arc<App>>) -> Self {
        Routes { router: self.router.route(path, get(handler)), ..self }
    }

    /// These routes and `other`.
    pub(crate) fn and(mut self, other: Routes) -> Self {
        self.paths.extend(other.paths);
        Routes { router: self.router.merge(other.router), ..self }
    }
}

/// What stands for itself in a segment of a path.
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The header of a JSON document.
pub(crate) const JSON: (HeaderName, HeaderValue) =
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// A JSON document.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("responses hold texts, finite numbers and lists");
    (status, [JSON], body).into_response()
}

/// A JSON document of a request that succeeded.
pub(crate) fn ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, body)
}

/// The response with the request to try again after a second.
pub(crate) fn retry(mut response: Response) -> Response {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Names and values of a form or a query.
pub(crate) type FormPairs = Vec<(String, String)>;

/// Why a body is not a JSON object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is not JSON.
    #[error("the body is not JSON: {0}")]
    Syntax(serde_json::Error),
    /// It is JSON, but not an object.
    #[error("the body is not a JSON object")]
    NoObject(Value),
}

/// The object of a body; an empty one if the body is empty.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, BodyError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body).map_err(BodyError::Syntax)? {
        Value::Object(object) => Ok(object),
        other => Err(BodyError::NoObject(other)),
    }
}
