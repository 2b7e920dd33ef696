//! What every handler shares: the sessions, the model, and the state of the server.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::blocking;
use crate::counters::ResponseCounts;
use crate::mcp::service::McpService;
use crate::model::Model;
use crate::replay::recordings::Recordings;
use crate::sessions::Sessions;
use crate::site::recorder::Recorder;
use crate::watch::runs::Runs;

/// The state that every handler shares.
pub(crate) struct App {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) mcp: McpService,
    /// The served language model, if there is one.
    pub(crate) model: Option<Arc<Model>>,
    pub(crate) responses: ResponseCounts,
    /// The number of goals that people were given at the entrance.
    pub(crate) goals_given: AtomicU64,
    /// The recorded episodes that are shown.
    pub(crate) recordings: Recordings,
    /// The training runs that are watched.
    pub(crate) runs: Option<Box<dyn Runs>>,
    /// Writes the episodes of people who shop on the site.
    pub(crate) recorder: Option<Recorder>,
    /// The largest body or message in bytes.
    pub(crate) max_body: usize,
    /// The longest time between two parts of a body.
    pub(crate) body_timeout: Duration,
    /// What a client must send as a bearer token, if anything.
    pub(crate) token: Option<String>,
    /// Becomes true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// A copy is kept by every open WebSocket, so that the server sees when the last one is closed.
    pub(crate) open_socket: mpsc::Sender<Infallible>,
}

impl App {
    /// Runs `work`, on this thread unless a search may take long.
    pub(crate) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&App) -> T + Send + 'static,
    ) -> T {
        let shop = Arc::clone(self.sessions.shop());
        blocking::run(&shop, move || work(&self)).await
    }
}
