//! `/api/v1`.

use serde_json::{Value, json};
use webshop_env::ENVIRONMENT_ID;
use webshop_products::Split;
use webshop_serve::ServeConfig;

use crate::common::client::{Reply, SHOP, Served, config, served};

/// Asserts status, code and a part of the message of a refusal.
fn check_refused(reply: &Reply, status: u16, code: &str, part: &str) {
    let body = reply.json();
    assert_eq!((reply.status, &body["error"]["code"]), (status, &code.into()), "{body}");
    let message = body["error"]["message"].as_str().expect("a message");
    assert!(message.contains(part), "{message}");
}

#[test]
fn the_server_states_versions_digests_and_sizes() {
    let server = served(config());
    let reply = server.get("/api/v1/info");
    let info = reply.json();
    let fingerprint = serde_json::to_value(SHOP.fingerprint()).expect("a fingerprint is data");
    for name in ["environment", "rewards", "catalog", "prices", "goals", "splits"] {
        assert_eq!(info[name], fingerprint[name], "{name}");
    }
    assert_eq!(info["n_goals"]["test"], SHOP.goals().split(Split::Test).len());
    assert_eq!((&info["sessions"], &info["max_sessions"]), (&0.into(), &1000.into()));
    assert_eq!(reply.header("webshop-environment"), Some(ENVIRONMENT_ID));
    let session = server.post("/api/v1/sessions", &json!({"goal": 0})).json();
    assert_eq!(session["fingerprint"], fingerprint);
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 1);
}

#[test]
fn a_session_is_shown_stepped_forked_stored_and_closed() {
    let server = served(config());
    let path = |id: &Value, rest: &str| format!("/api/v1/sessions/{}{rest}", id.as_str().expect("a name"));
    let start = json!({"split": "test", "index": 2, "max_steps": 3, "observation": "text_rich"});
    let session = server.post("/api/v1/sessions", &start).json();
    let (id, goal) = (&session["id"], SHOP.goals().get(SHOP.goals().split(Split::Test)[2]));
    assert_eq!((&session["goal"], &session["split"]), (&goal.id.0.into(), &"test".into()));
    assert_eq!(session["instruction"], *goal.instruction);
    assert!(session["observation"].as_str().expect("a text").contains("[button] Search [button_]"));
    let search = json!({"action": format!("search[{}]", goal.title)});
    let after = server.post(&path(id, "/step"), &search).json();
    assert_eq!((&after["step"], &after["noop"], &after["reward"]), (&1.into(), &Value::Null, &0.0.into()));
    let mut shown = server.get(&path(id, "")).json();
    assert_eq!(shown, after);
    let ids = server.post(&path(id, "/fork"), &json!({"n": 2})).json()["ids"].clone();
    let snapshot = server.get(&path(id, "/snapshot")).json();
    let mut restored = server.post("/api/v1/sessions", &snapshot).json();
    restored.as_object_mut().expect("an object").shift_remove("fingerprint");
    for other in [&ids[0], &ids[1], &restored["id"]] {
        shown["id"] = other.clone();
        assert_eq!(server.get(&path(other, "")).json(), shown);
    }
    // One action in the copies; the original does not move.
    let buys = json!({"ids": ids, "actions": ["click[nothing]", "click[back to search]"]});
    let lists = server.post("/api/v1/batch/step", &buys).json();
    assert_eq!((&lists["ids"], &lists["step"]), (&ids, &json!([2, 2])));
    assert_eq!(lists["noop"], json!(["not_on_page", null]));
    assert_eq!(server.get(&path(id, "")).json()["step"], 1);
    let ends: Vec<Value> = (0..3).map(|_| server.post(&path(id, "/step"), &search).json()).collect();
    assert_eq!([0, 1, 2].map(|at| ends[at]["truncated"] == true), [false, true, true]);
    assert_eq!((&ends[2]["noop"], &ends[2]["step"]), (&"episode_over".into(), &3.into()));
    assert_eq!(server.send("DELETE", &path(id, ""), "", "").status, 204);
    check_refused(&server.get(&path(id, "")), 404, "no_such_session", "there is no session `0`");
}

