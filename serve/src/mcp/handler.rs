//! The tools of one MCP client, as rmcp calls them.
//!
//! Up to the protocol of 2025-11-25 a handler lives as long as the client's MCP session and owns a session of the
//! shop, unless the address names one. In the protocol of 2026-07-28 every request has a handler of its own, and the
//! address must name the session.

use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, Implementation, InitializeRequestParams, InitializeResult, JsonObject,
    ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use super::names::{NameError, Names};
use super::task::Task;
use crate::blocking;
use crate::error::SessionError;
use crate::reset::ResetRequest;
use crate::sessions::owned::Owned;
use crate::sessions::session::{OpenSession, SessionView};
use crate::sessions::{Interface, Sessions};
use crate::tools::{self, ToolError, ToolNames};

/// JSON-RPC's code for errors of a server's own.
const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// What a client without a session reads.
const UNNAMED: &str =
    "this protocol version has no sessions: name one in the address, as in `/mcp?session=NAME`";

/// What all handlers share.
pub(super) struct Shared {
    pub(super) sessions: Arc<Sessions>,
    pub(super) names: Names,
    /// A permit for each session of the protocol, of which there are no more than sessions of the shop.
    permits: Arc<Semaphore>,
}

impl Shared {
    /// What handlers before a table of sessions share.
    pub(super) fn new(sessions: &Arc<Sessions>) -> Shared {
        let limit = sessions.max_sessions().min(Semaphore::MAX_PERMITS);
        Shared {
            sessions: Arc::clone(sessions),
            names: Names::of(sessions),
            permits: Arc::new(Semaphore::new(limit)),
        }
    }
}

/// Why a request gets no session.
#[derive(Clone, Debug)]
pub(super) enum BeginError {
    /// All are in use.
    Full(SessionError),
    /// The address is wrong.
    Address,
}

/// Takes the refusal of a request, which has it among its extensions.
#[derive(Clone, Default)]
pub(super) struct BeginErrorSlot(Arc<OnceLock<BeginError>>);

impl BeginErrorSlot {
    /// The refusal, if there was one.
    pub(super) fn refusal(&self) -> Option<BeginError> {
        self.0.get().cloned()
    }

    /// Notes why the request of this context is refused. One over standard input has no HTTP status that depends on it.
    fn note(context: &RequestContext<RoleServer>, refusal: BeginError) {
        let parts = context.extensions.get::<Parts>();
        if let Some(outcome) = parts.and_then(|parts| parts.extensions.get::<BeginErrorSlot>()) {
            // A request is refused once.
            let _ = outcome.0.set(refusal);
        }
    }
}

/// The tools of one client.
pub(super) struct Handler {
    shared: Arc<Shared>,
    /// The session of the client's own, with the names of its tools.
    own: OnceLock<(Owned, ToolNames)>,
    /// The number of the session that the client named when it initialized, with the names of its tools.
    named: OnceLock<(u64, ToolNames)>,
    /// Held as long as the session of the protocol.
    permit: OnceLock<OwnedSemaphorePermit>,
    /// Calls take their turns in the order in which they arrive.
    turn: Mutex<()>,
}

impl Handler {
    /// A handler whose client has no session yet.
    pub(super) fn new(shared: Arc<Shared>) -> Handler {
        Handler {
            shared,
            own: OnceLock::new(),
            named: OnceLock::new(),
            permit: OnceLock::new(),
            turn: Mutex::default(),
        }
    }

    /// A handler whose client has a session from the beginning.
    ///
    /// # Errors
    /// If there is no such goal, or all sessions are in use.
    pub(super) fn begun(
        shared: Arc<Shared>,
        reset: &ResetRequest,
        tools: ToolNames,
    ) -> Result<Handler, SessionError> {
        let handler = Handler::new(shared);
        handler.begin(reset, tools)?;
        Ok(handler)
    }

    /// Opens the client's own session.
    fn begin(&self, reset: &ResetRequest, tools: ToolNames) -> Result<(), SessionError> {
        let sessions = &self.shared.sessions;
        // A wrong request opens no session, so that it does not change the goals of others.
        sessions.check(reset)?;
        let owned = Owned::open(sessions, Interface::Mcp)?;
        owned.session.reset(reset)?;
        // A client that initializes twice at once keeps the first session, and this one is closed.
        let _ = self.own.set((owned, tools));
        Ok(())
    }

    /// The session that a request is about, if there is one, and the names of its tools.
    fn session(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Option<OpenSession>, ToolNames), ErrorData> {
        if let Some((owned, tools)) = self.own.get() {
            return Ok((Some(owned.session.clone()), *tools));
        }
        if let Some((ordinal, tools)) = self.named.get() {
            let session = self.shared.sessions.find(Interface::Mcp, *ordinal);
            return Ok((Some(session.map_err(|error| refused(context, error.into()))?), *tools));
        }
        let Task { name, reset, tools } = task(context)?;
        let Some(name) = name else { return Ok((None, tools)) };
        let named = self.shared.names.open(&self.shared.sessions, &name, &reset);
        Ok((Some(named.map_err(|error| refused(context, error))?), tools))
    }
}

