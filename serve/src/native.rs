//! Our own interface, `/api/v1`: sessions as resources, snapshots and forks, and many sessions in one request.
//!
//! Errors are `{"error": {"code", "message"}}`. A request with a field that is not known is refused, because it
//! is a slip of the pen more often than not.

mod batch;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use webshop_env::{AvailableActions, NoopReason, ShopFingerprint};
use webshop_products::{Digest, Split};

use crate::app::App;
use crate::error::SessionError;
use crate::fields::{self, FieldError, Fields};
use crate::http::{self, Routes};
use crate::reset::ResetRequest;
use crate::sessions::episode::LastAction;
use crate::sessions::session::{OpenSession, SessionView};
use crate::sessions::{Interface, Lifetime};

/// The longest action or snapshot, in characters; the limit on bodies is reached before.
const ANY_LENGTH: usize = usize::MAX;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/v1/info", info)
        .post("/api/v1/sessions", create)
        .get("/api/v1/sessions/{id}", show)
        .delete("/api/v1/sessions/{id}", close)
        .post("/api/v1/sessions/{id}/step", step)
        .post("/api/v1/sessions/{id}/fork", fork)
        .get("/api/v1/sessions/{id}/snapshot", snapshot)
        .post("/api/v1/batch/reset", batch::reset)
        .post("/api/v1/batch/step", batch::step)
}

/// A refused request.
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

type ApiResult = Result<Response, ApiError>;

impl ApiError {
    /// A refusal; `code` names its kind for programs.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, code, message: message.into() }
    }

    /// A request that is wrong in itself.
    fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid", message)
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> ApiError {
        let (status, code) = match &error {
            SessionError::TooMany { .. } => (StatusCode::BAD_REQUEST, "invalid"),
            SessionError::Full { .. } => (StatusCode::SERVICE_UNAVAILABLE, "full"),
            SessionError::NoSuchGoal { .. } | SessionError::NoSuchIndex { .. } => {
                (StatusCode::NOT_FOUND, "no_such_goal")
            }
            SessionError::EmptySplit(_) => (StatusCode::NOT_FOUND, "no_such_goal"),
            SessionError::NoSuchSession(_) => (StatusCode::NOT_FOUND, "no_such_session"),
            SessionError::Attached(_) => (StatusCode::CONFLICT, "attached"),
            SessionError::Snapshot(_) => (StatusCode::BAD_REQUEST, "invalid_snapshot"),
        };
        ApiError::new(status, code, error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"error": {"code": self.code, "message": self.message}});
        let response = http::json(self.status, &body);
        if self.status == StatusCode::SERVICE_UNAVAILABLE { http::retry(response) } else { response }
    }
}

/// A session as this interface shows it.
#[derive(Serialize)]
pub(crate) struct Shown {
    id: String,
    goal: u32,
    split: Split,
    instruction: String,
    observation: String,
    available_actions: AvailableActions,
    url: String,
    step: u32,
    reward: f64,
    terminated: bool,
    truncated: bool,
    noop: Option<NoopReason>,
    reward_parts: Option<Value>,
    digest: Digest,
    /// Versions and digests of everything that decides about the episode; in the reply to a new session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<ShopFingerprint>,
}

impl Shown {
    fn new(session: &OpenSession, view: SessionView) -> Shown {
        Shown {
            id: session.id().to_string(),
            goal: view.goal.0,
            split: view.split,
            instruction: view.instruction.to_string(),
            reward: view.reward(),
            observation: view.observation,
            available_actions: view.available_actions,
            url: view.url,
            step: view.step,
            terminated: view.terminated,
            truncated: view.truncated,
            noop: view.last.and_then(|last| last.noop),
            reward_parts: view.last.as_ref().and_then(LastAction::reward_parts),
            digest: view.digest,
            fingerprint: None,
        }
    }

    /// With the fingerprint of the shop.
    fn first(app: &App, session: &OpenSession, view: SessionView) -> Shown {
        let fingerprint = Some(app.sessions.shop().fingerprint().clone());
        Shown { fingerprint, ..Shown::new(session, view) }
    }
}

