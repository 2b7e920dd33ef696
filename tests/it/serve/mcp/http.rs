//! Sessions of the protocol up to 2025-11-25, over HTTP.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use webshop_env::Compat;
use webshop_products::{GoalId, Seed, Split};
use webshop_serve::{Allowed, Port, ServeConfig, Server, Stop};
use webshop_training::config::{CatalogConfig, GoalsChoice};
use webshop_training::open_shop;

use super::client::{HEADERS, Mcp, initialize, message};
use super::solution;
use crate::common::client::{SHOP, Served, config, served, wait_until};

fn n_sessions(server: &Served) -> u64 {
    server.get("/api/v1/info").json()["sessions"].as_u64().expect("a number")
}

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[test]
fn an_agent_finds_instruction_and_tools_and_buys() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3");
    let begun = &agent.begun["result"];
    let instruction = &*SHOP.goals().get(GoalId(3)).instruction;
    assert!(begun["instructions"].as_str().expect("a text").ends_with(instruction), "{begun}");
    assert_eq!(
        (&begun["serverInfo"]["name"], &begun["protocolVersion"]),
        (&"webshop".into(), &"2025-11-25".into())
    );
    assert_eq!(begun["_meta"]["webshop/goal"], 3);
    let fingerprint = serde_json::to_value(SHOP.fingerprint()).expect("texts");
    assert_eq!(begun["_meta"]["webshop/fingerprint"], fingerprint);
    let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(names(&tools), ["search", "click", "view_page"], "an agent cannot reset");
    let is_read_only = |at: usize| tools[at]["annotations"]["readOnlyHint"].as_bool();
    assert_eq!([0, 1, 2].map(is_read_only), [Some(false), Some(false), Some(true)]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["query"]));
    let calls: Vec<Value> = solution(3).iter().map(|(name, arguments)| agent.call(name, arguments)).collect();
    for (at, reply) in calls.iter().enumerate() {
        let (result, is_last) = (&reply["result"], at + 1 == calls.len());
        let (content, structured) = (&result["content"], &result["structuredContent"]);
        assert_eq!(
            (result["isError"].as_bool(), &content[0]["type"]),
            (Some(false), &"text".into()),
            "{reply}"
        );
        assert_eq!((&content[0]["text"], &structured["noop"]), (&structured["text"], &Value::Null));
        let (reward, done) = (structured["reward"].as_f64(), structured["done"].as_bool());
        assert_eq!((reward, done), (Some(f64::from(is_last)), Some(is_last)), "{reply}");
        assert!(structured["available_actions"]["clickables"].is_array(), "{reply}");
    }
}

#[test]
fn a_wrong_call_is_an_error_of_its_kind() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3");
    let unknown = agent.call("reset", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let expected = "there is no tool `reset`; the tools are `search`, `click`, `view_page`";
    assert_eq!(unknown["error"]["message"], expected);
    for (arguments, part) in [
        (json!({}), "needs the argument `query`"),
        (json!({"query": 1}), "`query` must be a string"),
        (json!({"querry": "x"}), "has no argument `querry`"),
        (json!({"query": "x", "keywords": "y"}), "`query` is given twice"),
    ] {
        let result = agent.call("search", &arguments)["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].as_str().expect("a text").contains(part), "{result}");
    }
    let elsewhere = agent.call("click", &json!({"target": "no such label"}))["result"].clone();
    assert_eq!(
        (&elsewhere["isError"], &elsewhere["structuredContent"]["reward"]),
        (&false.into(), &0.0.into())
    );
    let method = agent.ask("prompts/list", json!({}));
    assert_eq!(method["error"]["code"], -32601, "{method}");
    // Arguments that are no object, as models write them.
    for params in [json!({"name": "search", "arguments": "{\"query\": \"lamp\"}"}), json!({"arguments": {}})]
    {
        let error = agent.ask("tools/call", params)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().expect("a text").contains("`arguments`, an object"), "{error}");
    }
    assert_eq!(agent.ask("ping", json!({}))["result"], json!({}));
}

