//! One episode at a time through each interface, in a common form.

use serde_json::{Value, json};
use webshop_env::{Action, AvailableActions, EnvConfig, Shop, ShopEnv, read_html};
use webshop_products::GoalId;

use super::mcp::client::Mcp;
use super::mcp::stateless;
use crate::common::client::{Served, Socket};

/// What an interface shows after a reset or an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) actions: AvailableActions,
    pub(super) reward: f64,
    pub(super) done: bool,
}

/// A client of an interface.
pub(super) trait Player: Send {
    fn reset(&mut self, goal: u32) -> Seen;
    fn step(&mut self, action: &str) -> Seen;
}

/// No client: a session in this process.
pub(super) struct Local(ShopEnv);

impl Local {
    pub(super) fn new(shop: &std::sync::Arc<Shop>, max_steps: u32) -> Local {
        Local(ShopEnv::new(shop.clone(), EnvConfig { max_steps, ..EnvConfig::default() }))
    }
}

impl Player for Local {
    fn reset(&mut self, goal: u32) -> Seen {
        let observation = self.0.reset(GoalId(goal));
        let (text, actions) = (observation.content(), observation.available_actions());
        Seen { text, actions, reward: 0.0, done: false }
    }

    fn step(&mut self, action: &str) -> Seen {
        let step = self.0.step(&Action::parse(action, self.0.shop().config().compat));
        Seen {
            text: step.observation.content(),
            actions: step.observation.available_actions(),
            reward: step.reward,
            done: step.terminated || step.truncated,
        }
    }
}

fn actions(value: &Value) -> AvailableActions {
    serde_json::from_value(value.clone()).expect("available actions")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// `/api/v1`.
pub(super) struct Native<'a> {
    server: &'a Served,
    id: Option<String>,
}

impl<'a> Native<'a> {
    pub(super) fn new(server: &'a Served) -> Self {
        Native { server, id: None }
    }

    fn seen(shown: &Value) -> Seen {
        let is = |name: &str| shown[name].as_bool().expect("a truth value");
        Seen {
            text: text(&shown["observation"]),
            actions: actions(&shown["available_actions"]),
            reward: shown["reward"].as_f64().expect("a number"),
            done: is("terminated") || is("truncated"),
        }
    }
}

impl Player for Native<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        if let Some(id) = self.id.take() {
            let path = format!("/api/v1/sessions/{id}");
            assert_eq!(self.server.send("DELETE", &path, "", "").status, 204);
        }
        let shown = self.server.post("/api/v1/sessions", &json!({ "goal": goal })).json();
        self.id = Some(text(&shown["id"]));
        Native::seen(&shown)
    }

    fn step(&mut self, action: &str) -> Seen {
        let path = format!("/api/v1/sessions/{}/step", self.id.as_ref().expect("a reset"));
        Native::seen(&self.server.post(&path, &json!({ "action": action })).json())
    }
}

/// OpenEnv's WebSocket.
pub(super) struct OpenEnv(Socket);

impl OpenEnv {
    pub(super) fn new(server: &Served) -> Self {
        OpenEnv(server.socket("/ws"))
    }

    pub(super) fn seen(reply: &Value) -> Seen {
        assert_eq!(reply["type"], "observation", "{reply}");
        let (data, observation) = (&reply["data"], &reply["data"]["observation"]);
        Seen {
            text: text(&observation["text"]),
            actions: actions(&observation["available_actions"]),
            reward: data["reward"].as_f64().unwrap_or_default(),
            done: data["done"].as_bool().expect("a truth value"),
        }
    }
}

impl Player for OpenEnv {
    fn reset(&mut self, goal: u32) -> Seen {
        let reply = self.0.say(json!({"type": "reset", "data": {"goal": goal, "row": [1, {}]}}));
        assert_eq!(reply["data"]["reward"], Value::Null);
        OpenEnv::seen(&reply)
    }

    fn step(&mut self, action: &str) -> Seen {
        OpenEnv::seen(&self.0.say(json!({"type": "step", "data": {"action": action}})))
    }
}

/// OpenEnv's tools by JSON-RPC: a session made over HTTP, to which a WebSocket attaches for the reset.
pub(super) struct Tools<'a> {
    server: &'a Served,
    session_id: String,
    socket: Socket,
}

impl<'a> Tools<'a> {
    pub(super) fn new(server: &'a Served) -> Self {
        let create = json!({"jsonrpc": "2.0", "method": "openenv/session/create", "params": {}, "id": 1});
        let session_id = text(&server.post("/mcp", &create).json()["result"]["session_id"]);
        let socket = server.socket(&format!("/ws?session_id={session_id}"));
        Tools { server, session_id, socket }
    }
}

impl Player for Tools<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        OpenEnv::seen(&self.socket.say(json!({"type": "reset", "data": {"goal": goal}})))
    }

    /// Actions that are no tool calls go through the WebSocket.
    fn step(&mut self, action: &str) -> Seen {
        if let Action::Noop(_) = action.parse().expect("any text is an action") {
            return OpenEnv::seen(&self.socket.say(json!({"type": "step", "data": {"action": action}})));
        }
        let (name, arguments) = tool_call(action);
        let params = json!({"name": name, "arguments": arguments, "session_id": self.session_id});
        let call = json!({"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 2});
        let reply = self.server.post("/mcp", &call).json();
        let data = &reply["result"]["data"];
        let text = reply["result"]["content"][0]["text"].as_str().expect("a text");
        assert_eq!(text.starts_with("Nothing happened: "), !data["noop"].is_null(), "{reply}");
        assert!(text.ends_with(data["text"].as_str().expect("a page")), "{reply}");
        seen_by_tool(data)
    }
}

/// The tool call of an action. One that is neither a search nor a click becomes a click on nothing, which is a no-op
/// as well.
pub(super) fn tool_call(action: &str) -> (&'static str, Value) {
    match action.parse().expect("any text is an action") {
        Action::Search(words) => ("search", json!({ "query": words })),
        Action::Click(label) => ("click", json!({ "target": label })),
        Action::Noop(_) => ("click", json!({ "target": "nothing" })),
    }
}

/// The structured content of a tool's result.
fn seen_by_tool(content: &Value) -> Seen {
    Seen {
        text: text(&content["text"]),
        actions: actions(&content["available_actions"]),
        reward: content["reward"].as_f64().expect("a number"),
        done: content["done"].as_bool().expect("a truth value"),
    }
}

/// MCP over HTTP, with a session for each goal.
pub(super) struct McpTools<'a> {
    server: &'a Served,
    session: Option<Mcp<'a>>,
}

