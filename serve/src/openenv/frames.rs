//! The messages of OpenEnv's WebSocket: `reset`, `step`, `state`, `mcp` and `close`.
//!
//! A message that is wrong is answered by an error and does not end the conversation.

use serde_json::{Map, Value, json};

use super::{documents, rpc};
use crate::app::App;
use crate::error::SessionError;
use crate::fields::{FieldError, Fields};
use crate::reset::ResetRequest;
use crate::sessions::session::{OpenSession, SessionView};
use crate::socket::Reply;
use crate::tools::{self, ToolNames};

/// Why a message was not served.
enum MessageError {
    Json(String),
    UnknownType(String),
    Fields(Vec<FieldError>),
    Session(SessionError),
}

/// The message that refuses a connection.
pub(super) fn refusal(error: &SessionError) -> String {
    let mut data = json!({"message": error.to_string(), "code": "SESSION_ERROR"});
    if let SessionError::Full { active, limit } = error {
        data["code"] = "CAPACITY_REACHED".into();
        data["active_sessions"] = (*active).into();
        data["max_sessions"] = (*limit).into();
    }
    json!({"type": "error", "data": data}).to_string()
}

/// The reply to a message; `owns` says whether the session is the connection's own.
pub(super) fn reply(app: &App, session: &OpenSession, owns: bool, text: &str) -> Reply {
    if !owns {
        // An attached session is one that others may have closed.
        if let Err(error) = app.sessions.find(session.id().interface, session.id().ordinal) {
            return Reply::Last(refusal(&error));
        }
    }
    match serve(app, session, text) {
        Ok(Some(reply)) => Reply::Text(reply.to_string()),
        Ok(None) => Reply::End,
        Err(fault) => Reply::Text(json!({"type": "error", "data": fault.to_json()}).to_string()),
    }
}

fn serve(app: &App, session: &OpenSession, text: &str) -> Result<Option<Value>, MessageError> {
    let message: Value = serde_json::from_str(text).map_err(|error| MessageError::Json(error.to_string()))?;
    let Value::Object(message) = message else {
        return Err(MessageError::UnknownType(String::new()));
    };
    let kind = message.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "reset" => {
            let data = data(&message, true)?;
            let mut fields = Fields::new(&data);
            let request = ResetRequest::read(&mut fields);
            let request = fields.finish(request).map_err(MessageError::Fields)?;
            let view = session.reset(&request).map_err(MessageError::Session)?;
            let first = documents::first_observation(app.sessions.shop(), &view);
            Ok(Some(json!({"type": "observation", "data": first})))
        }
        "step" => step(session, &data(&message, false)?).map(Some),
        "state" => {
            let view = session.view().map_err(MessageError::Session)?;
            Ok(Some(json!({"type": "state", "data": documents::state(&view)})))
        }
        "mcp" => {
            let data = Value::Object(data(&message, false)?);
            Ok(Some(json!({"type": "mcp", "data": rpc::respond(app, Some(session), data)})))
        }
        "close" => Ok(None),
        other => Err(MessageError::UnknownType(other.to_owned())),
    }
}

/// The data of a message.
fn data(message: &Map<String, Value>, is_optional: bool) -> Result<Map<String, Value>, MessageError> {
    let mut fields = Fields::new(message);
    let data = match is_optional && !message.contains_key("data") {
        true => None,
        false => fields.required("data", |fields, name| fields.object(name)),
    };
    fields.forbid_others(&["type", "data"]);
    let data = fields.finish(data).map_err(MessageError::Fields)?;
    Ok(data.cloned().unwrap_or_default())
}

fn observed(view: &SessionView) -> Value {
    json!({"type": "observation", "data": documents::observation(view)})
}

/// A step: an action, or one of the two forms by which clients list and call tools.
fn step(session: &OpenSession, data: &Map<String, Value>) -> Result<Value, MessageError> {
    match data.get("type").and_then(Value::as_str) {
        Some("list_tools") => {
            let observation =
                json!({"tools": tools::list(ToolNames::WebShop, "input_schema"), "metadata": {}});
            Ok(
                json!({"type": "observation", "data": {"observation": observation, "reward": null, "done": false}}),
            )
        }
        Some("call_tool") => call_tool(session, data),
        _ => {
            let action = read_action(data).map_err(MessageError::Fields)?;
            Ok(observed(&session.step(&action).map_err(MessageError::Session)?))
        }
    }
}

/// The text of an action, which has no further fields but metadata.
pub(super) fn read_action(data: &Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let mut fields = Fields::new(data);
    let action = fields.required("action", |fields, name| fields.text(name, usize::MAX));
    fields.object("metadata");
    fields.forbid_others(&["action", "metadata"]);
    fields.finish(action).map(Option::unwrap_or_default)
}

fn call_tool(session: &OpenSession, data: &Map<String, Value>) -> Result<Value, MessageError> {
    let mut fields = Fields::new(data);
    let name = fields.required("tool_name", |fields, name| fields.text(name, usize::MAX));
    let arguments = fields.object("arguments").cloned().unwrap_or_default();
    fields.forbid_others(&["type", "tool_name", "arguments", "metadata"]);
    let name = fields.finish(name).map_err(MessageError::Fields)?.unwrap_or_default();
    let (result, error, view) = match tools::call(ToolNames::WebShop, session, &name, &arguments) {
        Ok(view) => (rpc::tool_result(&view), Value::Null, Some(view)),
        Err(error) => {
            let kind = match &error {
                tools::ToolError::NoSuchTool { .. } => "tool_not_found",
                tools::ToolError::Arguments(_) => "invalid_args",
                tools::ToolError::Session(_) => "execution_error",
            };
            (Value::Null, json!({"error_type": kind, "message": error.message()}), None)
        }
    };
    let observation = json!({"tool_name": name, "result": result, "error": error, "metadata": {}});
    let reward = view.as_ref().and_then(|view| view.last).map(|last| last.reward);
    let done = view.is_some_and(|view| view.is_done());
    Ok(json!({"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}))
}

impl MessageError {
    fn to_json(&self) -> Value {
        match self {
            MessageError::Json(reason) => {
                json!({"message": format!("Invalid JSON: {reason}"), "code": "INVALID_JSON"})
            }
            MessageError::UnknownType(kind) => {
                json!({"message": format!("Unknown message type: {kind}"), "code": "UNKNOWN_TYPE"})
            }
            MessageError::Fields(errors) => {
                let errors: Vec<Value> = errors.iter().map(|error| error.to_json(&[])).collect();
                json!({"message": "Invalid message", "code": "VALIDATION_ERROR", "errors": errors})
            }
            MessageError::Session(error) => json!({"message": error.to_string(), "code": "EXECUTION_ERROR"}),
        }
    }
}