/// A server of a shop with the original's rules.
fn served_as_original() -> Served {
    let goals = GoalsChoice::Synthetic;
    let catalog = CatalogConfig { goals, compat: Compat::Original, ..CatalogConfig::default() };
    let shop = Arc::new(open_shop(&catalog).expect("the shop opens"));
    let port = Port::open("127.0.0.1", 0).expect("a free port");
    let address = port.address().to_string();
    let server = Server::new(port, shop, config()).expect("goals to train on");
    thread::spawn(move || server.run(Stop::Never, || Ok(())).expect("it runs"));
    Served { address }
}

#[test]
fn an_argument_is_not_read_as_the_text_of_an_action() {
    for server in [served(config()), served_as_original()] {
        let agent = Mcp::begin(&server, "?goal=3");
        let search = |query: &str| {
            agent.call("search", &json!({ "query": query }))["result"]["structuredContent"].clone()
        };
        let plain = search("coconut energy drink");
        assert!(plain["text"].as_str().expect("a page").contains("Total results"), "{plain}");
        for same in ["coconut\nenergy drink", "Coconut ENERGY drink", "coconut [energy] drink"] {
            // Only a search leads from the search bar to the results.
            agent.call("click", &json!({"target": "back to search"}));
            assert_eq!(search(same), plain, "{same:?}");
        }
    }
}

#[test]
fn an_empty_argument_is_refused_and_takes_no_turn() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3&max_steps=1");
    let refused = agent.call("search", &json!({"query": ""}))["result"].clone();
    let expected = "the argument `query` must have at least one character";
    assert_eq!(
        (&refused["isError"], &refused["content"][0]["text"]),
        (&true.into(), &expected.into()),
        "{refused}"
    );
    assert_eq!(agent.call("view_page", &json!({}))["result"]["structuredContent"]["done"], false);
}

#[test]
fn a_result_says_that_nothing_happened() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3");
    let result = |name: &str, arguments: Value| agent.call(name, &arguments)["result"].clone();
    let passed = result("click", json!({"target": "no such label"}));
    let page = passed["structuredContent"]["text"].as_str().expect("a page");
    let expected = format!("Nothing happened: nothing on the page carries that label.\n{page}");
    assert_eq!(
        (&passed["structuredContent"]["noop"], &passed["content"][0]["text"]),
        (&"not_on_page".into(), &expected.into())
    );
    // A look at the page is no action.
    let seen = result("view_page", json!({}));
    assert_eq!(
        (&seen["structuredContent"]["noop"], &seen["content"][0]["text"]),
        (&Value::Null, &page.into())
    );
}

#[test]
fn a_look_at_the_page_earns_nothing() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3");
    let rewards: Vec<Value> = solution(3)
        .iter()
        .chain(&[("view_page", json!({}))])
        .map(|(name, arguments)| agent.call(name, arguments)["result"]["structuredContent"]["reward"].clone())
        .collect();
    assert_eq!(rewards.iter().filter_map(Value::as_f64).sum::<f64>(), 1.0, "{rewards:?}");
    assert_eq!(rewards[rewards.len() - 2..], [json!(1.0), json!(0.0)]);
}

#[test]
fn sessions_beside_each_other_have_pages_of_their_own() {
    let server = served(config());
    let agents = [3, 4].map(|goal| Mcp::begin(&server, &format!("?goal={goal}")));
    assert_eq!(n_sessions(&server), 2);
    let mut solutions = [3, 4].map(|goal| solution(goal).into_iter());
    let mut rewards = [0.0; 2];
    // In turns, until both have bought.
    while let [Some(_), _] | [_, Some(_)] = [0, 1].map(|at| {
        let (name, arguments) = solutions[at].next()?;
        let reply = agents[at].call(name, &arguments);
        rewards[at] = reply["result"]["structuredContent"]["reward"].as_f64().expect("a number");
        Some(())
    }) {}
    assert_eq!(rewards, [1.0; 2]);
}

