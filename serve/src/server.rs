//! The server: one port, all interfaces, and an orderly end.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch as watched};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tower_http::timeout::RequestBodyTimeoutLayer;
use webshop_env::{ENVIRONMENT_ID, EnvConfig, Shop};

use crate::access;
use crate::app::App;
use crate::connections;
use crate::error::ServeError;
use crate::http::Routes;
use crate::mcp::allowed::Allowed;
use crate::mcp::service::McpService;
use crate::model::{Model, ModelConfig};
use crate::replay::recordings::Recordings;
use crate::sessions::{Defaults, Limits, Sessions};
use crate::site::record_file::RecordFile;
use crate::site::recorder::Recorder;
use crate::watch::runs::Runs;
use crate::{agentgym, mcp, metrics, native, openai, openapi, openenv, replay, site, unserved, watch};

/// The longest time for what is under way when the server stops. The process ends within two seconds.
const GRACE: Duration = Duration::from_millis(1750);

/// Parts of the idle time after which idle sessions are looked for; a session is dropped at most one part late.
const IDLE_INTERVALS: u32 = 8;

/// What a server serves, and to whom.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// What a reset takes if its request does not say.
    pub defaults: Defaults,
    /// The largest number of sessions.
    pub max_sessions: usize,
    /// The time after which an unused session is dropped; at least a millisecond.
    pub idle: Duration,
    /// The largest body or message in bytes.
    pub max_body: usize,
    /// The longest time from the beginning of a connection, or from its last response, to the end of a request's head.
    pub header_timeout: Duration,
    /// The longest time between two parts of a body.
    pub body_timeout: Duration,
    /// The bearer token that clients must send, if any.
    pub token: Option<String>,
    /// The hosts and origins that requests to `/mcp` may have beside those of this machine.
    pub allowed: Allowed,
    /// The folder that keeps the sessions that live without a connection; without one they end with the process.
    pub snapshot_dir: Option<PathBuf>,
    /// The number of threads that serve requests; at least 1.
    pub threads: usize,
}

/// When a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// With SIGTERM or SIGINT.
    OnSignal,
    /// Never.
    Never,
}

/// Where a server that is ready answers; the first line that `webshop serve` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The address of the server.
    pub url: String,
    /// The port.
    pub port: u16,
    /// The number of the process.
    pub pid: u32,
    /// The version of the environment.
    pub environment: &'static str,
    /// The address for OpenEnv's clients.
    pub openenv: String,
    /// The address for MCP clients.
    pub mcp: String,
    /// The address for AgentGym's client.
    pub agentgym: String,
    /// The address for OpenAI's clients; `None` if no model is served.
    pub openai: Option<String>,
    /// The address of the site.
    pub site: String,
}