/// The task of a request's address.
fn task(context: &RequestContext<RoleServer>) -> Result<Task, ErrorData> {
    let parts =
        context.extensions.get::<Parts>().expect("a handler without a session serves requests over HTTP");
    Task::of(&parts.uri).map_err(|message| {
        BeginErrorSlot::note(context, BeginError::Address);
        ErrorData::invalid_params(message, None)
    })
}

/// The error of a request that finds no session.
fn refused(context: &RequestContext<RoleServer>, error: NameError) -> ErrorData {
    let message = error.to_string();
    let NameError::Session(error @ SessionError::Full { active, limit }) = error else {
        BeginErrorSlot::note(context, BeginError::Address);
        return ErrorData::invalid_params(message, None);
    };
    BeginErrorSlot::note(context, BeginError::Full(error));
    ErrorData::new(SERVER_ERROR, message, Some(json!({"active_sessions": active, "max_sessions": limit})))
}

/// What the client reads at the beginning: the instruction, and how to follow it.
fn instructions(view: &SessionView, tools: ToolNames) -> String {
    let usage = tools::usage(tools);
    format!("Buy what the instruction asks for. {usage}\n\nInstruction: {}", view.instruction)
}

/// Goal and versions, for who evaluates the agent.
fn meta(sessions: &Sessions, view: &SessionView) -> MetaObject {
    let mut meta = JsonObject::new();
    meta.insert("webshop/goal".into(), view.goal.0.into());
    meta.insert("webshop/split".into(), view.split.to_string().into());
    let fingerprint = serde_json::to_value(sessions.shop().fingerprint()).expect("a fingerprint holds texts");
    meta.insert("webshop/fingerprint".into(), fingerprint);
    MetaObject(meta)
}

/// The result of a call.
fn result(view: &SessionView) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(tools::text(view))]);
    result.structured_content = Some(tools::structured(view));
    result
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("webshop", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if self.permit.get().is_none() {
            let permit = Arc::clone(&self.shared.permits).try_acquire_owned().map_err(|_| {
                let limit = self.shared.sessions.max_sessions();
                refused(&context, SessionError::Full { active: limit, limit }.into())
            })?;
            // A client that initializes twice at once keeps the first.
            let _ = self.permit.set(permit);
        }
        let (named, tools) = self.session(&context)?;
        let session = match named {
            Some(session) => {
                // The client keeps this session, and reads an error once it has gone.
                let _ = self.named.set((session.id().ordinal, tools));
                session
            }
            None => {
                let begun = self.begin(&task(&context)?.reset, tools);
                begun.map_err(|error| refused(&context, error.into()))?;
                self.session(&context)?.0.expect("the client's own session has begun")
            }
        };
        let view = session.view().map_err(|error| refused(&context, error.into()))?;
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?.with_instructions(instructions(&view, tools));
        result.meta = Some(meta(&self.shared.sessions, &view));
        Ok(result)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let (session, tools) = self.session(&context)?;
        let mut info = self.get_info();
        match session {
            Some(session) => {
                let view = session.view().map_err(|error| refused(&context, error.into()))?;
                info.instructions = Some(instructions(&view, tools));
                info.meta = Some(meta(&self.shared.sessions, &view));
            }
            None => info.instructions = Some(UNNAMED.to_owned()),
        }
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let names = match (self.own.get(), self.named.get()) {
            (Some((_, names)), _) => *names,
            (None, Some(_)) => self.session(&context)?.1,
            (None, None) => task(&context)?.tools,
        };
        let tools = tools::annotated_list(names).into_iter();
        let tool = |tool| serde_json::from_value::<Tool>(tool).expect("the list is MCP's");
        Ok(ListToolsResult::with_all_items(tools.map(tool).collect()))
    }

    async fn ping(&self, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // A session that the client named is used as long as the client is there.
        match self.named.get() {
            Some(_) => self.session(&context).map(|_| ()),
            None => Ok(()),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // rmcp also ends here with requests whose parameters it cannot read.
        Err(match request.method.as_str() {
            "tools/call" => {
                let message =
                    "the parameters of `tools/call` are `name`, a string, and `arguments`, an object";
                ErrorData::invalid_params(message, None)
            }
            method @ ("initialize" | "ping" | "tools/list") => {
                ErrorData::invalid_params(format!("the parameters of `{method}` cannot be read"), None)
            }
            method => {
                let message = format!("there is no method `{method}`");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
            }
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _turn = self.turn.lock().await;
        let (session, names) = self.session(&context)?;
        let session = session.ok_or_else(|| ErrorData::invalid_params(UNNAMED, None))?;
        let arguments = request.arguments.unwrap_or_default();
        let call = move || tools::call(names, &session, &request.name, &arguments);
        match blocking::run(self.shared.sessions.shop(), call).await {
            Ok(view) => Ok(result(&view).into()),
            Err(ToolError::Arguments(message)) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into())
            }
            Err(ToolError::Session(error)) => Err(refused(&context, error.into())),
            Err(error @ ToolError::NoSuchTool { .. }) => {
                Err(ErrorData::invalid_params(error.message(), None))
            }
        }
    }
}
