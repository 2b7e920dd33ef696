//! OpenEnv: messages, stateless HTTP, tasks and JSON-RPC.

use serde_json::{Value, json};
use webshop_products::Split;

use super::players::OpenEnv;
use crate::common::client::{SHOP, config, served};

#[test]
fn a_wrong_message_is_an_error_and_the_conversation_goes_on() {
    let server = served(config());
    let mut socket = server.socket("/ws");
    let n_goals = SHOP.goals().goals().len();
    let mut check = |message: &str, code: &str, part: &str| {
        let reply = socket.ask(message);
        assert_eq!((&reply["type"], &reply["data"]["code"]), (&"error".into(), &code.into()), "{reply}");
        assert!(reply.to_string().contains(part), "{reply}");
    };
    check("{", "INVALID_JSON", "Invalid JSON");
    check("[]", "UNKNOWN_TYPE", "");
    check("{\"type\": \"rest\"}", "UNKNOWN_TYPE", "Unknown message type: rest");
    check("{\"type\": \"step\"}", "VALIDATION_ERROR", "Field required");
    check("{\"type\": \"step\", \"data\": {}}", "VALIDATION_ERROR", "\"loc\":[\"action\"]");
    check("{\"type\": \"step\", \"data\": {\"action\": 1}}", "VALIDATION_ERROR", "string_type");
    check(
        "{\"type\": \"step\", \"data\": {\"action\": \"\", \"x\": 1}}",
        "VALIDATION_ERROR",
        "extra_forbidden",
    );
    check("{\"type\": \"reset\", \"data\": {\"seed\": -1}}", "VALIDATION_ERROR", "greater_than_equal");
    check("{\"type\": \"reset\", \"data\": {\"task\": \"web\"}}", "VALIDATION_ERROR", "dict_type");
    check("{\"type\": \"reset\", \"data\": 3}", "VALIDATION_ERROR", "dict_type");
    let beyond = format!("{{\"type\": \"reset\", \"data\": {{\"goal\": {n_goals}}}}}");
    check(&beyond, "EXECUTION_ERROR", &format!("no goal `{n_goals}`; the shop has {n_goals} goals"));
    OpenEnv::seen(&socket.say(json!({"type": "reset"})));
    socket.send("{\"type\": \"close\"}");
    assert_eq!(socket.closed(), Some(1000));
}

#[test]
fn states_and_metadata_name_the_episode() {
    let server = served(config());
    let mut socket = server.socket("/ws");
    let task = server.post("/webshop/task", &json!({"split": "validation", "index": 1})).json();
    let reset = json!({"task": task["task"], "episode_id": "e1", "observation": "url"});
    let reply = socket.say(json!({"type": "reset", "data": reset}));
    let (data, goal) = (&reply["data"], SHOP.goals().split(Split::Validation)[1].0);
    assert_eq!(data["observation"]["text"], format!("http://127.0.0.1:3000/{goal}"));
    assert_eq!(
        (&data["observation"]["goal"], &data["observation"]["split"]),
        (&goal.into(), &"validation".into())
    );
    assert_eq!(data["metadata"], data["observation"]["metadata"]);
    for (name, part) in serde_json::to_value(SHOP.fingerprint()).expect("data").as_object().expect("parts") {
        assert_eq!(&data["metadata"][name], part);
    }
    socket.say(json!({"type": "step", "data": {"action": "nothing", "metadata": {"a": 1}}}));
    let state = socket.say(json!({"type": "state"}))["data"].clone();
    assert_eq!((&state["episode_id"], &state["step_count"]), (&"e1".into(), &1.into()));
    assert_eq!((&state["goal"], &state["seed"]), (&goal.into(), &Value::Null));
    let seeded = socket.say(json!({"type": "reset", "data": {"seed": 7}}));
    assert_eq!(socket.say(json!({"type": "state"}))["data"]["seed"], 7);
    assert_eq!(socket.say(json!({"type": "reset", "data": {"seed": 7}})), seeded);
}

