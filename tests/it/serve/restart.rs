//! `--snapshot-dir`: sessions go on after the server was killed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use webshop_agent::OraclePolicy;

use super::command::{Running, start_with};
use super::mcp::client::Mcp;
use super::players::{AgentGym, Local, NamedMcp, Native, Player, Site, Tools};
use crate::common::client::{SHOP, Served, config, served};
use crate::common::command::{CORNER_SHOP, path, refusal, temporary};
use crate::common::model::{local_episodes, tasks};

/// A server that keeps its sessions in `folder`, at this port; 0 for a free one.
fn start(folder: &Path, port: u64) -> Running {
    start_with(&["--snapshot-dir", path(folder), "--port", &port.to_string()], &[("RUST_LOG", "warn")])
}

/// Kills a server and starts another one at its port, so that clients find it where it was; its log.
fn restart(running: Running, folder: &Path) -> (Running, String) {
    let port = running.ready["port"].as_u64().expect("a port");
    let (code, _, log) = running.end("-KILL");
    assert_eq!(code, None, "a killed process has no exit code");
    (start(folder, port), log)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "session")).collect();
    files.sort();
    files
}

/// The session of our own interface with this id.
fn show(server: &Served, id: &str) -> Value {
    server.get(&format!("/api/v1/sessions/{id}")).json()
}

#[test]
fn episodes_go_on_through_every_interface_after_a_kill() {
    const GOAL: u32 = 5;
    const NAME: &str = "a%2F..%2Fb";
    let folder = temporary();
    let running = start(folder.path(), 0);
    // The address is the next server's too.
    let server = Served { address: running.server.address.clone() };
    let mut players: Vec<(&str, Box<dyn Player + '_>)> = vec![
        ("native", Box::new(Native::new(&server))),
        ("tools", Box::new(Tools::new(&server))),
        ("agentgym", Box::new(AgentGym::new(&server))),
        ("mcp", Box::new(NamedMcp::new(&server, NAME))),
        ("site", Box::new(Site::new(&server))),
    ];
    let episode = local_episodes(&tasks(&SHOP, GOAL + 1), &mut OraclePolicy).pop().expect("an episode");
    let actions: Vec<String> = episode.turns.iter().map(|turn| turn.action.to_string()).collect();
    let undisturbed = served(config());
    let mut digest = undisturbed.post("/api/v1/sessions", &json!({"goal": GOAL})).json()["digest"].clone();
    let mut local = Local::new(&SHOP, 15);
    let expected = local.reset(GOAL);
    for (name, player) in &mut players {
        assert_eq!(player.reset(GOAL), expected, "{name}");
    }
    let mut running = running;
    for action in &actions {
        // No session lives on a connection, so that a kill costs none of them anything.
        let (next, log) = restart(running, folder.path());
        assert_eq!(log, "", "nothing to warn of");
        running = next;
        // The first two sessions are those of the tools and of AgentGym.
        assert_eq!(show(&server, "2")["digest"], digest, "before {action}");
        let expected = local.step(action);
        for (name, player) in &mut players {
            assert_eq!(player.step(action), expected, "{name}, {action}");
        }
        digest =
            undisturbed.post("/api/v1/sessions/0/step", &json!({"action": action})).json()["digest"].clone();
    }
    let (running, _) = restart(running, folder.path());
    let last = show(&server, "2");
    assert_eq!((&last["reward"], &last["terminated"]), (&1.0.into(), &true.into()));
    assert_eq!(last["digest"], digest);
    // Connections are made again: a WebSocket to the first session, and a client of the former protocol of MCP.
    let state = server.socket("/ws?session_id=0").say(json!({"type": "state"}));
    assert_eq!((&state["data"]["goal"], &state["data"]["digest"]), (&GOAL.into(), &digest));
    let agent = Mcp::begin(&server, &format!("?session={NAME}-{GOAL}&goal={GOAL}"));
    assert_eq!(agent.call("view_page", &json!({}))["result"]["structuredContent"]["done"], true);
    let named = files(folder.path()).into_iter().map(|file| file.file_name().expect("a name").to_owned());
    let expected = ["agentgym-1.session", "mcp-3.session", "native-2.session", "openenv-0.session"];
    assert_eq!(named.collect::<Vec<_>>(), expected, "no client's text is in a name");
    running.end("-TERM");
}

