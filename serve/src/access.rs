//! The middleware of every request: it checks the token, names the environment in the response, and logs a line.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use tokio::time::Instant;
use webshop_env::ENVIRONMENT_ID;

use crate::app::App;
use crate::unserved::Api;

/// The header that names the environment in every response.
const ENVIRONMENT_HEADER: &str = "webshop-environment";

/// The path that needs no token.
const OPEN_PATH: &str = "/health";

/// Checks the token, runs the handler, counts the response and logs a line.
pub(crate) async fn authorize_and_log(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begin = Instant::now();
    let mut response = match is_allowed(app.token.as_deref(), &request) {
        true => next.run(request).await,
        false => unauthorized(&path),
    };
    let environment = HeaderValue::from_static(ENVIRONMENT_ID);
    response.headers_mut().insert(ENVIRONMENT_HEADER, environment);
    app.responses.count(response.status().as_u16());
    log(&method, &path, response.status(), begin);
    response
}

/// The time is in the log only, so that responses are deterministic.
fn log(method: &Method, path: &str, status: StatusCode, begin: Instant) {
    let (status, micros) = (status.as_u16(), begin.elapsed().as_micros());
    tracing::info!(target: "webshop_serve::access", %method, path, status, micros);
}

/// Whether the request has the token, if one is asked for.
fn is_allowed(token: Option<&str>, request: &Request) -> bool {
    let Some(token) = token.filter(|_| request.uri().path() != OPEN_PATH) else { return true };
    let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_scheme = |scheme: &[u8]| scheme.eq_ignore_ascii_case(b"bearer ");
    given
        .split_at_checked(7)
        .is_some_and(|(scheme, given)| is_scheme(scheme) && equal(given, token.as_bytes()))
}

/// Compares in a time that depends on the lengths only.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |differing, (one, other)| differing | (one ^ other));
    one.len() == other.len() && differing == 0
}

/// The refusal of a request without the token: of the OpenAI interface in its form, else in the native one's.
fn unauthorized(path: &str) -> Response {
    let message = "this server asks for a bearer token: send `Authorization: Bearer TOKEN`";
    let api = Api::of(path).unwrap_or(Api::Native);
    let mut response = api.response(StatusCode::UNAUTHORIZED, "unauthorized", message);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn a_token_is_asked_for_everywhere_but_at_the_health() {
        let allowed = |token, path: &str, given: Option<&str>| {
            let request = Request::builder().uri(path);
            let request =
                given.into_iter().fold(request, |request, text| request.header("authorization", text));
            is_allowed(token, &request.body(Body::empty()).expect("a request"))
        };
        assert!(allowed(None, "/step", None) && allowed(Some("s3cret"), "/health", None));
        assert!(allowed(Some("s3cret"), "/step", Some("Bearer s3cret")));
        assert!(allowed(Some("s3cret"), "/step", Some("bearer s3cret")));
        for given in
            ["", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Bearer s3creT", "Basic s3cret", "s3cret"]
        {
            assert!(!allowed(Some("s3cret"), "/step", Some(given)), "{given}");
        }
        assert!(!allowed(Some("s3cret"), "/step", None));
    }
}
