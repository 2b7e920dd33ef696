//! Documents for browsers, and the headers that they have in common.

use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// Nothing is fetched from elsewhere, and no script or style stands in a document.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; img-src 'self' data:; base-uri 'none'; object-src 'none'; form-action 'self'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
];

#[derive(Template)]
#[template(path = "missing.html")]
struct MissingView<'a> {
    message: &'a str,
}

/// A document with status 200.
pub(crate) fn ok(view: &impl Template) -> Response {
    with_status(StatusCode::OK, view)
}

/// A rendered document with status 200.
pub(crate) fn ok_text(document: String) -> Response {
    respond(StatusCode::OK, document)
}

/// A document that says why there is no page, with status 404.
pub(crate) fn missing(message: &str) -> Response {
    with_status(StatusCode::NOT_FOUND, &MissingView { message })
}

/// A document.
pub(crate) fn with_status(status: StatusCode, view: &impl Template) -> Response {
    respond(status, text(view))
}

/// A document as text.
pub(crate) fn text(view: &impl Template) -> String {
    view.render().expect("the templates only print texts and numbers, into memory")
}

fn respond(status: StatusCode, document: String) -> Response {
    (status, HEADERS, Html(document)).into_response()
}
