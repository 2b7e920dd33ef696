//! OpenEnv's HTTP addresses. They keep no state: each request has a session of its own, as in the reference.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{documents, frames};
use crate::app::App;
use crate::detail;
use crate::error::SessionError;
use crate::fields::FieldError;
use crate::http::{self, Routes};
use crate::reset::ResetRequest;
use crate::sessions::session::OpenSession;

/// The routes that are not about tasks.
pub(super) fn routes() -> Routes {
    Routes::default()
        .post("/reset", reset)
        .post("/step", step)
        .get("/state", state)
        .get("/schema", schema)
        .get("/metadata", metadata)
        .get("/health", health)
}

async fn reset(State(app): State<Arc<App>>, body: Bytes) -> Response {
    let request = match detail::read(&body, ResetRequest::read) {
        Ok(request) => request,
        Err(refused) => return refused.into_response(),
    };
    // A wrong request opens no session, so that it does not change the goals of others.
    if let Err(error) = app.sessions.check(&request) {
        return detail::session_error(&error, "goal");
    }
    on_fresh_session(app, move |app, session| {
        let view = session.reset(&request)?;
        Ok(documents::first_observation(app.sessions.shop(), &view))
    })
    .await
}

async fn step(State(app): State<Arc<App>>, body: Bytes) -> Response {
    let action = detail::read(&body, |fields| {
        let action = fields.required("action", |fields, name| fields.object(name)).cloned();
        if fields.value("timeout_s").is_some_and(|limit| limit.as_f64().is_none_or(|limit| limit <= 0.0)) {
            fields.refuse("timeout_s", FieldError::new("greater_than", "Input should be greater than 0"));
        }
        fields.text("request_id", 255);
        action
    });
    let action = match action {
        Ok(action) => action.unwrap_or_default(),
        Err(refused) => return refused.into_response(),
    };
    let action = match frames::read_action(&action) {
        Ok(action) => action,
        Err(errors) => return detail::wrong_fields(&errors, &["body", "action"]),
    };
    on_fresh_session(app, move |_, session| Ok(documents::observation(&session.step(&action)?))).await
}

async fn state(State(app): State<Arc<App>>) -> Response {
    on_fresh_session(app, |_, session| Ok(documents::state(&session.view()?))).await
}

/// The document that `work` makes in a session that ends with it.
async fn on_fresh_session(
    app: Arc<App>,
    work: impl FnOnce(&App, &OpenSession) -> Result<Value, SessionError> + Send + 'static,
) -> Response {
    app.run(move |app| {
        let made = super::open(app).and_then(|owned| work(app, &owned.session));
        match made {
            Ok(document) => http::ok(&document),
            Err(error) => detail::session_error(&error, "goal"),
        }
    })
    .await
}

async fn schema() -> Response {
    http::ok(&documents::schemas())
}

async fn metadata(State(app): State<Arc<App>>) -> Response {
    http::ok(&documents::metadata(app.sessions.shop()))
}

async fn health() -> Response {
    http::ok(&json!({"status": "healthy"}))
}