/// A session that has bought the product of goal 4 without its options.
fn buy(server: &Served) -> Value {
    let goal = SHOP.goals().get(webshop_products::GoalId(4));
    let session = server.post("/api/v1/sessions", &json!({"goal": 4})).json();
    let step = format!("/api/v1/sessions/{}/step", session["id"].as_str().expect("a name"));
    let asin = goal.asin.as_str().to_lowercase();
    let title = format!("search[{}]", goal.title);
    let actions = [title, format!("click[{asin}]"), "click[buy now]".to_owned()];
    actions.map(|action| server.post(&step, &json!({ "action": action })).json())[2].clone()
}

#[test]
fn a_purchase_explains_its_reward() {
    let server = served(config());
    let last = buy(&server);
    assert_eq!((&last["terminated"], &last["truncated"]), (&true.into(), &false.into()), "{last}");
    let parts = &last["reward_parts"];
    let number = |name: &str| parts[name].as_f64().unwrap_or_else(|| panic!("`{name}` in {parts}"));
    let met = number("attribute_matches") + number("option_matches") + 1.0;
    let required = number("n_attributes") + number("n_options") + 1.0;
    assert_eq!(last["reward"].as_f64(), Some(met / required * number("r_type")));
    assert_eq!(parts["total"], last["reward"]);
}

#[test]
fn a_snapshot_of_a_purchase_has_its_reward() {
    let server = served(config());
    let mut bought = buy(&server);
    assert!(bought["reward"].as_f64().expect("a number") > 0.0, "{bought}");
    let path = format!("/api/v1/sessions/{}", bought["id"].as_str().expect("a name"));
    let snapshot = server.get(&format!("{path}/snapshot")).json();
    let mut restored = server.post("/api/v1/sessions", &snapshot).json();
    restored.as_object_mut().expect("an object").shift_remove("fingerprint");
    bought["id"] = restored["id"].clone();
    assert_eq!(restored, bought);
}

#[test]
fn a_snapshot_takes_no_other_fields() {
    let server = served(config());
    server.post("/api/v1/sessions", &json!({"goal": 1}));
    let snapshot = server.get("/api/v1/sessions/0/snapshot").json()["snapshot"].clone();
    let beside = json!({
        "task": {"goal": 1}, "goal": 1, "split": "test", "index": 1, "seed": 1, "max_steps": 3,
        "observation": "url", "episode_id": "e",
    });
    for (name, value) in beside.as_object().expect("an object") {
        let message = format!("`{name}`: Input is not permitted beside `snapshot`");
        let reply = server.post("/api/v1/sessions", &json!({"snapshot": snapshot, name: value}));
        check_refused(&reply, 400, "invalid", &message);
    }
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 1);
    // A field that is null is none.
    assert_eq!(server.post("/api/v1/sessions", &json!({"snapshot": snapshot, "goal": null})).status, 200);
    assert_eq!(server.post("/api/v1/sessions", &json!({"snapshot": null, "goal": 1})).status, 200);
}

#[test]
fn a_batch_is_its_sessions_in_order() {
    let server = served(config());
    let first = server.post("/api/v1/batch/reset", &json!({"goals": [5, 3, 5], "max_steps": 1})).json();
    assert_eq!((&first["ids"], &first["goal"]), (&json!(["0", "1", "2"]), &json!([5, 3, 5])));
    // The same sessions again, in another order.
    let again = json!({"ids": ["2", "0", "1"], "seeds": [1, 2, 3]});
    let again = server.post("/api/v1/batch/reset", &again).json();
    assert_eq!((&again["ids"], &again["step"]), (&json!(["2", "0", "1"]), &json!([0, 0, 0])));
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 3);
    let refused = [
        (json!({"goals": [1], "seeds": [1]}), "give either `goals`, or `seeds` with or without `split`"),
        (json!({}), "give either `goals`, or `seeds` with or without `split`"),
        (json!({"goals": [1], "split": "test"}), "give either `goals`, or `seeds` with or without `split`"),
        (json!({"goals": [1, 2], "ids": ["0"]}), "there are 1 ids, but 2 goals or seeds"),
        (json!({"goals": [1, -2]}), "`goals`: Input should be a list of integers from 0"),
        (json!({"goals": [1], "goal": 3}), "`goal`: Extra inputs are not permitted"),
    ];
    for (body, message) in refused {
        check_refused(&server.post("/api/v1/batch/reset", &body), 400, "invalid", message);
    }
    // Nothing is reset, and no session is left, if one goal is wrong.
    let before = server.get("/api/v1/sessions/0").json();
    for body in [json!({"goals": [1, 99999]}), json!({"goals": [1, 99999], "ids": ["0", "1"]})] {
        check_refused(&server.post("/api/v1/batch/reset", &body), 404, "no_such_goal", "no goal `99999`");
    }
    assert_eq!(server.get("/api/v1/sessions/0").json(), before);
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 3);
    let step = |body: Value| server.post("/api/v1/batch/step", &body);
    check_refused(&step(json!({"ids": ["0"], "actions": []})), 400, "invalid", "1 ids, but 0 actions");
    check_refused(&step(json!({"ids": ["0", "9"], "actions": ["", ""]})), 404, "no_such_session", "`9`");
    let twice = "`ids`: the session `0` is given twice";
    check_refused(&step(json!({"ids": ["0", "1", "0"], "actions": ["", "", ""]})), 400, "invalid", twice);
    let reset = json!({"goals": [7, 8], "ids": ["0", "0"]});
    check_refused(&server.post("/api/v1/batch/reset", &reset), 400, "invalid", twice);
    check_refused(&step(json!({"ids": ["0"]})), 400, "invalid", "`actions`: Field required");
    assert_eq!(server.get("/api/v1/sessions/0").json(), before);
}

