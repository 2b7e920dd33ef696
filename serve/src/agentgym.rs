//! AgentGym's WebShop server, below `/agentgym`: environments by number.
//!
//! What its client calls and its server lacks is here: `close`, and a `state` of values. An environment's number
//! is the session's and never used again.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::app::App;
use crate::detail;
use crate::error::SessionError;
use crate::fields::{Fields, object_of_query};
use crate::http::{self, FormPairs, Routes};
use crate::reset::{GoalRequest, ResetRequest};
use crate::sessions::session::OpenSession;
use crate::sessions::{Interface, Lifetime};

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/agentgym", root)
        .get("/agentgym/", root)
        .get("/agentgym/list_envs", list)
        .post("/agentgym/create", create)
        .post("/agentgym/reset", reset)
        .post("/agentgym/step", step)
        .post("/agentgym/close", close)
        .get("/agentgym/available_actions", available_actions)
        .get("/agentgym/observation", observation)
        .get("/agentgym/instruction_text", instruction_text)
        .get("/agentgym/state", state)
}

async fn root() -> Response {
    http::ok(&"ok")
}

async fn list(State(app): State<Arc<App>>) -> Response {
    http::ok(&app.sessions.ordinals(Interface::AgentGym))
}

async fn create(State(app): State<Arc<App>>) -> Response {
    match app.sessions.open(Interface::AgentGym, Lifetime::Idle) {
        Ok(session) => http::ok(&session.id().ordinal),
        Err(error) => detail::session_error(&error, "env_idx"),
    }
}

async fn reset(State(app): State<Arc<App>>, body: Bytes) -> Response {
    on_session_of_body(
        app,
        body,
        |fields| fields.unsigned("session_id", u64::MAX),
        |session, goal| {
            let goal = goal.map_or(GoalRequest::Stream { split: None }, GoalRequest::Goal);
            Ok(json!([session.reset(&ResetRequest::new(goal))?.observation, null]))
        },
    )
    .await
}

async fn step(State(app): State<Arc<App>>, body: Bytes) -> Response {
    on_session_of_body(
        app,
        body,
        |fields| fields.required("action", |fields, name| fields.text(name, usize::MAX)),
        |session, action| {
            let view = session.step(&action.unwrap_or_default())?;
            let (reward, done) = (view.reward(), view.is_done());
            Ok(json!({"state": view.observation, "reward": reward, "done": done, "info": null}))
        },
    )
    .await
}

async fn close(State(app): State<Arc<App>>, body: Bytes) -> Response {
    let shared = Arc::clone(&app);
    on_session_of_body(app, body, |_| (), move |session, ()| Ok(shared.sessions.close(session.id()).into()))
        .await
}

async fn available_actions(State(app): State<Arc<App>>, Query(query): Query<FormPairs>) -> Response {
    on_session_of_query(app, query, |session| Ok(json!(session.view()?.available_actions))).await
}

async fn observation(State(app): State<Arc<App>>, Query(query): Query<FormPairs>) -> Response {
    on_session_of_query(app, query, |session| Ok(session.view()?.observation.into())).await
}

async fn instruction_text(State(app): State<Arc<App>>, Query(query): Query<FormPairs>) -> Response {
    on_session_of_query(app, query, |session| Ok(json!(session.view()?.instruction))).await
}

async fn state(State(app): State<Arc<App>>, Query(query): Query<FormPairs>) -> Response {
    on_session_of_query(app, query, |session| {
        let (view, html) = session.view_and_html()?;
        Ok(json!({"url": view.url, "html": html, "instruction_text": view.instruction}))
    })
    .await
}

/// Reads `env_idx` and what else `read` finds in a body, and responds with what `work` makes of the session.
async fn on_session_of_body<T: Send + 'static>(
    app: Arc<App>,
    body: Bytes,
    read: impl FnOnce(&mut Fields<'_>) -> T,
    work: impl FnOnce(&OpenSession, T) -> Result<Value, SessionError> + Send + 'static,
) -> Response {
    let found = detail::read(&body, |fields| (env_idx(fields), read(fields)));
    match found {
        Ok((ordinal, found)) => on_session(app, ordinal, move |session| work(session, found)).await,
        Err(refused) => refused.into_response(),
    }
}

/// As [`on_session_of_body`], with `env_idx` in the query.
async fn on_session_of_query(
    app: Arc<App>,
    query: FormPairs,
    work: impl FnOnce(&OpenSession) -> Result<Value, SessionError> + Send + 'static,
) -> Response {
    let named = object_of_query(query);
    let mut fields = Fields::new(&named);
    let ordinal = env_idx(&mut fields);
    match fields.finish(ordinal) {
        Ok(ordinal) => on_session(app, ordinal, work).await,
        Err(errors) => detail::wrong_fields(&errors, &["query"]),
    }
}

fn env_idx(fields: &mut Fields<'_>) -> Option<u64> {
    fields.required("env_idx", |fields, name| fields.unsigned(name, u64::MAX))
}

async fn on_session(
    app: Arc<App>,
    ordinal: Option<u64>,
    work: impl FnOnce(&OpenSession) -> Result<Value, SessionError> + Send + 'static,
) -> Response {
    app.run(move |app| {
        let ordinal = ordinal.expect("a required field was read");
        let made = app.sessions.find(Interface::AgentGym, ordinal).and_then(|session| work(&session));
        match made {
            Ok(document) => http::ok(&document),
            Err(error) => detail::session_error(&error, "session_id"),
        }
    })
    .await
}