#[test]
fn plain_http_keeps_no_state() {
    let server = served(config());
    let reset = server.post("/reset", &json!({"goal": 3, "episode_id": "e"})).json();
    assert_eq!((&reset["reward"], &reset["done"]), (&Value::Null, &false.into()));
    assert_eq!(reset["observation"]["goal"], 3);
    let step = server.post("/step", &json!({"action": {"action": "click[x]"}, "timeout_s": 5})).json();
    assert_eq!((&step["reward"], &step["observation"]["step"]), (&0.0.into(), &1.into()));
    assert_eq!(step["observation"]["noop"], "not_on_page");
    assert_eq!(server.get("/state").json()["step_count"], 0);
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 0);
    let check = |path: &str, body: &str, place: Value, kind: &str| {
        let reply = server.send("POST", path, "", body);
        let detail = &reply.json()["detail"][0];
        assert_eq!((reply.status, &detail["loc"], &detail["type"]), (422, &place, &kind.into()), "{detail}");
        assert!(detail["msg"].is_string() && !detail["input"].is_string(), "{detail}");
    };
    check("/step", "{}", json!(["body", "action"]), "missing");
    check("/step", "{\"action\": 3}", json!(["body", "action"]), "dict_type");
    check("/step", "{\"action\": {}}", json!(["body", "action", "action"]), "missing");
    check(
        "/step",
        "{\"action\": {\"action\": \"\"}, \"timeout_s\": 0}",
        json!(["body", "timeout_s"]),
        "greater_than",
    );
    check("/step", "{", json!(["body", 1]), "json_invalid");
    check("/reset", "{\"seed\": -3}", json!(["body", "seed"]), "greater_than_equal");
    check("/reset", "{\"goal\": 99999}", json!(["body", "goal"]), "value_error");
    check("/reset", "[]", json!(["body"]), "model_attributes_type");
    // Requests that are refused do not count, so that they do not change what others draw.
    let opened = |n: u64| format!("webshop_sessions_opened_total{{interface=\"openenv\"}} {n}\n");
    assert!(server.get("/metrics").body.contains(&opened(3)), "of the reset, the step and the state above");
}

#[test]
fn the_session_of_a_socket_is_its_own() {
    let server = served(config());
    let mut socket = server.socket("/ws");
    let state = socket.say(json!({"type": "reset", "data": {"goal": 3}}));
    assert_eq!(state["data"]["observation"]["goal"], 3);
    let created = server.post("/mcp", &rpc("openenv/session/create", json!({}))).json()["result"].clone();
    let last: u64 = created["session_id"].as_str().expect("a name").parse().expect("a number");
    for guess in (0..last).map(|number| number.to_string()) {
        let params = json!({"session_id": guess, "name": "view_page"});
        for method in ["openenv/session/close", "tools/call"] {
            let reply = server.post("/mcp", &rpc(method, params.clone())).json();
            assert_eq!(reply["error"]["code"], -32602, "{reply}");
        }
        let attached = server.socket(&format!("/ws?session_id={guess}")).next();
        assert_eq!(attached["data"]["code"], "SESSION_ERROR", "{attached}");
    }
    assert_eq!(socket.say(json!({"type": "state"}))["data"]["goal"], 3);
}

#[test]
fn the_documents_have_what_clients_look_for() {
    let server = served(config());
    let schema = server.get("/schema").json();
    assert_eq!(schema["action"]["required"], json!(["action"]), "verifiers sends raw text because of this");
    assert_eq!(
        (&schema["action"]["title"], &schema["action"]["additionalProperties"]),
        (&"WebShopAction".into(), &false.into())
    );
    let reset = server.post("/reset", &json!({"seed": 1})).json();
    let known = schema["observation"]["properties"].as_object().expect("properties");
    let shown = reset["observation"].as_object().expect("an observation");
    assert!(shown.keys().all(|name| known.contains_key(name)));
    let required = schema["observation"]["required"].as_array().expect("names");
    assert!(required.iter().all(|name| shown.contains_key(name.as_str().expect("a name"))));
    assert_eq!(server.get("/health").json(), json!({"status": "healthy"}));
    let openapi = server.get("/openapi.json").json();
    assert!(["/reset", "/step", "/state"].iter().all(|path| openapi["paths"][path].is_object()));
    assert_eq!(server.get("/metadata").json()["name"], "webshop");
}

