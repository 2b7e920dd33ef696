//! MCP: tools, tasks and sessions, over HTTP by both generations of the protocol and over standard input.

pub(super) mod client;
mod http;
pub(super) mod stateless;
mod stdio;

use serde_json::{Value, json};
use webshop_agent::OraclePolicy;

use crate::common::client::SHOP;
use crate::common::model::{local_episodes, tasks};
use crate::serve::players::tool_call;

/// The tool calls of the oracle, in the names of the shop's own, for the last of the first `n_goals` goals.
fn solution(goal: u32) -> Vec<(&'static str, Value)> {
    let episode = local_episodes(&tasks(&SHOP, goal + 1), &mut OraclePolicy).pop().expect("an episode");
    episode.turns.iter().map(|turn| tool_call(&turn.action.to_string())).collect()
}

/// The metadata by which a request of the protocol of 2026 stands alone.
fn alone() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}
