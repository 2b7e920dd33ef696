//! `webshop serve`: serves the shop on a port until it is asked to stop.

mod model;
mod runs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use webshop_env::Shop;
use webshop_products::Seed;
use webshop_serve::{
    Allowed, AllowedHost, AllowedOrigin, Defaults, Port, RecordFile, ServeConfig, Server, Stop,
    raise_open_files,
};

use self::model::ModelArgs;
use self::runs::WatchedRuns;
use crate::args::observation::ObservationArg;
use crate::args::server::positive_seconds;
use crate::args::shop::{RuledShopArgs, SplitArg, SplitRuleArgs};
use crate::recorded_shops::{RecordedShops, recordings};

/// The longest time to the end of a request's head, and of silence between two requests of a connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// Files that are open beside one for each session: catalog, log, connections without a session.
const OTHER_FILES: u64 = 100;

/// The longest time between two parts of a body; a client that is slower is gone or hostile.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Printed below the flags.
const EXAMPLES: &str = "Examples:
  webshop serve
  webshop serve --catalog 1000 --port 0 --split test
  webshop serve --model runs/first --lanes 32
  webshop serve --replay episodes.jsonl
  webshop serve --snapshot-dir sessions
  webshop serve --watch runs/first
  WEBSHOP_TOKEN=secret webshop serve --host 0.0.0.0 --token-env WEBSHOP_TOKEN

The first line on stdout is one JSON object with the addresses, once the server answers.
SIGTERM and Ctrl-C end it. Exit codes: 0 ended, 2 error.";

/// Flags of `webshop serve`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    shop: RuledShopArgs,
    #[command(flatten)]
    split_rule: SplitRuleArgs,
    /// Split from which a seed, or a reset that names no goal, draws the goal
    #[arg(long, value_enum, default_value = "train")]
    split: SplitArg,
    /// Seed of the goals of resets that name neither goal nor seed, and of completions that name no seed
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Actions after which an episode without a purchase is truncated, unless its reset says otherwise
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
    /// Form of observations, unless a reset says otherwise
    #[arg(long, value_enum, default_value = "text", value_name = "FORM")]
    observation: ObservationArg,
    /// Address to listen on; any address but this machine's own lets others use the server
    #[arg(long, default_value = "127.0.0.1", value_name = "HOST")]
    host: String,
    /// Port to listen on; 0 for a free one
    #[arg(long, default_value_t = 8000, value_name = "N")]
    port: u16,
    /// Largest number of sessions, over all interfaces
    #[arg(long, default_value_t = 4096, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: u32,
    /// Seconds after which a session that nobody uses is dropped; one on a WebSocket lives as long as that
    #[arg(long, default_value = "1800", value_parser = positive_seconds, value_name = "S")]
    idle_seconds: Duration,
    /// Folder that keeps sessions, so that they go on after a restart: all but those that end with their
    /// connection. It is made if there is none
    #[arg(long, value_name = "DIR")]
    snapshot_dir: Option<PathBuf>,
    /// Largest body of a request, or message of a WebSocket, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES")]
    max_body: usize,
    /// Environment variable that holds a bearer token, which is then asked for everywhere but at `/health`
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    /// Host by which clients may call `/mcp` (MCP, and OpenEnv's JSON-RPC), beside this machine and `--host`. May be repeated
    #[arg(long, value_name = "HOST[:PORT]")]
    allow_host: Vec<AllowedHost>,
    /// Origin of web pages that may call `/mcp`, beside those of this machine. May be repeated
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<AllowedOrigin>,
    /// Recorded episodes of this shop to show at `/replay`: a file of `webshop rollout --out`, or one under
    /// `episodes/` of a run folder. May be repeated
    #[arg(long, value_name = "FILE.jsonl")]
    replay: Vec<PathBuf>,
    /// Training run to show at `/watch` as it goes: a run folder of `webshop train`, which need not exist yet, or the
    /// folder of a comparison. May be repeated
    #[arg(long, value_name = "DIR")]
    watch: Vec<PathBuf>,
    /// File to which the episodes of people who buy something on the site are appended, policy `human`: a new one, or
    /// an earlier recording of people in this shop
    #[arg(long, value_name = "FILE.jsonl")]
    record: Option<PathBuf>,
    // Last, because its heading would apply to the flags after it.
    #[command(flatten)]
    model: ModelArgs,
}