/// The number of actions that a session has taken after one more; `None` if there is no whole response.
fn try_step(address: &str, id: usize) -> Option<u64> {
    let body = r#"{"action": "search[lamp]"}"#;
    let length = body.len();
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!("POST /api/v1/sessions/{id}/step HTTP/1.1\r\nHost: localhost\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let (_, body) = reply.split_once("\r\n\r\n")?;
    serde_json::from_str::<Value>(body).ok()?["step"].as_u64()
}

#[test]
fn whatever_was_shown_is_there_after_a_kill_in_the_middle() {
    const N_SESSIONS: usize = 4;
    let folder = temporary();
    let mut running = start(folder.path(), 0);
    let address = running.server.address.clone();
    for goal in 0..N_SESSIONS {
        let reset = json!({"goal": goal, "max_steps": 1_000_000});
        running.server.post("/api/v1/sessions", &reset);
    }
    // What the client of each session has seen last.
    let mut shown = [0; N_SESSIONS];
    for n_steps in [1, 7, 40] {
        let (sender, steps) = mpsc::channel();
        let clients: Vec<_> = (0..N_SESSIONS)
            .map(|id| {
                let (address, sender, mut last) = (address.clone(), sender.clone(), shown[id]);
                thread::spawn(move || {
                    while let Some(step) = try_step(&address, id) {
                        last = step;
                        // Nobody counts any more once the server is to be killed.
                        let _ = sender.send(());
                    }
                    last
                })
            })
            .collect();
        (0..n_steps).for_each(|_| steps.recv().expect("the server steps"));
        let port = running.ready["port"].as_u64().expect("a port");
        running.end("-KILL");
        for (seen, client) in shown.iter_mut().zip(clients) {
            *seen = client.join().expect("no panic");
        }
        running = start(folder.path(), port);
        for (id, seen) in shown.iter_mut().enumerate() {
            let kept = show(&running.server, &id.to_string())["step"].as_u64().expect("a number");
            // The action under way may be done, and its response not sent.
            assert!((*seen..=*seen + 1).contains(&kept), "session {id}: {seen} shown, {kept} kept");
            *seen = kept;
        }
    }
    let (_, _, log) = running.end("-TERM");
    assert_eq!(log, "", "no file is half written");
}

#[test]
fn numbers_are_not_used_again_and_closed_sessions_do_not_come_back() {
    let folder = temporary();
    let running = start(folder.path(), 0);
    let create = |server: &Served| server.post("/agentgym/create", &json!({})).json();
    assert_eq!([(); 3].map(|()| create(&running.server)), [0, 1, 2]);
    let mut socket = running.server.socket("/ws");
    socket.say(json!({"type": "reset"}));
    for closed in [1, 2] {
        assert_eq!(running.server.post("/agentgym/close", &json!({"env_idx": closed})).status, 200);
    }
    let names: Vec<_> =
        files(folder.path()).iter().map(|file| file.file_name().expect("a name").to_owned()).collect();
    assert_eq!(names, ["agentgym-0.session"], "neither the closed ones nor the one on a socket");
    let (running, _) = restart(running, folder.path());
    assert_eq!(running.server.get("/agentgym/list_envs").json(), json!([0]));
    assert_eq!(create(&running.server), 4, "the socket had the number 3");
    // An orderly end keeps sessions, too.
    let port = running.ready["port"].as_u64().expect("a port");
    running.end("-TERM");
    let running = start(folder.path(), port);
    assert_eq!(running.server.get("/agentgym/list_envs").json(), json!([0, 4]));
    running.end("-TERM");
}

#[test]
fn the_stream_of_a_session_goes_on_where_it_was() {
    let folder = temporary();
    let running = start(folder.path(), 0);
    assert_eq!(running.server.post("/agentgym/create", &json!({})).json(), 0);
    let reset =
        |server: &Served| server.post("/agentgym/reset", &json!({"env_idx": 0, "session_id": null})).json();
    let first = reset(&running.server);
    let (running, _) = restart(running, folder.path());
    let second = reset(&running.server);
    running.end("-TERM");
    let undisturbed = served(config());
    undisturbed.post("/agentgym/create", &json!({}));
    assert_eq!([reset(&undisturbed), reset(&undisturbed)], [first, second]);
}

#[test]
fn a_damaged_file_is_set_aside_and_the_others_go_on() {
    let folder = temporary();
    let running = start(folder.path(), 0);
    for goal in 0..2 {
        running.server.post("/api/v1/sessions", &json!({ "goal": goal }));
    }
    let broken = folder.path().join("native-0.session");
    let whole = fs::read(&broken).expect("a file");
    let (running, _) = {
        fs::write(&broken, &whole[..whole.len() / 2]).expect("a written file");
        restart(running, folder.path())
    };
    assert_eq!(running.server.get("/api/v1/sessions/0").status, 404);
    assert_eq!(show(&running.server, "1")["goal"], 1);
    let (_, _, log) = running.end("-TERM");
    assert_eq!(log.matches("WARN").count(), 1, "{log}");
    assert!(log.contains("session `0` is lost") && log.contains("is damaged (its digest is wrong)"), "{log}");
    assert!(!broken.exists() && folder.path().join("native-0.session.damaged").exists());
}

#[test]
fn sessions_of_another_shop_or_server_are_refused() {
    let folder = temporary();
    let running = start(folder.path(), 0);
    running.server.post("/api/v1/sessions", &json!({"goal": 0}));
    let refused = |flags: &[&str]| {
        let keeps = ["serve", "--port", "0", "--snapshot-dir", path(folder.path())];
        refusal(folder.path(), &[&keeps, flags].concat(), "")
    };
    let in_use = refused(&[]);
    assert!(
        in_use.contains("the folder `DIR` is in use by another server; give another `--snapshot-dir`"),
        "{in_use}"
    );
    running.end("-KILL");
    let of_shop = refused(&["--catalog", CORNER_SHOP]);
    let expected = "the folder `DIR` has 1 sessions of another shop, with other catalog, prices, goals, splits; start \
                    with that shop's flags, or give another `--snapshot-dir`";
    assert!(of_shop.contains(expected), "{of_shop}");
    let of_rules = refused(&["--compat", "original"]);
    assert!(of_rules.contains("with other rewards"), "{of_rules}");
    let file = folder.path().join("native-0.session");
    let text = fs::read_to_string(&file).expect("text").replacen("webshop-session-1", "webshop-session-9", 1);
    fs::write(&file, text).expect("a written file");
    let of_layout = refused(&[]);
    let expected = "the session in `DIR/native-0.session` cannot go on: its layout is `webshop-session-9`";
    assert!(of_layout.contains(expected), "{of_layout}");
    // A folder without sessions goes to any shop.
    fs::remove_file(&file).expect("it is there");
    start_with(&["--port", "0", "--catalog", CORNER_SHOP, "--snapshot-dir", path(folder.path())], &[])
        .end("-TERM");
}
