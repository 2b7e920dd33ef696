//! The shop as a server: one table of sessions behind several interfaces.
//!
//! [`Sessions`] is the table, without a network: it resets, steps, forks, stores and drops sessions. A [`Server`]
//! puts interfaces before it on one port, one module each: our own REST interface at `/api/v1`, OpenEnv's
//! WebSocket and HTTP addresses, AgentGym's addresses below `/agentgym`, MCP's tools at `/mcp`, and the pages of the
//! original's site. [`serve_stdio`] serves one MCP client over standard input.
//! [`Recordings`] are episodes that people look at step by step, also in one document without a server;
//! [`Runs`] are training runs that they watch. A [`RecordFile`] takes the episodes of people who shop.
//! All take a goal, or a seed that draws one, and show the same texts, actions and rewards as a local session.
//!
//! Sessions that live without a connection may be kept in a folder, and go on after a restart.
//!
//! Nothing that a session shows depends on other sessions, on threads or on time, with one exception: a reset
//! that names neither goal nor seed draws by the session's number, which counts the sessions opened before.
//!
//! A language model may be served beside the shop: [`Server::serving`] adds OpenAI's addresses at `/v1`. It does
//! not know the shop.
//!
//! Nothing is trained, and the server does not encrypt.

#![forbid(unsafe_code)]

mod counters;
mod error;
mod fields;
mod reset;

mod sessions;

mod model;

mod app;
mod blocking;
mod connections;
mod detail;
mod document;
mod http;
mod socket;

mod tools;

mod agentgym;
mod mcp;
mod native;
mod openai;
mod openenv;
mod picture;
mod replay;
mod site;
mod watch;

mod access;
mod health;
mod metrics;
mod open_files;
mod openapi;
mod server;
mod unserved;

pub use counters::{Counts, Ends};
pub use error::{ServeError, SessionError, StoreError};
pub use health::check_health;
pub use mcp::allowed::{Allowed, AllowedError, AllowedHost, AllowedOrigin};
pub use mcp::stdio::serve_stdio;
pub use model::ModelConfig;
pub use open_files::raise_open_files;
pub use replay::recordings::{Recordings, RecordingsError};
pub use reset::{GoalRequest, ResetRequest};
pub use server::{Port, Ready, ServeConfig, Server, Stop};
pub use sessions::episode::LastAction;
pub use sessions::session::{OpenSession, SessionView};
pub use sessions::{Defaults, Interface, Lifetime, Limits, SessionId, Sessions};
pub use site::record_file::{RecordFile, RecordFileError};
pub use tools::ToolNames;
pub use watch::runs::{RunError, RunFigure, RunPhase, RunStage, RunState, Runs};