/// Serves until a signal.
pub(crate) fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let token = args.token_env.as_deref().map(token).transpose()?;
    // The port first: a catalog may take minutes to load.
    let port = Port::open(&args.host, args.port)?;
    if !port.address().ip().is_loopback() && token.is_none() {
        let address = port.address();
        tracing::warn!("anybody who reaches `{address}` can use the server; `--token-env` asks for a token");
    }
    let config = ServeConfig {
        defaults: Defaults {
            split: args.split.into(),
            max_steps: args.max_steps,
            observation: args.observation.into(),
            seed: Seed(args.seed),
        },
        max_sessions: args.max_sessions as usize,
        idle: args.idle_seconds,
        max_body: args.max_body,
        header_timeout: HEADER_TIMEOUT,
        body_timeout: BODY_TIMEOUT,
        token,
        allowed: Allowed { hosts: hosts(&args.host, args.allow_host), origins: args.allow_origin },
        snapshot_dir: args.snapshot_dir,
        threads: rayon::current_num_threads(),
    };
    check_open_files(args.max_sessions);
    let shop = Arc::new(args.shop.open_split_by(args.split_rule)?);
    let recordings = recordings(&args.replay, &mut RecordedShops::new(Arc::clone(&shop)))?;
    let mut server = Server::new(port, Arc::clone(&shop), config)?.showing(recordings);
    if !args.watch.is_empty() {
        server = server.watching(WatchedRuns::open(&args.watch)?);
    }
    if let Some(path) = &args.record {
        server = server.recording(record_file(path, &shop)?);
    }
    if let Some(model) = args.model.load(Seed(args.seed))? {
        server = server.serving(model)?;
    }
    let ready = serde_json::to_string(&server.ready())?;
    server.run(Stop::OnSignal, || {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{ready}")?;
        out.flush()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Warns if fewer files may be open than there may be sessions, each on a WebSocket of its own.
fn check_open_files(max_sessions: u32) {
    let needed = u64::from(max_sessions) + OTHER_FILES;
    if let Some(limit) = raise_open_files().filter(|&limit| limit < needed) {
        tracing::warn!(
            "{limit} files may be open, fewer than {max_sessions} sessions on WebSockets need; raise `ulimit -Hn`"
        );
    }
}

/// The hosts that are allowed: those of the flags, and the one that the server listens on.
fn hosts(own: &str, mut allowed: Vec<AllowedHost>) -> Vec<AllowedHost> {
    // An IPv6 address, which has no brackets here, is for `--allow-host`.
    allowed.extend(own.parse());
    allowed
}

/// The file of `--record`.
fn record_file(path: &Path, shop: &Arc<Shop>) -> anyhow::Result<RecordFile> {
    let file = RecordFile::open(path, shop)?;
    let (name, n_dropped) = (path.display(), file.dropped_bytes());
    if n_dropped > 0 {
        tracing::warn!("the last line of `{name}` is incomplete; its {n_dropped} bytes are dropped");
    }
    if !file.is_empty() {
        tracing::info!("`{name}` has {} episodes, to which others are appended", file.len());
    }
    Ok(file)
}

/// The token of an environment variable. It has no flag, because lists of processes show flags.
fn token(variable: &str) -> anyhow::Result<String> {
    match std::env::var(variable) {
        Ok(token) if !token.is_empty() => {
            let is_sent_whole = token.bytes().all(|byte| byte.is_ascii_graphic());
            ensure!(
                is_sent_whole,
                "the token in the environment variable `{variable}` has other than visible ASCII characters, \
                 which clients cannot send; a line break at its end is one"
            );
            Ok(token)
        }
        Ok(_) | Err(std::env::VarError::NotPresent) => {
            bail!("the environment variable `{variable}` of `--token-env` holds no token")
        }
        Err(std::env::VarError::NotUnicode(_)) => {
            bail!("the token in the environment variable `{variable}` is not valid UTF-8")
        }
    }
}