#[test]
fn the_address_chooses_goal_limits_and_names_of_tools() {
    let server = served(config());
    let goal = |query: &str| Mcp::begin(&server, query).begun["result"]["_meta"]["webshop/goal"].clone();
    let of_seed = SHOP.goals().goal_for_seed(Split::Train, Seed(7)).expect("goals to train on");
    assert_eq!(goal("?seed=7"), of_seed.0);
    assert_eq!(goal("?split=test&index=2"), SHOP.goals().split(Split::Test)[2].0);
    let agent = Mcp::begin(&server, "?goal=3&max_steps=1&tools=agentbench");
    let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(names(&tools), ["search_action", "click_action", "view_page"]);
    assert!(
        agent.begun["result"]["instructions"].as_str().expect("a text").contains("`click_action` presses")
    );
    assert_eq!(agent.call("search", &json!({"query": "x"}))["error"]["code"], -32602);
    // Every name of an argument is understood.
    let found =
        agent.call("search_action", &json!({"query": "shoes"}))["result"]["structuredContent"].clone();
    assert!(found["text"].as_str().expect("a page").contains("Total results"), "{found}");
    assert_eq!(found["done"], true, "after one step");
    let agent = Mcp::begin(&server, "?goal=3&tools=agentgym");
    let tools = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["item"]));
}

#[test]
fn a_wrong_address_is_refused_at_the_beginning() {
    let server = served(config());
    let n_goals = SHOP.goals().goals().len();
    let refused = |query: &str| {
        let path = format!("/mcp?{query}");
        let reply = server.send("POST", &path, HEADERS, &initialize().to_string());
        assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None), "{reply:?}");
        let reply = message(&reply);
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        reply["error"]["message"].as_str().expect("a message").to_owned()
    };
    let expected = format!("there is no goal `{n_goals}`; the shop has {n_goals} goals, from 0");
    assert_eq!(refused(&format!("goal={n_goals}")), expected);
    assert_eq!(refused("gaol=3"), "the address is wrong: `gaol`: Extra inputs are not permitted");
    assert!(
        refused("tools=reset").contains("`tools`: Input should be 'webshop', 'agentgym' or 'agentbench'")
    );
    assert_eq!(n_sessions(&server), 0, "no session was opened");
}

#[test]
fn hosts_and_origins_are_checked() {
    let allowed = Allowed {
        hosts: vec!["shop.example".parse().expect("a host")],
        origins: vec!["https://app.example".parse().expect("an origin")],
    };
    let server = served(ServeConfig { allowed, ..config() });
    let status = |host: &str, origin: Option<&str>| {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let headers = format!("{HEADERS}{origin}");
        server.send_to(host, "POST", "/mcp", &headers, &initialize().to_string()).status
    };
    let own = server.address.as_str();
    assert_eq!([status(own, None), status("localhost", None), status("shop.example:81", None)], [200; 3]);
    assert_eq!([status("evil.example", None), status(own, Some("http://evil.example"))], [403; 2]);
    assert_eq!([status(own, Some("http://localhost:1")), status(own, Some("https://app.example"))], [200; 2]);
    assert_eq!([status(own, Some("https://app.example:8443")), status(own, Some("null"))], [403; 2]);
    let agent = Mcp::begin(&server, "?session=a");
    let end = |headers: &str| server.send("DELETE", "/mcp?session=a", headers, "").status;
    assert_eq!(end("Origin: http://evil.example\r\n"), 403);
    assert_eq!(agent.call("view_page", &json!({}))["result"]["isError"], false);
    assert_eq!(end("Origin: http://localhost\r\n"), 204);
}

