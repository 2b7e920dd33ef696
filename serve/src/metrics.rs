//! `/metrics`: what the server did, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::counters::Counts;
use crate::http::Routes;
use crate::sessions::Interface;

/// The route of the metrics.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/metrics", metrics)
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, content_type)], text(&app)).into_response()
}

/// A counter of sessions by interface: its name, its meaning and its value.
type Counter = (&'static str, &'static str, fn(&Counts) -> u64);

const COUNTERS: [Counter; 6] = [
    ("webshop_sessions_opened_total", "Sessions opened", |counts| counts.opened),
    ("webshop_sessions_refused_total", "Requests for sessions refused because too few were free", |counts| {
        counts.refused
    }),
    ("webshop_resets_total", "Episodes begun", |counts| counts.resets),
    ("webshop_steps_total", "Actions taken", |counts| counts.steps),
    ("webshop_episodes_terminated_total", "Episodes ended by a purchase", |counts| counts.ends.terminated),
    ("webshop_episodes_truncated_total", "Episodes ended by the step limit", |counts| counts.ends.truncated),
];

fn text(app: &App) -> String {
    let mut text = String::with_capacity(4096);
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        push(text, format_args!("# HELP {name} {help}.\n# TYPE {name} {kind}\n"));
    };
    for (name, help, value) in COUNTERS {
        head(&mut text, name, "counter", help);
        for interface in Interface::ALL {
            let value = value(&app.sessions.counts(interface));
            push(&mut text, format_args!("{name}{{interface=\"{}\"}} {value}\n", interface.name()));
        }
    }
    head(&mut text, "webshop_sessions", "gauge", "Open sessions");
    for interface in Interface::ALL {
        let n_open = app.sessions.ordinals(interface).len();
        push(&mut text, format_args!("webshop_sessions{{interface=\"{}\"}} {n_open}\n", interface.name()));
    }
    head(&mut text, "webshop_sessions_limit", "gauge", "The largest number of open sessions");
    push(&mut text, format_args!("webshop_sessions_limit {}\n", app.sessions.max_sessions()));
    head(
        &mut text,
        "webshop_http_responses_total",
        "counter",
        "Responses by the first digit of their status",
    );
    for (class, n) in app.responses.by_class() {
        push(&mut text, format_args!("webshop_http_responses_total{{status=\"{class}xx\"}} {n}\n"));
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a text grows as needed");
}
