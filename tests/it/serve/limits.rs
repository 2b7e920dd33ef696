//! How many sessions, how large a message, for how long, and with which token.

use std::time::Duration;

use serde_json::{Value, json};
use webshop_serve::ServeConfig;

use crate::common::client::{config, served, wait_until};

#[test]
fn a_full_server_refuses_in_every_interfaces_form() {
    let server = served(ServeConfig { max_sessions: 2, ..config() });
    let mut first = server.socket("/ws");
    first.say(json!({"type": "reset"}));
    server.post("/agentgym/create", &json!({}));
    let refused = server.socket("/ws").next();
    let expected = json!({"code": "CAPACITY_REACHED", "active_sessions": 2, "max_sessions": 2});
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&refused["data"][name], value, "{refused}");
    }
    for (path, body) in [
        ("/api/v1/sessions", json!({})),
        ("/agentgym/create", json!({})),
        ("/reset", json!({})),
        ("/step", json!({"action": {"action": "x"}})),
    ] {
        let reply = server.post(path, &body);
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{path}: {reply:?}");
    }
    let create = json!({"jsonrpc": "2.0", "method": "openenv/session/create", "id": 1});
    let error = server.post("/mcp", &create).json()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["max_sessions"]), (&(-32000).into(), &2.into()));
    assert_eq!(server.get("/fixed_0").status, 200, "the site keeps no sessions");
    // A connection that ends makes room.
    first.send("{\"type\": \"close\"}");
    first.closed();
    assert_eq!(server.post("/api/v1/sessions", &json!({})).status, 200);
}

#[test]
fn bodies_and_messages_have_a_largest_size() {
    let server = served(ServeConfig { max_body: 1000, ..config() });
    let large = json!({"action": "x".repeat(2000)}).to_string();
    for path in ["/api/v1/sessions", "/reset", "/agentgym/step", "/mcp", "/fixed_0"] {
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        assert_eq!(server.send("POST", path, headers, &large).status, 413, "{path}");
    }
    let mut socket = server.socket("/ws");
    socket.send(&large);
    assert_eq!(socket.closed(), Some(1009));
    let mut socket = server.socket("/ws");
    let small = json!({"type": "step", "data": {"action": "x".repeat(900)}}).to_string();
    assert_eq!(socket.ask(&small)["data"]["observation"]["noop"], "malformed");
}

#[test]
fn idle_sessions_are_dropped_and_those_on_sockets_are_not() {
    let server = served(ServeConfig { idle: Duration::from_millis(40), ..config() });
    let mut socket = server.socket("/ws");
    let before = socket.say(json!({"type": "reset", "data": {"goal": 1}}))["data"]["observation"].clone();
    let idle = server.post("/api/v1/sessions", &json!({})).json();
    let number = |info: &Value| info["sessions"].as_u64().expect("a number");
    // Every look is at the number of sessions only, which is no use of one.
    wait_until("the idle session is dropped", || number(&server.get("/api/v1/info").json()) == 1);
    let path = format!("/api/v1/sessions/{}", idle["id"].as_str().expect("a name"));
    assert_eq!(server.get(&path).status, 404);
    let after = socket.say(json!({"type": "state"}));
    assert_eq!(after["data"]["digest"], before["metadata"]["digest"]);
}

#[test]
fn a_token_is_asked_for_everywhere_but_at_the_health() {
    let server = served(ServeConfig { token: Some("s3cret".into()), ..config() });
    for path in ["/api/v1/info", "/fixed_0", "/agentgym/", "/state", "/metrics", "/ws", "/nothing"] {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer")), "{path}");
    }
    let openai = server.get("/v1/models").json();
    assert_eq!(openai["error"]["type"], "invalid_request_error", "{openai}");
    assert_eq!(server.get("/health").status, 200);
    let with = |token: &str| {
        server.send("GET", "/api/v1/info", &format!("Authorization: Bearer {token}\r\n"), "").status
    };
    assert_eq!((with("s3cret"), with("secret")), (200, 401));
}

#[test]
fn metrics_count_what_happened() {
    let server = served(config());
    let mut socket = server.socket("/ws");
    socket.say(json!({"type": "reset", "data": {"goal": 0, "max_steps": 2}}));
    (0..3).for_each(|_| drop(socket.say(json!({"type": "step", "data": {"action": "x"}}))));
    server.post("/api/v1/sessions", &json!({"goal": 99999}));
    let reply = server.get("/metrics");
    assert!(reply.header("content-type").expect("a type").starts_with("text/plain"));
    for line in [
        "webshop_sessions_opened_total{interface=\"openenv\"} 1",
        "webshop_steps_total{interface=\"openenv\"} 3",
        "webshop_episodes_truncated_total{interface=\"openenv\"} 1",
        "webshop_resets_total{interface=\"native\"} 0",
        "webshop_sessions{interface=\"openenv\"} 1",
        "webshop_sessions{interface=\"native\"} 0",
        "webshop_sessions_limit 1000",
        "webshop_http_responses_total{status=\"4xx\"} 1",
    ] {
        assert!(reply.body.lines().any(|found| found == line), "{line} in\n{}", reply.body);
    }
    // Every sample belongs to a metric with a type.
    let typed: Vec<&str> =
        reply.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let samples = reply.body.lines().filter(|line| !line.starts_with('#'));
    for name in samples.filter_map(|line| line.split(['{', ' ']).next()) {
        assert!(typed.contains(&name), "{name}");
    }
}
