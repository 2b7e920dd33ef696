//! The protocol of 2026-07-28, of which every request stands alone: sessions are named in the address.

use std::time::Duration;

use serde_json::{Value, json};
use webshop_products::GoalId;
use webshop_serve::ServeConfig;

use super::client::{HEADERS, Mcp, message};
use super::{alone, solution};
use crate::common::client::{Reply, SHOP, Served, config, served, wait_until};

/// Sends a request; `name` is what the protocol repeats of it in a header.
fn send(server: &Served, query: &str, method: &str, name: Option<&str>, mut params: Value) -> Reply {
    params["_meta"] = alone();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    let headers = format!("{HEADERS}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
    server.send("POST", &format!("/mcp{query}"), &headers, &request.to_string())
}

fn ask(server: &Served, query: &str, method: &str) -> Value {
    message(&send(server, query, method, None, json!({})))
}

/// The response to a call of a tool at an address with this query.
pub(in crate::serve) fn call(server: &Served, query: &str, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    message(&send(server, query, "tools/call", Some(name), params))
}

#[test]
fn a_call_without_a_name_says_that_one_is_needed() {
    let server = served(config());
    let discovered = ask(&server, "", "server/discover")["result"].clone();
    let instructions = discovered["instructions"].as_str().expect("a text");
    assert!(instructions.contains("name one in the address, as in `/mcp?session=NAME`"), "{discovered}");
    let versions = discovered["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&"2026-07-28".into()), "{discovered}");
    let tools = ask(&server, "?tools=agentgym", "tools/list")["result"]["tools"].clone();
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["item"]));
    let refused = call(&server, "", "view_page", &json!({}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .expect("a text")
            .contains("this protocol version has no sessions")
    );
}

#[test]
fn a_named_session_lasts_from_request_to_request() {
    let server = served(config());
    let discovered = ask(&server, "?session=a&goal=3", "server/discover")["result"].clone();
    let instruction = &*SHOP.goals().get(GoalId(3)).instruction;
    assert!(discovered["instructions"].as_str().expect("a text").ends_with(instruction), "{discovered}");
    assert_eq!(discovered["_meta"]["webshop/goal"], 3);
    let mut last = Value::Null;
    for (name, arguments) in solution(3) {
        last = call(&server, "?session=a&goal=3", name, &arguments)["result"].clone();
        // Another name is another session.
        let other = call(&server, "?session=b&goal=4", "view_page", &json!({}))["result"].clone();
        let text = other["structuredContent"]["text"].as_str().expect("a page");
        assert!(text.contains(&*SHOP.goals().get(GoalId(4)).instruction), "{text}");
    }
    assert_eq!(
        (&last["structuredContent"]["reward"], &last["resultType"]),
        (&1.0.into(), &"complete".into())
    );
    let refused = call(&server, "?session=a&goal=5", "view_page", &json!({}))["error"].clone();
    let expected = "session `a` began with another task; end it with DELETE, or take another name";
    assert_eq!((&refused["code"], &refused["message"]), (&(-32602).into(), &expected.into()));
    // A client of the former protocol may use the name, too.
    let agent = Mcp::begin(&server, "?session=a&goal=3");
    assert_eq!(
        agent.call("view_page", &json!({}))["result"]["structuredContent"]["text"],
        last["structuredContent"]["text"]
    );
}

#[test]
fn a_named_session_ends_with_delete() {
    let server = served(ServeConfig { max_sessions: 2, ..config() });
    for name in ["a", "b"] {
        call(&server, &format!("?session={name}"), "view_page", &json!({}));
    }
    let full = send(&server, "?session=c", "tools/call", Some("view_page"), json!({"name": "view_page"}));
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")), "{full:?}");
    let end = || server.send("DELETE", "/mcp?session=a", "MCP-Protocol-Version: 2026-07-28\r\n", "").status;
    assert_eq!([end(), end()], [204, 404]);
    assert_eq!(call(&server, "?session=c", "view_page", &json!({}))["result"]["isError"], false);
}

#[test]
fn an_idle_named_session_is_dropped() {
    let server = served(ServeConfig { idle: Duration::from_millis(40), ..config() });
    call(&server, "?session=a&goal=3", "search", &json!({"query": "shoes"}));
    wait_until("the session is dropped", || server.get("/api/v1/info").json()["sessions"] == 0);
    let begun = call(&server, "?session=a&goal=6", "view_page", &json!({}));
    let text = begun["result"]["structuredContent"]["text"].as_str().expect("a page");
    assert!(text.contains(&*SHOP.goals().get(GoalId(6)).instruction), "the name is free again: {text}");
}