/// Reads the object of a body; fields that are not in `known` are refused.
fn read<T>(body: &[u8], known: &[&str], read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, ApiError> {
    let object = http::object(body).map_err(|error| ApiError::invalid(error.to_string()))?;
    read_object(&object, known, read)
}

fn read_object<T>(
    object: &Map<String, Value>,
    known: &[&str],
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Result<T, ApiError> {
    let mut fields = Fields::new(object);
    fields.forbid_others(known);
    let found = read(&mut fields);
    fields.finish(found).map_err(|errors| ApiError::invalid(fields::messages(&errors)))
}

async fn info(State(app): State<Arc<App>>) -> Response {
    app.run(|app| http::ok(&info_document(app))).await
}

/// Versions, digests, sizes of splits, and sessions.
fn info_document(app: &App) -> Value {
    let (sessions, shop) = (&app.sessions, app.sessions.shop());
    let (goals, defaults) = (shop.goals(), sessions.defaults());
    let sizes: Map<String, Value> = [Split::Train, Split::Validation, Split::Test, Split::All]
        .iter()
        .map(|&split| (split.to_string(), goals.split(split).len().into()))
        .collect();
    let mut info = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "n_products": shop.catalog().len(),
        "n_goals": sizes,
        "split_rule": goals.split_rule(),
        "split": defaults.split,
        "max_steps": defaults.max_steps,
        "observation": defaults.observation,
        "seed": defaults.seed,
        "sessions": sessions.len(),
        "max_sessions": sessions.max_sessions(),
    });
    let fingerprint = serde_json::to_value(shop.fingerprint()).expect("a fingerprint holds texts");
    if let (Value::Object(info), Value::Object(parts)) = (&mut info, fingerprint) {
        info.extend(parts);
    }
    info
}

async fn create(State(app): State<Arc<App>>, body: Bytes) -> ApiResult {
    app.run(move |app| {
        let known = [&ResetRequest::FIELDS[..], &["snapshot"]].concat();
        let (request, snapshot) = read(&body, &known, |fields| {
            let snapshot = fields.text("snapshot", ANY_LENGTH);
            if snapshot.is_some() {
                refuse_beside_snapshot(fields);
            }
            (ResetRequest::read(fields), snapshot)
        })?;
        if let Some(snapshot) = snapshot {
            let bytes = STANDARD.decode(snapshot);
            let bytes =
                bytes.map_err(|error| ApiError::invalid(format!("`snapshot`: not base64: {error}")))?;
            let session = app.sessions.restore(Interface::Native, &bytes)?;
            return Ok(http::ok(&Shown::first(app, &session, session.view()?)));
        }
        // A wrong request opens no session, so that it does not change the goals of others.
        app.sessions.check(&request)?;
        let session = app.sessions.open(Interface::Native, Lifetime::Idle)?;
        Ok(http::ok(&Shown::first(app, &session, session.reset(&request)?)))
    })
    .await
}

/// Refuses the fields of a reset: a snapshot has the whole episode.
fn refuse_beside_snapshot(fields: &mut Fields<'_>) {
    for name in ResetRequest::FIELDS {
        if fields.value(name).is_some() {
            let message = "Input is not permitted beside `snapshot`, which has the whole episode";
            fields.refuse(name, FieldError::new("extra_forbidden", message));
        }
    }
}

async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult {
    app.run(move |app| {
        let session = app.sessions.find_named(Interface::Native, &id)?;
        Ok(http::ok(&Shown::new(&session, session.view()?)))
    })
    .await
}

async fn close(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult {
    // It waits for a step of the session that is under way.
    app.run(move |app| {
        let session = app.sessions.find_named(Interface::Native, &id)?;
        app.sessions.close(session.id());
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

async fn step(State(app): State<Arc<App>>, Path(id): Path<String>, body: Bytes) -> ApiResult {
    app.run(move |app| {
        let action = read(&body, &["action"], |fields| {
            fields.required("action", |fields, name| fields.text(name, ANY_LENGTH))
        })?;
        let session = app.sessions.find_named(Interface::Native, &id)?;
        let view = session.step(&action.expect("a required field was read"))?;
        Ok(http::ok(&Shown::new(&session, view)))
    })
    .await
}

async fn fork(State(app): State<Arc<App>>, Path(id): Path<String>, body: Bytes) -> ApiResult {
    app.run(move |app| {
        let n = read(&body, &["n"], |fields| {
            fields.required("n", |fields, name| fields.unsigned(name, u64::from(u32::MAX)))
        })?;
        let n = n.expect("a required field was read") as usize;
        let session = app.sessions.find_named(Interface::Native, &id)?;
        let copies = app.sessions.fork(&session, n)?;
        let ids: Vec<String> = copies.iter().map(|copy| copy.id().to_string()).collect();
        Ok(http::ok(&json!({ "ids": ids })))
    })
    .await
}

async fn snapshot(State(app): State<Arc<App>>, Path(id): Path<String>) -> ApiResult {
    app.run(move |app| {
        let session = app.sessions.find_named(Interface::Native, &id)?;
        Ok(http::ok(&json!({ "snapshot": STANDARD.encode(session.snapshot()?) })))
    })
    .await
}
