//! `webshop mcp`: a child process that a client speaks with.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};
use webshop_products::{GoalId, Seed, Split};

use super::client::initialize;
use super::{alone, solution};
use crate::common::client::SHOP;
use crate::common::command::{command, refusal, temporary};

/// A running `webshop mcp`.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// A test that fails leaves no process behind.
impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(args: &[&str]) -> Running {
        let mut child = command(&[&["mcp"], args].concat()).spawn().expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Running { stdin: child.stdin.take(), child, stdout }
    }

    fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        self.next()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": name, "arguments": arguments}))
    }

    /// Begins as a client of the protocol of 2025; the response.
    fn begin(&mut self) -> Value {
        self.send(&initialize().to_string());
        let begun = self.next();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        begun["result"].clone()
    }

    /// Closes standard input; the exit code, the rest of stdout, and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.stdin.take());
        let (mut rest, mut log) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        (self.child.wait().expect("it ends").code(), rest, log)
    }
}

#[test]
fn an_agent_buys_over_standard_input() {
    let mut running = Running::start(&["--goal", "3"]);
    let begun = running.begin();
    let instruction = &*SHOP.goals().get(GoalId(3)).instruction;
    assert!(begun["instructions"].as_str().expect("a text").ends_with(instruction), "{begun}");
    assert_eq!(begun["_meta"]["webshop/goal"], 3);
    let tools = running.ask("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(tools.as_array().map(Vec::len), Some(3));
    let mut last = Value::Null;
    for (name, arguments) in solution(3) {
        last = running.call(name, &arguments)["result"]["structuredContent"].clone();
    }
    assert_eq!((&last["reward"], &last["done"]), (&1.0.into(), &true.into()));
    assert_eq!(running.call("reset", &json!({}))["error"]["code"], -32602);
    assert_eq!(running.call("search", &json!({}))["result"]["isError"], true);
    // What is no JSON is ignored, as the protocol's other servers do.
    running.send("{");
    assert_eq!(running.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(running.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn flags_choose_goal_limits_and_names_of_tools() {
    let mut running =
        Running::start(&["--seed", "7", "--split", "test", "--max-steps", "1", "--tools", "agentgym"]);
    let goal = SHOP.goals().goal_for_seed(Split::Test, Seed(7)).expect("test goals");
    let begun = running.begin();
    assert_eq!(
        (&begun["_meta"]["webshop/goal"], &begun["_meta"]["webshop/split"]),
        (&goal.0.into(), &"test".into())
    );
    let step =
        running.call("click", &json!({"item": "no such label"}))["result"]["structuredContent"].clone();
    assert_eq!((&step["reward"], &step["done"]), (&0.0.into(), &true.into()));
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn calls_that_do_not_wait_are_served_in_their_order() {
    let mut running = Running::start(&["--goal", "3"]);
    running.begin();
    let calls = [
        ("search", json!({"query": "shoes"})),
        ("click", json!({"target": "next >"})),
        ("view_page", json!({})),
    ];
    for (id, (name, arguments)) in calls.iter().enumerate() {
        let params = json!({"name": name, "arguments": arguments});
        running
            .send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
    }
    let replies = [0; 3].map(|_| running.next());
    let text = |id: u64| {
        let reply = replies.iter().find(|reply| reply["id"] == id).expect("a reply");
        reply["result"]["structuredContent"]["text"].as_str().expect("a page").to_owned()
    };
    assert!(text(0).contains("Page 1") && text(1).contains("Page 2"), "{replies:?}");
    assert_eq!(text(1), text(2));
    running.end();
}

#[test]
fn the_protocol_of_2026_needs_no_name_here() {
    let mut running = Running::start(&["--goal", "3"]);
    let discovered = running.ask("server/discover", &json!({"_meta": alone()}))["result"].clone();
    assert_eq!(discovered["_meta"]["webshop/goal"], 3, "{discovered}");
    let view = |running: &mut Running| {
        running.ask("tools/call", &json!({"name": "view_page", "_meta": alone()}))["result"].clone()
    };
    let first = view(&mut running);
    assert_eq!((&first["isError"], &first["resultType"]), (&false.into(), &"complete".into()), "{first}");
    let search = json!({"name": "search", "arguments": {"query": "shoes"}, "_meta": alone()});
    let found = running.ask("tools/call", &search)["result"].clone();
    assert_eq!(view(&mut running)["structuredContent"]["text"], found["structuredContent"]["text"]);
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn a_client_may_leave_without_a_word_but_not_begin_otherwise() {
    assert_eq!(Running::start(&[]).end(), (Some(0), String::new(), String::new()));
    let mut running = Running::start(&[]);
    running.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let (code, rest, log) = running.end();
    assert_eq!((code, rest.as_str()), (Some(2), ""));
    assert!(log.starts_with("error: the MCP client did not begin as the protocol says: "), "{log}");
}

#[test]
fn a_goal_that_is_not_there_is_refused() {
    let dir = temporary();
    let n_goals = SHOP.goals().goals().len().to_string();
    let message = refusal(dir.path(), &["mcp", "--goal", &n_goals], "");
    assert!(message.contains(&format!("there is no goal `{n_goals}`")), "{message}");
}