#[test]
fn tasks_are_the_goals_of_the_splits() {
    let server = served(config());
    assert_eq!(server.get("/list_environments").json(), json!(["webshop"]));
    let splits = server.get("/WebShop/splits").json();
    assert_eq!(splits[2], json!({"name": "test", "type": "test"}));
    let post = |path: &str, body: Value| server.post(&format!("/webshop/{path}"), &body);
    let test = SHOP.goals().split(Split::Test);
    let all = post("tasks", json!({"split": "test"})).json();
    assert_eq!(
        (all["tasks"].as_array().map(Vec::len), &all["env_name"]),
        (Some(test.len()), &"webshop".into())
    );
    assert_eq!(post("num_tasks", json!({"split": "test"})).json(), json!({"num_tasks": test.len()}));
    let instruction = &*SHOP.goals().get(test[3]).instruction;
    let task = json!({"goal": test[3].0, "instruction": instruction, "split": "test", "index": 3});
    assert_eq!(post("task", json!({"split": "test", "index": 3})).json(), json!({"task": task}));
    let range = |start: Value, stop: Value| {
        let reply = post("task_range", json!({"split": "test", "start": start, "stop": stop})).json();
        let tasks = reply["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| task["index"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    assert_eq!(range(json!(2), json!(4)), [2, 3]);
    assert_eq!(range(Value::Null, json!(2)), [0, 1]);
    assert_eq!(range(json!(4), json!(2)), [0; 0]);
    assert_eq!(range(json!(test.len() - 1), Value::Null), [test.len() as u64 - 1]);
    let refused = [
        (post("task", json!({"split": "test", "index": test.len()})), 400, "Invalid task index"),
        (post("task", json!({"split": "tset", "index": 0})), 422, "literal_error"),
        (post("num_tasks", json!({})), 422, "Field required"),
        (server.post("/alfworld/tasks", &json!({"split": "test"})), 404, "unknown environment 'alfworld'"),
    ];
    for (reply, status, part) in refused {
        assert!(reply.status == status && reply.body.contains(part), "{reply:?}");
    }
}

/// A JSON-RPC request.
fn rpc(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 7})
}

#[test]
fn json_rpc_errors_have_status_200() {
    let server = served(config());
    let check = |body: &str, code: i64, part: &str| {
        let reply = server.send("POST", "/mcp", "", body);
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["code"]), (200, &code.into()), "{error}");
        assert!(error["message"].as_str().expect("a message").contains(part), "{error}");
    };
    check("{", -32700, "Parse error");
    check("{}", -32600, "Invalid request");
    check("[]", -32600, "Invalid request");
    check("{\"jsonrpc\": \"1.0\", \"method\": \"tools/list\"}", -32600, "Invalid request");
    check(&rpc("tools/reset", json!({})).to_string(), -32601, "Method not found: tools/reset");
    check(&rpc("tools/list", json!([])).to_string(), -32602, "Params must be an object");
    check(&rpc("tools/call", json!({})).to_string(), -32602, "Missing 'name'");
    check(&rpc("tools/call", json!({"name": "reset"})).to_string(), -32602, "there is no tool `reset`");
    check(
        &rpc("tools/call", json!({"name": "search", "session_id": "5"})).to_string(),
        -32602,
        "session `5`",
    );
    check(&rpc("openenv/session/close", json!({})).to_string(), -32602, "'session_id' is required");
    let result = |params: Value| server.post("/mcp", &rpc("tools/call", params)).json()["result"].clone();
    for (arguments, part) in [
        (json!({}), "needs the argument `query`"),
        (json!({"query": 1}), "`query` must be a string"),
        (json!({"querry": "x"}), "has no argument `querry`"),
        (json!({"query": "x", "keywords": "y"}), "`query` is given twice"),
    ] {
        let result = result(json!({"name": "search", "arguments": arguments}));
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().expect("a text").contains(part), "{result}");
    }
    let found = result(json!({"name": "search", "arguments": {"keywords": "shoes"}}));
    assert!(found["data"]["text"].as_str().expect("a page").contains("Total results"), "{found}");
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 0, "a call without a session leaves none");
}

