//! OpenEnv's JSON-RPC 2.0: tools, and sessions over HTTP that a WebSocket may attach to.
//!
//! Over HTTP the status is 200 also for errors.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::NAME;
use crate::app::App;
use crate::error::SessionError;
use crate::http;
use crate::sessions::session::{OpenSession, SessionView};
use crate::sessions::{Interface, Lifetime};
use crate::tools::{self, Call, ToolError, ToolNames};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const SERVER_ERROR: i64 = -32000;

/// A request that cannot be met.
struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }
}

impl From<SessionError> for RpcError {
    fn from(error: SessionError) -> RpcError {
        let message = error.to_string();
        match error {
            SessionError::Full { active, limit } => {
                let data = json!({"active_sessions": active, "max_sessions": limit});
                RpcError { code: SERVER_ERROR, message, data: Some(data) }
            }
            SessionError::NoSuchSession(_) => RpcError::new(INVALID_PARAMS, message),
            _ => RpcError::new(SERVER_ERROR, message),
        }
    }
}

/// The response to the body of a POST request.
pub(crate) async fn post(app: Arc<App>, body: Bytes) -> Response {
    app.run(move |app| {
        let body = reply(app, None, &body);
        ([http::JSON], body).into_response()
    })
    .await
}

/// The message that refuses a connection, or whatever else has no id.
pub(crate) fn refusal(error: &SessionError) -> String {
    failed(&RpcError::from(error.clone()), Value::Null).to_string()
}

/// The reply to a text; `session` is the connection's own.
pub(super) fn reply(app: &App, session: Option<&OpenSession>, text: &[u8]) -> String {
    let reply = match serde_json::from_slice(text) {
        Ok(request) => respond(app, session, request),
        Err(error) => failed(&RpcError::new(PARSE_ERROR, format!("Parse error: {error}")), Value::Null),
    };
    reply.to_string()
}

/// The response to a request.
pub(super) fn respond(app: &App, session: Option<&OpenSession>, request: Value) -> Value {
    let id = request.get("id").cloned().unwrap_or_default();
    match serve(app, session, &request) {
        Ok(result) => json!({"jsonrpc": "2.0", "result": result, "id": id}),
        Err(error) => failed(&error, id),
    }
}

fn failed(error: &RpcError, id: Value) -> Value {
    let RpcError { code, message, data } = error;
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data.clone();
    }
    json!({"jsonrpc": "2.0", "error": error, "id": id})
}

fn serve(app: &App, session: Option<&OpenSession>, request: &Value) -> Result<Value, RpcError> {
    let method = request.get("method").and_then(Value::as_str);
    let method = match (request.get("jsonrpc").and_then(Value::as_str), method) {
        (Some("2.0"), Some(method)) => method,
        _ => return Err(RpcError::new(INVALID_REQUEST, "Invalid request: not JSON-RPC 2.0 with a method")),
    };
    let none = Map::new();
    let params = match request.get("params") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(params)) => params,
        Some(_) => return Err(RpcError::new(INVALID_PARAMS, "Params must be an object")),
    };
    match method {
        "tools/list" => {
            named_session(app, params)?;
            Ok(json!({"tools": tools::list(ToolNames::WebShop, "inputSchema")}))
        }
        "tools/call" => call_tool(app, session, params),
        "openenv/session/create" => {
            let created = match session {
                Some(own) => own.id(),
                None => app.sessions.open(Interface::OpenEnv, Lifetime::Idle)?.id(),
            };
            Ok(json!({"session_id": created.to_string()}))
        }
        "openenv/session/close" => close(app, session, params),
        _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))),
    }
}

/// The session that the parameter `session_id` names, if it is there.
fn named_session(app: &App, params: &Map<String, Value>) -> Result<Option<OpenSession>, RpcError> {
    match params.get("session_id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(app.sessions.find_named(Interface::OpenEnv, name)?)),
        Some(_) => Err(RpcError::new(INVALID_PARAMS, "Invalid params - 'session_id' must be a string")),
    }
}

fn call_tool(
    app: &App,
    session: Option<&OpenSession>,
    params: &Map<String, Value>,
) -> Result<Value, RpcError> {
    let name = params.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| RpcError::new(INVALID_PARAMS, "Missing 'name' in params"))?;
    let none = Map::new();
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::new(INVALID_PARAMS, "'arguments' must be an object")),
    };
    let named = match session {
        Some(own) => Some(own.clone()),
        None => named_session(app, params)?,
    };
    // A wrong call opens no session, so that it does not change the goals of others.
    let called = match (Call::read(ToolNames::WebShop, name, arguments), named) {
        (Err(wrong), _) => Err(wrong),
        (Ok(call), Some(session)) => call.in_session(&session),
        (Ok(call), None) => call.in_session(&super::open(app)?.session),
    };
    match called {
        Ok(view) => Ok(tool_result(&view)),
        Err(ToolError::Arguments(message)) => {
            Ok(json!({"content": [{"type": "text", "text": message}], "isError": true}))
        }
        Err(ToolError::Session(error)) => Err(error.into()),
        Err(error @ ToolError::NoSuchTool { .. }) => Err(RpcError::new(INVALID_PARAMS, error.message())),
    }
}

/// The page as the result of a tool. `data` is what OpenEnv's client returns.
pub(super) fn tool_result(view: &SessionView) -> Value {
    let structured = tools::structured(view);
    json!({
        "content": [{"type": "text", "text": tools::text(view)}],
        "structuredContent": structured,
        "isError": false,
        "data": structured,
    })
}

fn close(app: &App, session: Option<&OpenSession>, params: &Map<String, Value>) -> Result<Value, RpcError> {
    if let Some(own) = session.map(|own| own.id().to_string())
        && params.get("session_id").and_then(Value::as_str) == Some(&own)
    {
        let message = format!("the connection owns session `{own}` of {NAME}; close the connection");
        return Err(RpcError::new(INVALID_REQUEST, message));
    }
    let Some(named) = named_session(app, params)? else {
        return Err(RpcError::new(INVALID_PARAMS, "Invalid params - 'session_id' is required"));
    };
    app.sessions.close(named.id());
    Ok(json!({"session_id": named.id().to_string(), "closed": true}))
}
