//! MCP over standard input and output: one client, one session.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;
use tokio::runtime::Builder;
use webshop_env::Shop;

use super::handler::{Handler, Shared};
use crate::error::ServeError;
use crate::reset::ResetRequest;
use crate::sessions::{Defaults, Limits, Sessions};
use crate::tools::ToolNames;

/// Serves one episode to the MCP client that writes to standard input and reads standard output, until it closes
/// standard input.
///
/// # Errors
/// If there is no such goal, the client does not begin as the protocol says, or threads fail.
pub fn serve_stdio(
    shop: Arc<Shop>,
    defaults: Defaults,
    reset: &ResetRequest,
    tools: ToolNames,
) -> Result<(), ServeError> {
    let limits = Limits { max_sessions: 1, idle_intervals: 1 };
    let sessions = Arc::new(Sessions::new(shop, defaults, limits)?);
    let shared = Arc::new(Shared::new(&sessions));
    let handler = Handler::begun(shared, reset, tools)?;
    // One thread begins requests in the order in which they arrive.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let running = match handler.serve(stdio_pipes()).await {
            // A client that leaves without a word has lost nothing.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            begun => begun.map_err(|error| ServeError::Client { reason: error.to_string() })?,
        };
        let ended = running.waiting().await;
        ended.map(|_| ()).map_err(|error| ServeError::Runtime(std::io::Error::other(error)))
    });
    // A read of standard input may still be under way.
    runtime.shutdown_background();
    outcome
}
