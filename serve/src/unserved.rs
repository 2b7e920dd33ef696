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
pub(crate) enum Api {
    Native,
    OpenAi,
}

impl Api {
    /// The interface that a path belongs to.
    pub(crate) fn of(path: &str) -> Option<Api> {
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
        self.response(status, code, message)
    }

    /// An error with this code and message.
    pub(crate) fn response(self, status: StatusCode, code: &'static str, message: &str) -> Response {
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
    // The errors of the handlers of both interfaces are JSON, and those of axum texts.
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let (is_json, is_text) = (kind == b"application/json", kind.starts_with(b"text/plain"));
    if response.status() == StatusCode::BAD_REQUEST && is_text {
        return unreadable(api, response).await;
    }
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

/// The response to a request that axum cannot read, with axum's reason.
async fn unreadable(api: Option<Api>, response: Response) -> Response {
    let (head, body) = response.into_parts();
    // A reason is short; a body that fails or is longer is none.
    let reason = axum::body::to_bytes(body, 4096).await.unwrap_or_default();
    let reason = String::from_utf8_lossy(&reason).into_owned();
    let (status, code, message) = match reason.contains("designated timeout") {
        true => (StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not come in time".to_owned()),
        false => (head.status, "invalid", format!("the request cannot be read: {reason}")),
    };
    match api {
        Some(api) => api.response(status, code, &message),
        None if status == head.status => Response::from_parts(head, reason.into()),
        None => (status, message).into_response(),
    }
}