#[test]
fn hosts_and_origins_are_checked_for_json_rpc_too() {
    let server = served(config());
    let own = server.address.as_str();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let posted = |host: &str, origin: &str| {
        let headers = format!("Content-Type: text/plain\r\n{origin}");
        server.send_to(host, "POST", "/mcp", &headers, &list).status
    };
    assert_eq!([posted(own, ""), posted(own, "Origin: http://localhost:3000\r\n")], [200; 2]);
    assert_eq!([posted("evil.example", ""), posted(own, "Origin: http://evil.example\r\n")], [403; 2]);
    // The status of a request for a WebSocket; 101 opens it.
    let opened = |name: &'static str, value: &str| {
        let mut request = format!("ws://{own}/mcp").into_client_request().expect("an address");
        request.headers_mut().insert(name, value.parse().expect("a value"));
        match tungstenite::connect(request) {
            Ok((_, response)) => response.status().as_u16(),
            Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
            Err(error) => panic!("no response: {error}"),
        }
    };
    assert_eq!([opened("host", own), opened("origin", "http://localhost:3000")], [101; 2]);
    assert_eq!([opened("host", "evil.example"), opened("origin", "http://evil.example")], [403; 2]);
}

#[test]
fn a_session_ends_with_delete() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?goal=3");
    assert_eq!(n_sessions(&server), 1);
    let end = agent.end();
    assert_eq!((end.status, end.body.as_str()), (204, ""));
    // The session of the shop ends with it, once its last message is read.
    wait_until("the shop's session has ended", || n_sessions(&server) == 0);
    assert_eq!(agent.end().status, 404);
    assert_eq!(agent.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).status, 404);
    assert_eq!(server.send("DELETE", "/mcp", "", "").status, 400, "which session?");
}

#[test]
fn an_idle_session_is_dropped() {
    let server = served(ServeConfig { idle: Duration::from_millis(40), ..config() });
    let begun = server.send("POST", "/mcp?goal=1", HEADERS, &initialize().to_string());
    let id = begun.header("mcp-session-id").expect("a session");
    // A look at the number of sessions is no use of one.
    wait_until("the shop's session is dropped", || n_sessions(&server) == 0);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "view_page"}});
    let headers = format!("{HEADERS}Mcp-Session-Id: {id}\r\n");
    // The protocol's session goes at the same time as the shop's, a moment after it.
    let status = || server.send("POST", "/mcp?goal=1", &headers, &call.to_string()).status;
    wait_until("the protocol's session is dropped", || status() == 404);
}

#[test]
fn a_full_server_says_when_to_try_again() {
    let server = served(ServeConfig { max_sessions: 1, ..config() });
    let agent = Mcp::begin(&server, "");
    let begin = || server.send("POST", "/mcp", HEADERS, &initialize().to_string());
    let refused = begin();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    let expected = json!({"active_sessions": 1, "max_sessions": 1});
    assert_eq!(
        (&refused.json()["error"]["code"], &refused.json()["error"]["data"]),
        (&(-32000).into(), &expected)
    );
    agent.end();
    wait_until("the shop's session has ended", || n_sessions(&server) == 0);
    assert_eq!(begin().status, 200);
}

#[test]
fn clients_that_share_a_named_session_are_no_more_than_sessions() {
    let server = served(ServeConfig { max_sessions: 2, ..config() });
    let clients = [(); 2].map(|()| Mcp::begin(&server, "?session=a&goal=3"));
    assert_eq!(n_sessions(&server), 1);
    let begin = || server.send("POST", "/mcp?session=a&goal=3", HEADERS, &initialize().to_string());
    let refused = begin();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    clients[0].end();
    wait_until("there is room for another client", || begin().status == 200);
}

#[test]
fn a_named_session_that_has_gone_does_not_begin_again_for_its_client() {
    let server = served(config());
    let agent = Mcp::begin(&server, "?session=a&goal=3");
    assert_eq!(agent.call("search", &json!({"query": "shoes"}))["result"]["isError"], false);
    assert_eq!(server.send("DELETE", "/mcp?session=a", "", "").status, 204);
    let error = agent.call("view_page", &json!({}))["error"].clone();
    assert!(error["message"].as_str().expect("a text").contains("session"), "{error}");
    assert_eq!(n_sessions(&server), 0);
}
