//! A small client of MCP over HTTP, up to the protocol of 2025-11-25.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::client::{Reply, Served, TIMEOUT};

/// What a client of MCP always sends.
pub(in crate::serve) const HEADERS: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A session of the protocol.
pub(in crate::serve) struct Mcp<'a> {
    server: &'a Served,
    path: String,
    id: String,
    /// The response to `initialize`.
    pub(super) begun: Value,
}

/// The request that begins a session.
pub(in crate::serve) fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// The message of a response, which is a JSON document or an event of a stream.
pub(super) fn message(reply: &Reply) -> Value {
    let mut events = reply.body.lines().filter_map(|line| line.strip_prefix("data: {"));
    match events.next() {
        Some(rest) => serde_json::from_str(&format!("{{{rest}")).expect("JSON"),
        None => reply.json(),
    }
}

impl<'a> Mcp<'a> {
    /// Begins a session at an address with this query.
    pub(in crate::serve) fn begin(server: &'a Served, query: &str) -> Mcp<'a> {
        let path = format!("/mcp{query}");
        let reply = server.send("POST", &path, HEADERS, &initialize().to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply.header("mcp-session-id").expect("a session").to_owned();
        let session = Mcp { server, path, id, begun: message(&reply) };
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&begun).status, 202);
        session
    }

    /// Sends a message.
    pub(super) fn post(&self, message: &Value) -> Reply {
        let headers = format!("{HEADERS}Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n", self.id);
        self.server.send("POST", &self.path, &headers, &message.to_string())
    }

    /// The response to a request.
    pub(super) fn ask(&self, method: &str, params: Value) -> Value {
        let reply = self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        assert_eq!(reply.status, 200, "{reply:?}");
        message(&reply)
    }

    /// The response to a call of a tool.
    pub(in crate::serve) fn call(&self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Opens the session's stream of events.
    pub(in crate::serve) fn listen(&self) -> TcpStream {
        let mut stream = TcpStream::connect(&self.server.address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
        let (path, host, id) = (&self.path, &self.server.address, &self.id);
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n");
        let request = format!("{head}Connection: close\r\nMcp-Session-Id: {id}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        stream
    }

    /// Sends a request to the session's address that asks for its end.
    pub(in crate::serve) fn end(&self) -> Reply {
        self.server.send("DELETE", &self.path, &format!("Mcp-Session-Id: {}\r\n", self.id), "")
    }
}