/// An open port, at which nothing is answered yet.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    /// Opens a port of the first address of `host` that has it free; 0 for any free one.
    ///
    /// # Errors
    /// If the host has no address, or the port is taken.
    pub fn open(host: &str, port: u16) -> Result<Port, ServeError> {
        let unknown = |source| ServeError::Host { host: host.to_owned(), source };
        let addresses = (host, port).to_socket_addrs().map_err(unknown)?;
        Self::first_free(addresses).unwrap_or_else(|| Err(unknown(io::Error::other("no address"))))
    }

    /// Opens the first of `addresses` that is free; the error is of the last. `None` without addresses.
    fn first_free(addresses: impl IntoIterator<Item = SocketAddr>) -> Option<Result<Port, ServeError>> {
        let mut refused = None;
        for address in addresses {
            let bound = TcpListener::bind(address)
                .and_then(|listener| Ok(Port { address: listener.local_addr()?, listener }));
            match bound {
                Ok(port) => return Some(Ok(port)),
                Err(source) => refused = Some(Err(ServeError::Port { address, source })),
            }
        }
        refused
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server with an open port.
pub struct Server {
    port: Port,
    app: App,
    stop: watched::Sender<bool>,
    sockets: mpsc::Receiver<std::convert::Infallible>,
    config: ServeConfig,
}

impl Server {
    /// A server of `shop` at `port`. Connections are answered once it runs.
    ///
    /// # Errors
    /// If the default split has no goals, or the folder of sessions cannot be used.
    pub fn new(port: Port, shop: Arc<Shop>, config: ServeConfig) -> Result<Server, ServeError> {
        let limits = Limits { max_sessions: config.max_sessions, idle_intervals: IDLE_INTERVALS };
        let sessions = match &config.snapshot_dir {
            Some(folder) => Sessions::open_persistent(folder, shop, config.defaults, limits)?,
            None => Sessions::new(shop, config.defaults, limits)?,
        };
        let sessions = Arc::new(sessions);
        let mcp = McpService::new(&sessions, config.idle, config.max_body, &config.allowed);
        let (stop, stopping) = watched::channel(false);
        let (open_socket, sockets) = mpsc::channel(1);
        let app = App {
            sessions,
            mcp,
            model: None,
            responses: Default::default(),
            goals_given: Default::default(),
            recordings: Recordings::default(),
            runs: None,
            recorder: None,
            max_body: config.max_body,
            body_timeout: config.body_timeout,
            token: config.token.clone(),
            stopping,
            open_socket,
        };
        Ok(Server { port, app, stop, sockets, config })
    }

    /// The server, which shows these episodes at `/replay`.
    pub fn showing(mut self, recordings: Recordings) -> Server {
        self.app.recordings = recordings;
        self
    }

    /// The server, which shows these training runs at `/watch`.
    pub fn watching(mut self, runs: impl Runs + 'static) -> Server {
        self.app.runs = Some(Box::new(runs));
        self
    }

    /// The server, which appends the episodes of people who shop on the site to a file of its shop.
    pub fn recording(mut self, file: RecordFile) -> Server {
        let Defaults { max_steps, observation, .. } = self.config.defaults;
        self.app.recorder = Some(Recorder::new(file, EnvConfig { max_steps, observation }));
        self
    }

    /// The server, which serves a language model at OpenAI's addresses.
    ///
    /// # Errors
    /// If the caches of the model do not fit into the device's memory, its tokenizer lacks a special token of its
    /// prompt format, or its thread cannot be started.
    pub fn serving(mut self, model: ModelConfig) -> Result<Server, ServeError> {
        self.app.model = Some(Arc::new(Model::start(model)?));
        Ok(self)
    }

    /// Where it answers.
    pub fn ready(&self) -> Ready {
        let url = format!("http://{}", self.port.address);
        Ready {
            port: self.port.address.port(),
            pid: std::process::id(),
            environment: ENVIRONMENT_ID,
            openenv: url.clone(),
            mcp: format!("{url}/mcp"),
            agentgym: format!("{url}/agentgym"),
            openai: self.app.model.as_ref().map(|_| format!("{url}/v1")),
            site: format!("{url}/"),
            url,
        }
    }

    /// Serves until the end; calls `begun` once signals are handled and requests are answered.
    ///
    /// # Errors
    /// If threads or sockets fail, or `begun` does.
    pub fn run(self, stop: Stop, begun: impl FnOnce() -> io::Result<()>) -> Result<(), ServeError> {
        let runtime: Runtime =
            Builder::new_multi_thread().worker_threads(self.config.threads.max(1)).enable_all().build()?;
        let outcome = runtime.block_on(self.serve(stop, begun));
        // Searches that still run in a large catalog are of no use to anybody.
        runtime.shutdown_background();
        Ok(outcome?)
    }

    async fn serve(self, stop: Stop, begun: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Server { port, app, stop: stopper, mut sockets, config } = self;
        let app = Arc::new(app);
        port.listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(port.listener)?;
        let signal = Signals::new(stop)?;
        let idle = tokio::spawn(expire_idle(Arc::clone(&app), config.idle));
        let (router, stopping) = (router(&app), app.stopping.clone());
        let serving = tokio::spawn(connections::serve(listener, router, config.header_timeout, stopping));
        begun()?;
        signal.received().await;
        tracing::info!("the server stops");
        idle.abort();
        stopper.send_replace(true);
        app.mcp.stop();
        // From here on only the sockets keep senders.
        drop(app);
        let end = async {
            let served = serving.await;
            sockets.recv().await;
            served.map_err(io::Error::other)
        };
        timeout(GRACE, end).await.unwrap_or(Ok(()))
    }
}

/// The signals that end the server.
#[cfg(unix)]
struct Signals(Option<[tokio::signal::unix::Signal; 2]>);

#[cfg(unix)]
impl Signals {
    /// From here on the signals are handled.
    fn new(stop: Stop) -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals(match stop {
            Stop::OnSignal => Some([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?]),
            Stop::Never => None,
        }))
    }

    async fn received(self) {
        match self.0 {
            Some([mut terminate, mut interrupt]) => {
                tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
            }
            None => pending().await,
        }
    }
}

/// The signal that ends the server: Ctrl-C.
#[cfg(not(unix))]
struct Signals(Stop);

#[cfg(not(unix))]
impl Signals {
    fn new(stop: Stop) -> io::Result<Signals> {
        Ok(Signals(stop))
    }

    async fn received(self) {
        // Without a console there is no Ctrl-C, and the server runs until it is killed.
        if self.0 == Stop::Never || tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// Drops idle sessions.
async fn expire_idle(app: Arc<App>, idle: Duration) {
    let mut intervals = interval((idle / IDLE_INTERVALS).max(Duration::from_millis(1)));
    intervals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate.
    intervals.tick().await;
    loop {
        intervals.tick().await;
        let sessions = Arc::clone(&app.sessions);
        // It waits for steps that are under way in the sessions that it drops.
        if let Err(error) = tokio::task::spawn_blocking(move || sessions.expire_idle()).await {
            tracing::error!("idle sessions were not dropped: {error}");
        }
    }
}

/// The routes of all interfaces.
pub(crate) fn routes() -> Routes {
    native::routes()
        .and(openenv::routes())
        .and(mcp::routes())
        .and(agentgym::routes())
        .and(openai::routes())
        .and(metrics::routes())
        .and(openapi::routes())
        .and(replay::routes())
        .and(watch::routes())
        .and(site::routes())
}

fn router(app: &Arc<App>) -> Router {
    routes()
        .router
        .fallback(unserved::no_such_address)
        .layer(DefaultBodyLimit::max(app.max_body))
        .layer(RequestBodyTimeoutLayer::new(app.body_timeout))
        .layer(from_fn(unserved::normalize_errors))
        .layer(from_fn_with_state(Arc::clone(app), access::authorize_and_log))
        .with_state(Arc::clone(app))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_address_of_a_host_is_opened() {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let taken = Port::first_free([any]).unwrap().unwrap();
        let port = Port::first_free([taken.address(), any, taken.address()]).unwrap().unwrap();
        assert_eq!(port.address().ip(), any.ip());
        assert_ne!(port.address().port(), taken.address().port());
        let refused = Port::first_free([taken.address()]).unwrap().unwrap_err();
        assert!(
            matches!(refused, ServeError::Port { address, .. } if address == taken.address()),
            "{refused}"
        );
        assert!(Port::first_free([]).is_none());
    }
}