impl<'a> McpTools<'a> {
    pub(super) fn new(server: &'a Served) -> Self {
        McpTools { server, session: None }
    }

    fn call(&self, name: &str, arguments: &Value) -> Seen {
        let reply = self.session.as_ref().expect("a reset").call(name, arguments);
        seen_by_tool(&reply["result"]["structuredContent"])
    }
}

impl Player for McpTools<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        if let Some(session) = self.session.take() {
            assert_eq!(session.end().status, 204);
        }
        self.session = Some(Mcp::begin(self.server, &format!("?goal={goal}")));
        self.call("view_page", &json!({}))
    }

    fn step(&mut self, action: &str) -> Seen {
        let (name, arguments) = tool_call(action);
        self.call(name, &arguments)
    }
}

/// MCP over HTTP as the protocol of 2026 has it, with a session that the address names; each episode is one of its own.
pub(super) struct NamedMcp<'a> {
    server: &'a Served,
    name: &'a str,
    query: String,
}

impl<'a> NamedMcp<'a> {
    /// `name` must be fit for an address.
    pub(super) fn new(server: &'a Served, name: &'a str) -> Self {
        NamedMcp { server, name, query: String::new() }
    }

    fn call(&self, name: &str, arguments: &Value) -> Seen {
        let reply = stateless::call(self.server, &self.query, name, arguments);
        seen_by_tool(&reply["result"]["structuredContent"])
    }
}

impl Player for NamedMcp<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        self.query = format!("?session={}-{goal}&goal={goal}", self.name);
        self.call("view_page", &json!({}))
    }

    fn step(&mut self, action: &str) -> Seen {
        let (name, arguments) = tool_call(action);
        self.call(name, &arguments)
    }
}

/// AgentGym.
pub(super) struct AgentGym<'a> {
    server: &'a Served,
    env_idx: u64,
}

impl<'a> AgentGym<'a> {
    pub(super) fn new(server: &'a Served) -> Self {
        let env_idx = server.post("/agentgym/create", &json!({})).json().as_u64().expect("a number");
        AgentGym { server, env_idx }
    }

    fn actions(&self) -> AvailableActions {
        let path = format!("/agentgym/available_actions?env_idx={}", self.env_idx);
        actions(&self.server.get(&path).json())
    }
}

impl Player for AgentGym<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        let body = json!({"env_idx": self.env_idx, "session_id": goal});
        let reply = self.server.post("/agentgym/reset", &body).json();
        assert_eq!((reply.as_array().map(Vec::len), &reply[1]), (Some(2), &Value::Null));
        Seen { text: text(&reply[0]), actions: self.actions(), reward: 0.0, done: false }
    }

    fn step(&mut self, action: &str) -> Seen {
        let body = json!({"env_idx": self.env_idx, "action": action});
        let reply = self.server.post("/agentgym/step", &body).json();
        assert_eq!(reply["info"], Value::Null);
        Seen {
            text: text(&reply["state"]),
            actions: self.actions(),
            reward: reply["reward"].as_f64().expect("a number"),
            done: reply["done"].as_bool().expect("a truth value"),
        }
    }
}

/// The last words of the observation after a purchase.
const END_OF_LAST_PAGE: &str = "Reward Details [SEP] None";

/// The original's site, by forms that are posted to the address of the current page. It has no step limit.
pub(super) struct Site<'a> {
    server: &'a Served,
    path: String,
    is_over: bool,
}

impl<'a> Site<'a> {
    pub(super) fn new(server: &'a Served) -> Self {
        Site { server, path: String::new(), is_over: false }
    }

    fn show(&mut self) -> Seen {
        let reply = self.server.get(&self.path);
        assert_eq!(reply.status, 200, "{}: {reply:?}", self.path);
        let page = read_html(&reply.body);
        let score = page.score();
        // The reward is of the purchase, and not of what is clicked afterwards.
        let reward = score.filter(|_| !self.is_over).unwrap_or_default();
        self.is_over = score.is_some();
        // The last page says more than an agent reads there.
        let text = page.text().split_inclusive(END_OF_LAST_PAGE).next().unwrap_or_default().to_owned();
        Seen { text, actions: page.available_actions, reward, done: self.is_over }
    }
}

impl Player for Site<'_> {
    fn reset(&mut self, goal: u32) -> Seen {
        (self.path, self.is_over) = (format!("/fixed_{goal}"), false);
        self.show()
    }

    fn step(&mut self, action: &str) -> Seen {
        let fields = match action.parse().expect("any text is an action") {
            Action::Search(words) => vec![("search_query", words)],
            Action::Click(label) => vec![("click", label)],
            Action::Noop(_) => vec![],
        };
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = self.server.form(&self.path, &fields);
        assert_eq!(reply.status, 303, "{reply:?}");
        self.path = reply.header("location").expect("an address").to_owned();
        self.show()
    }
}
