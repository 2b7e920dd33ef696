//! `/assets/…` and `/pictures/…`: the files that pages use, all of them in the binary.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::app::App;
use crate::http::Routes;
use crate::picture;

const SVG: &str = "image/svg+xml";
const CSS: &str = "text/css; charset=utf-8";

/// The style of the drawings of training runs; there is none if no run is watched.
const CHARTS: &str = "charts.css";

/// The style of every document.
pub(crate) const STYLE: &str = include_str!("../../assets/shop.css");
/// The script of documents of the server.
pub(crate) const SCRIPT: &str = include_str!("../../assets/shop.js");
/// The icon of every document.
pub(crate) const ICON: &str = include_str!("../../assets/icon.svg");

/// Name, type and content of each file.
const FILES: [(&str, &str, &str); 3] = [
    ("shop.css", CSS, STYLE),
    ("shop.js", "text/javascript; charset=utf-8", SCRIPT),
    ("icon.svg", SVG, ICON),
];

/// The routes of files and pictures.
pub(super) fn routes() -> Routes {
    Routes::default().get("/assets/{name}", asset).get("/pictures/{name}", drawing)
}

async fn asset(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    if let (Some(runs), CHARTS) = (&app.runs, name.as_str()) {
        return file(CSS, runs.style());
    }
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, media_type, content)) => file(media_type, *content),
        None => missing(&format!("there is no file `{name}`")),
    }
}

/// The query of a picture.
#[derive(Deserialize)]
struct PictureQuery {
    #[serde(default)]
    color: String,
}

/// The picture of the product `name.svg`.
async fn drawing(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(look): Query<PictureQuery>,
) -> Response {
    let catalog = app.sessions.shop().catalog();
    let asin = name.strip_suffix(".svg");
    match asin.and_then(|asin| catalog.find(asin)) {
        Some(product) => file(SVG, picture::svg(catalog.get(product), Some(&look.color))),
        None => missing(&format!("there is no product `{}`", asin.unwrap_or(&name))),
    }
}

/// A file that browsers may keep for some minutes.
fn file(media_type: &'static str, content: impl Into<String>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (headers, content.into()).into_response()
}

fn missing(message: &str) -> Response {
    (StatusCode::NOT_FOUND, format!("{message}\n")).into_response()
}