#[test]
fn wrong_requests_are_refused_by_name() {
    let server = served(config());
    let n_goals = SHOP.goals().goals().len();
    let create = |body: &str| server.send("POST", "/api/v1/sessions", "", body);
    check_refused(&create("{"), 400, "invalid", "the body is not JSON");
    check_refused(&create("[]"), 400, "invalid", "the body is not a JSON object");
    check_refused(&create("{\"gaol\": 1}"), 400, "invalid", "`gaol`: Extra inputs are not permitted");
    check_refused(
        &create("{\"seed\": -1}"),
        400,
        "invalid",
        "`seed`: Input should be greater than or equal to 0",
    );
    let beyond = create(&format!("{{\"goal\": {n_goals}}}"));
    check_refused(
        &beyond,
        404,
        "no_such_goal",
        &format!("there is no goal `{n_goals}`; the shop has {n_goals} goals"),
    );
    check_refused(&create("{\"split\": \"test\", \"index\": 999999}"), 404, "no_such_goal", "index `999999`");
    check_refused(&create("{\"snapshot\": \"???\"}"), 400, "invalid", "`snapshot`: not base64");
    check_refused(&create("{\"snapshot\": \"AAAA\"}"), 400, "invalid_snapshot", "not a snapshot");
    assert_eq!(server.get("/api/v1/info").json()["sessions"], 0, "no session is left behind");
    assert_eq!(create("").status, 200, "an empty body asks for nothing in particular");
    let step = |body: &Value| server.post("/api/v1/sessions/0/step", body);
    check_refused(&step(&json!({})), 400, "invalid", "`action`: Field required");
    check_refused(&step(&json!({"action": 1})), 400, "invalid", "`action`: Input should be a valid string");
    check_refused(
        &server.post("/api/v1/sessions/x/step", &json!({"action": ""})),
        404,
        "no_such_session",
        "`x`",
    );
    check_refused(
        &server.post("/api/v1/sessions/0/fork", &json!({"n": 5000})),
        400,
        "invalid",
        "more than the 1000 of this server",
    );
    let full = server.post("/api/v1/sessions/0/fork", &json!({"n": 1000}));
    check_refused(&full, 503, "full", " of 1000 sessions are in use");
    assert!(full.header("retry-after").is_some());
    check_refused(&server.get("/api/v1/nothing"), 404, "no_such_address", "nothing is at this address");
    let get = server.get("/api/v1/sessions");
    check_refused(&get, 405, "method_not_allowed", "does not take this method");
    assert_eq!(get.header("allow"), Some("POST"));
    check_refused(&server.get("/api/v1/sessions/%FF"), 400, "invalid", "cannot be read");
}

#[test]
fn a_body_that_is_too_large_is_refused_in_the_same_form() {
    let server = served(ServeConfig { max_body: 1000, ..config() });
    let reply = server.post("/api/v1/sessions", &json!({"snapshot": "x".repeat(2000)}));
    check_refused(&reply, 413, "body_too_large", "larger than the server's `--max-body`");
}
