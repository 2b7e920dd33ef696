//! The names of sessions: the interface that opened them, and a number.

use std::fmt;

/// An interface that opens sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interface {
    /// Our own REST interface.
    Native,
    /// OpenEnv.
    OpenEnv,
    /// AgentGym.
    AgentGym,
    /// MCP.
    Mcp,
}

impl Interface {
    /// All of them.
    pub const ALL: [Interface; 4] =
        [Interface::Native, Interface::OpenEnv, Interface::AgentGym, Interface::Mcp];

    /// Its name in metrics and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Interface::Native => "native",
            Interface::OpenEnv => "openenv",
            Interface::AgentGym => "agentgym",
            Interface::Mcp => "mcp",
        }
    }
}

/// The name of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The interface it belongs to.
    pub interface: Interface,
    /// Its number, from 0, over all interfaces.
    pub ordinal: u64,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ordinal.fmt(f)
    }
}
