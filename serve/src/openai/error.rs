//! Errors as OpenAI writes them: `{"error": {"message", "type", "param", "code"}}`.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::fields::{self, FieldError};
use crate::http;
use crate::model::{GenerationError, SubmitError};

/// A request that is refused, or that failed.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    /// The field at fault.
    param: Option<String>,
    message: String,
}

impl ApiError {
    /// A request that is wrong in itself; `param` is the field at fault.
    pub(super) fn invalid(message: impl Into<String>, param: Option<&str>) -> ApiError {
        ApiError {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: None,
            param: param.map(str::to_owned),
            message: message.into(),
        }
    }

    /// A request that reaches no handler.
    pub(super) fn unserved(status: StatusCode, code: &'static str, message: &str) -> ApiError {
        ApiError { status, code: Some(code), ..ApiError::invalid(message, None) }
    }

    /// A name of a model that is not served.
    pub(super) fn no_such_model(message: String) -> ApiError {
        let code = Some("model_not_found");
        ApiError { status: StatusCode::NOT_FOUND, code, ..ApiError::invalid(message, Some("model")) }
    }

    /// A request with these wrong fields, at least one.
    pub(super) fn of_fields(errors: Vec<FieldError>) -> ApiError {
        let place = errors.first().map(FieldError::place);
        ApiError::invalid(fields::messages(&errors), place.as_deref())
    }

    /// A generation that is not begun; `param` is the field of the prompt.
    pub(super) fn rejected(rejection: &SubmitError, param: &str) -> ApiError {
        let error = ApiError::invalid(rejection.to_string(), Some(param));
        match rejection {
            SubmitError::TooLong { .. } => ApiError { code: Some("context_length_exceeded"), ..error },
            SubmitError::Empty | SubmitError::NoSuchId { .. } | SubmitError::Prompt(_) => error,
            SubmitError::Busy { .. } => ApiError {
                status: StatusCode::TOO_MANY_REQUESTS,
                kind: "rate_limit_error",
                code: Some("rate_limit_exceeded"),
                param: None,
                ..error
            },
            SubmitError::Stopped => ApiError::server(rejection.to_string()),
        }
    }

    fn server(message: String) -> ApiError {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        ApiError { status, kind: "server_error", ..ApiError::invalid(message, None) }
    }

    /// The body of the response.
    pub(super) fn document(&self) -> Value {
        let ApiError { message, kind, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }
}

impl From<GenerationError> for ApiError {
    fn from(failed: GenerationError) -> ApiError {
        ApiError::server(failed.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let response = http::json(self.status, &self.document());
        if self.status == StatusCode::TOO_MANY_REQUESTS { http::retry(response) } else { response }
    }
}
