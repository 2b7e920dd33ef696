//! The server: every interface shows the same shop as a local session, and refuses in its own form.

mod agentgym;
mod command;
mod faults;
mod interfaces;
mod limits;
mod mcp;
mod native;
mod openai;
mod openenv;
mod pages;
mod players;
mod record;
mod replay;
#[cfg(unix)]
mod restart;
mod site;
mod standalone;
mod watch;
