//! Errors of requests that reach no handler: an unknown address, a method that the address does not take, a body that is
//! too large or that cannot be read.
//!
//! Below `/api/v1` and `/v1` they have the form of these interfaces, [`Api`]. Elsewhere an unknown address is FastAPI's
//! error, and the other responses are axum's.

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::native::ApiError;
use crate::{detail, openai};

/// An interface whose errors all have one form.
#[derive(Clone, Copy)]
enum Api {
    Native,
    OpenAi,
}

impl Api {
    /// The interface that a path belongs to.
    fn of(path: &str) -> Option<Api> {
        let is_below = |base: &str| path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'));
        if is_below("/api/v1") {
            Some(Api::Native)
        } else if is_below("/v1") {
            Some(Api::OpenAi)
        } else {
            None
        }
    }

    /// The error with this status.
    fn error(self, status: StatusCode) -> Response {
        let (code, message) = match status {
            StatusCode::NOT_FOUND => {
                ("no_such_address", "nothing is at this address; `/openapi.json` lists all addresses")
            }
            StatusCode::METHOD_NOT_ALLOWED => (
                "method_not_allowed",
                "the address does not take this method; the header `Allow` lists its methods",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => {
                ("body_too_large", "the body is larger than the server's `--max-body`")
            }
            _ => ("invalid", "the request cannot be read"),
        };
        match self {
            Api::Native => ApiError::new(status, code, message).into_response(),
            Api::OpenAi => openai::refusal(status, code, message),
        }
    }
}

/// The response to a request whose address there is not.
pub(crate) async fn no_such_address(uri: Uri) -> Response {
    match Api::of(uri.path()) {
        Some(api) => api.error(StatusCode::NOT_FOUND),
        None => detail::text(StatusCode::NOT_FOUND, "Not Found"),
    }
}

/// Runs the handler, and gives an error that is not its own the form of the interface.
pub(crate) async fn normalize_errors(request: Request, next: Next) -> Response {
    let api = Api::of(request.uri().path());
    let response = next.run(request).await;
    // The errors of the handlers of both interfaces are JSON.
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    match api {
        Some(api) if response.status().is_client_error() && !is_json => {
            let mut shaped = api.error(response.status());
            let methods: Option<&HeaderValue> = response.headers().get(header::ALLOW);
            shaped.headers_mut().extend(methods.map(|methods| (header::ALLOW, methods.clone())));
            shaped
        }
        _ => response,
    }
}