#[test]
fn an_http_session_is_attached_to_once_and_outlives_the_socket() {
    let server = served(config());
    let create = || server.post("/mcp", &rpc("openenv/session/create", json!({}))).json()["result"].clone();
    let id = create()["session_id"].as_str().expect("a name").to_owned();
    let path = format!("/ws?session_id={id}");
    let mut socket = server.socket(&path);
    socket.say(json!({"type": "reset", "data": {"goal": 6}}));
    let second = server.socket(&path).next();
    assert_eq!(second["data"]["code"], "SESSION_ERROR", "{second}");
    assert_eq!(server.socket("/ws?session_id=77").next()["data"]["code"], "SESSION_ERROR");
    socket.send("{\"type\": \"close\"}");
    assert_eq!(socket.closed(), Some(1000));
    let view = rpc("tools/call", json!({"name": "view_page", "session_id": id}));
    let page = server.post("/mcp", &view).json()["result"]["data"].clone();
    let instruction = &*SHOP.goals().get(webshop_products::GoalId(6)).instruction;
    assert!(page["text"].as_str().expect("a page").contains(instruction), "{page}");
    let mut socket = server.socket(&path);
    let state = socket.say(json!({"type": "state"}))["data"].clone();
    assert_eq!((&state["goal"], &state["step_count"]), (&6.into(), &0.into()));
    let closed = server.post("/mcp", &rpc("openenv/session/close", json!({"session_id": id}))).json();
    assert_eq!(closed["result"], json!({"session_id": id, "closed": true}));
    assert_eq!(socket.say(json!({"type": "state"}))["data"]["code"], "SESSION_ERROR");
}

#[test]
fn tools_are_listed_and_called_over_a_socket() {
    let server = served(config());
    let mut socket = server.socket("/mcp");
    let tools = socket.say(rpc("tools/list", json!({})))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["search", "click", "view_page"]);
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["query"]));
    let own = socket.say(rpc("openenv/session/create", json!({})))["result"]["session_id"].clone();
    let page = socket.say(rpc("tools/call", json!({"name": "search", "arguments": {"query": "shoes"}})));
    let again = socket.say(rpc("tools/call", json!({"name": "view_page"})));
    assert_eq!(page["result"]["data"], again["result"]["data"]);
    let close = socket.say(rpc("openenv/session/close", json!({"session_id": own})));
    assert_eq!(close["error"]["code"], -32600);
    // The same as messages of the other socket.
    let mut socket = server.socket("/ws");
    let reply = socket.say(json!({"type": "mcp", "data": rpc("tools/list", json!({}))}));
    assert_eq!((&reply["type"], &reply["data"]["result"]["tools"]), (&"mcp".into(), &tools));
    let listed = socket.say(json!({"type": "step", "data": {"type": "list_tools"}}));
    assert_eq!(listed["data"]["observation"]["tools"][1]["input_schema"], tools[1]["inputSchema"]);
    let call = |name: &str| json!({"type": "step", "data": {"type": "call_tool", "tool_name": name, "arguments": {}}});
    let observation = socket.say(call("view_page"))["data"]["observation"].clone();
    assert_eq!((&observation["tool_name"], &observation["error"]), (&"view_page".into(), &Value::Null));
    let failed = socket.say(call("buy"))["data"]["observation"].clone();
    assert_eq!((&failed["error"]["error_type"], &failed["result"]), (&"tool_not_found".into(), &Value::Null));
}

#[test]
fn a_tool_without_an_action_has_no_reward() {
    let server = served(config());
    let goal = SHOP.goals().get(webshop_products::GoalId(4));
    let mut socket = server.socket("/ws");
    socket.say(json!({"type": "reset", "data": {"goal": 4}}));
    let call = |name: &str, arguments: Value| json!({"type": "step", "data": {"type": "call_tool", "tool_name": name, "arguments": arguments}});
    let calls = [
        call("search", json!({"query": *goal.title})),
        call("click", json!({"target": goal.asin.as_str()})),
        call("click", json!({"target": "Buy Now"})),
        call("view_page", json!({})),
    ];
    let [.., bought, seen] = calls.map(|call| socket.say(call)["data"].clone());
    assert!(bought["reward"].as_f64().expect("a number") > 0.0, "{bought}");
    assert_eq!((&seen["reward"], &seen["done"]), (&Value::Null, &true.into()));
    let data = &seen["observation"]["result"]["data"];
    assert_eq!((&data["reward"], &data["noop"]), (&0.0.into(), &Value::Null));
    // After the end nothing happens, and the text says so.
    let after = socket.say(call("click", json!({"target": "x"})))["data"]["observation"]["result"].clone();
    let text = after["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("Nothing happened: the episode has ended.\n"), "{text}");
    assert_eq!(after["data"]["noop"], "episode_over");
}
