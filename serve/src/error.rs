//! Errors of sessions and of the server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use webshop_env::SnapshotError;
use webshop_lm::LmError;
use webshop_products::Split;

/// A request about sessions that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// More sessions than the server has at all.
    #[error("{n} sessions are more than the {limit} of this server; start it with more `--max-sessions`")]
    TooMany {
        /// The number asked for.
        n: usize,
        /// The largest number of sessions.
        limit: usize,
    },
    /// Too few sessions are free.
    #[error(
        "{active} of {limit} sessions are in use; close some, or start the server with more `--max-sessions`"
    )]
    Full {
        /// The sessions in use.
        active: usize,
        /// The largest number of sessions.
        limit: usize,
    },
    /// The shop has no such goal.
    #[error("there is no goal `{goal}`; the shop has {n_goals} goals, from 0")]
    NoSuchGoal {
        /// The number asked for, as it was written.
        goal: String,
        /// The number of goals.
        n_goals: usize,
    },
    /// The split has no goal at this index.
    #[error("there is no goal at index `{index}` of the split `{split}`, which has {n_goals} goals, from 0")]
    NoSuchIndex {
        /// The split.
        split: Split,
        /// The index asked for.
        index: u64,
        /// The number of goals in the split.
        n_goals: usize,
    },
    /// The split has no goals to draw from.
    #[error("the split `{0}` has no goals")]
    EmptySplit(Split),
    /// No session has this name: it never had, was closed, or was idle for too long.
    #[error("there is no session `{0}`; it may have been closed, or idle for too long")]
    NoSuchSession(String),
    /// Another connection is attached to the session.
    #[error("session `{0}` already has a connection")]
    Attached(String),
    /// The bytes are not a snapshot of an environment of this shop.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// A folder of sessions that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or the folder cannot be read or written.
    #[error("cannot use `{path}`, of the sessions that are kept")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("the folder `{0}` is in use by another server; give another `--snapshot-dir`")]
    InUse(PathBuf),
    /// The sessions are those of another shop.
    #[error(
        "the folder `{folder}` has {n_sessions} sessions of another shop, with other {differences}; start with that \
         shop's flags, or give another `--snapshot-dir`"
    )]
    OtherShop {
        /// The folder.
        folder: PathBuf,
        /// The number of its sessions.
        n_sessions: usize,
        /// The names of what differs.
        differences: String,
    },
    /// The file that names the shop cannot be read.
    #[error(
        "`{path}` is not what a server wrote: {reason}; without it the numbers of sessions are not known, so give \
         another `--snapshot-dir`"
    )]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A session was written by another version of this program.
    #[error("the session in `{path}` cannot go on: {reason}; start the version that wrote it, or remove it")]
    Session {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A server that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The name of the host has no address.
    #[error("the host `{host}` cannot be resolved")]
    Host {
        /// The host as given.
        host: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The port cannot be opened.
    #[error("cannot listen on `{address}`; give another port with `--port`, or 0 for a free one")]
    Port {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The shop cannot be served.
    #[error("the shop cannot be served")]
    Shop(#[from] SessionError),
    /// The folder of sessions cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model cannot be served.
    #[error("the model cannot be served")]
    Model(#[from] LmError),
    /// The MCP client does not begin as the protocol says.
    #[error("the MCP client did not begin as the protocol says: {reason}")]
    Client {
        /// What it did.
        reason: String,
    },
    /// Threads, signals or sockets failed.
    #[error("the server cannot run")]
    Runtime(#[from] std::io::Error),
}
