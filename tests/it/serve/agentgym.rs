//! AgentGym.

use serde_json::{Value, json};
use webshop_env::{Session, read_html};
use webshop_products::GoalId;

use crate::common::client::{SHOP, config, served};

#[test]
fn environments_are_numbered_shown_and_closed() {
    let server = served(config());
    assert_eq!(server.get("/agentgym/").json(), "ok");
    assert_eq!(server.get("/agentgym").json(), "ok");
    let numbers: Vec<Value> = (0..2).map(|_| server.post("/agentgym/create", &json!({})).json()).collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(server.get("/agentgym/list_envs").json(), json!([0, 1]));
    let reset = server.post("/agentgym/reset", &json!({"env_idx": 1, "session_id": 8})).json();
    let page = Session::start(GoalId(8)).page(&SHOP);
    assert_eq!(reset, json!([page.text(), null]));
    assert_eq!(server.get("/agentgym/observation?env_idx=1").json(), page.text());
    let instruction = &*SHOP.goals().get(GoalId(8)).instruction;
    assert_eq!(server.get("/agentgym/instruction_text?env_idx=1").json(), instruction);
    let state = server.get("/agentgym/state?env_idx=1").json();
    assert_eq!((&state["url"], &state["instruction_text"]), (&page.url("8").into(), &instruction.into()));
    assert_eq!(read_html(state["html"].as_str().expect("a document")).text(), page.text());
    let without = server.post("/agentgym/reset", &json!({"env_idx": 0, "session_id": null})).json();
    assert!(without[0].as_str().expect("a page").starts_with("WebShop [SEP] Instruction: [SEP] "));
    assert_eq!(server.post("/agentgym/close", &json!({"env_idx": 1})).status, 200);
    assert_eq!(server.get("/agentgym/list_envs").json(), json!([0]));
    assert_eq!(server.post("/agentgym/create", &json!({})).json(), 2, "numbers are not used again");
}

#[test]
fn wrong_requests_have_fastapis_errors() {
    let server = served(config());
    server.post("/agentgym/create", &json!({}));
    let check = |reply: crate::common::client::Reply, status: u16, part: &str| {
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(reply.json()["detail"].to_string().contains(part), "{reply:?}");
    };
    let post = |path: &str, body: Value| server.post(&format!("/agentgym/{path}"), &body);
    check(post("step", json!({"env_idx": 0})), 422, "\"loc\":[\"body\",\"action\"]");
    check(post("step", json!({"env_idx": "zero", "action": ""})), 422, "int_type");
    check(post("step", json!({"env_idx": 5, "action": ""})), 404, "there is no session `5`");
    check(post("close", json!({"env_idx": 5})), 404, "there is no session `5`");
    check(post("reset", json!({"env_idx": 0, "session_id": 99999})), 422, "there is no goal `99999`");
    check(server.get("/agentgym/observation"), 422, "\"loc\":[\"query\",\"env_idx\"]");
    check(server.get("/agentgym/observation?env_idx=x"), 422, "int_type");
    check(server.get("/agentgym/state?env_idx=1"), 404, "there is no session `1`");
    check(server.send("POST", "/agentgym/step", "", "{"), 422, "json_invalid");
}
