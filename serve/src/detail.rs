//! Errors as FastAPI's servers write them, which OpenEnv's and AgentGym's are: `{"detail": …}`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::SessionError;
use crate::fields::{FieldError, Fields};
use crate::http::{self, BodyError};

/// An error with a text.
pub(crate) fn text(status: StatusCode, message: &str) -> Response {
    http::json(status, &json!({ "detail": message }))
}

/// Status 422 with the wrong fields; `outer` is where they are: `body` or `query`.
pub(crate) fn wrong_fields(errors: &[FieldError], outer: &[&str]) -> Response {
    let errors: Vec<Value> = errors.iter().map(|error| error.to_json(outer)).collect();
    http::json(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "detail": errors }))
}

/// Status 422 for a body that is not a JSON object.
pub(crate) fn wrong_body(error: &BodyError) -> Response {
    let error = match error {
        BodyError::Syntax(error) => json!({
            "type": "json_invalid", "loc": ["body", error.column()], "msg": "JSON decode error", "input": {},
            "ctx": { "error": error.to_string() },
        }),
        BodyError::NoObject(input) => json!({
            "type": "model_attributes_type", "loc": ["body"], "input": input,
            "msg": "Input should be a valid dictionary or object to extract fields from",
        }),
    };
    http::json(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "detail": [error] }))
}

/// The response to a request about sessions that cannot be met; `field` named the goal.
pub(crate) fn session_error(error: &SessionError, field: &str) -> Response {
    let message = error.to_string();
    match error {
        SessionError::Full { .. } => http::retry(text(StatusCode::SERVICE_UNAVAILABLE, &message)),
        SessionError::TooMany { .. } => text(StatusCode::BAD_REQUEST, &message),
        SessionError::NoSuchSession(_) => text(StatusCode::NOT_FOUND, &message),
        SessionError::Attached(_) => text(StatusCode::CONFLICT, &message),
        SessionError::NoSuchGoal { .. }
        | SessionError::NoSuchIndex { .. }
        | SessionError::EmptySplit(_)
        | SessionError::Snapshot(_) => {
            let error = json!({"type": "value_error", "loc": ["body", field], "msg": message, "input": null});
            http::json(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "detail": [error] }))
        }
    }
}

/// The response to a request that is refused; boxed, because it is large and rare.
pub(crate) struct ErrorResponse(Box<Response>);

impl From<Response> for ErrorResponse {
    fn from(response: Response) -> ErrorResponse {
        ErrorResponse(Box::new(response))
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// What `read` finds in the object of a body.
pub(crate) fn read<T>(body: &[u8], read: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T, ErrorResponse> {
    let object = http::object(body).map_err(|error| wrong_body(&error))?;
    let mut fields = Fields::new(&object);
    let found = read(&mut fields);
    Ok(fields.finish(found).map_err(|errors| wrong_fields(&errors, &["body"]))?)
}
