//! `webshop serve`: the first line, the log, the end, and refusals.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command};

use serde_json::{Value, json};
use webshop_env::{ENVIRONMENT_ID, read_html};

use super::mcp;
use super::mcp::client::{Mcp, initialize};
use crate::common::client::{Reply, Served};
use crate::common::command::{CORNER_SHOP, answer, command, refusal, temporary, webshop};

/// A running `webshop serve` and the object of its first line.
pub(super) struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    pub(super) ready: Value,
    pub(super) server: Served,
}

/// A server of the corner shop on a free port.
pub(super) fn start(args: &[&str], environment: &[(&str, &str)]) -> Running {
    start_with(&[&["--port", "0", "--catalog", CORNER_SHOP], args].concat(), environment)
}

/// A server with these flags and no others.
pub(super) fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Running {
    let args = [&["serve"], args].concat();
    let mut child = command(&args).envs(environment.iter().copied()).spawn().expect("the binary starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a first line");
    let ready: Value = serde_json::from_str(&line).expect("one JSON object");
    let address = ready["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address");
    Running { child, stdout, server: Served { address: address.to_owned() }, ready }
}

/// A test that fails leaves no server behind, which would hold what it inherited.
impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Sends a signal; the exit code, `None` if the signal killed it, the rest of stdout, and stderr.
    pub(super) fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("a shell's tool").success());
        let (mut rest, mut log) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).expect("text");
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
        (self.child.wait().expect("it ends").code(), rest, log)
    }
}

#[test]
#[cfg(unix)]
fn the_first_line_is_one_object_and_a_signal_ends_in_order() {
    for signal in ["-TERM", "-INT"] {
        let running = start(&[], &[]);
        let (ready, url) = (&running.ready, running.ready["url"].as_str().expect("an address"));
        assert_eq!(
            (&ready["pid"], &ready["environment"]),
            (&running.child.id().into(), &ENVIRONMENT_ID.into())
        );
        assert_eq!(url, format!("http://127.0.0.1:{}", ready["port"]));
        assert_eq!((&ready["openenv"], &ready["openai"]), (&url.into(), &Value::Null));
        assert_eq!(
            (&ready["agentgym"], &ready["site"]),
            (&format!("{url}/agentgym").into(), &format!("{url}/").into())
        );
        assert_eq!(ready["mcp"], format!("{url}/mcp"));
        assert_eq!(running.server.get("/health").json(), json!({"status": "healthy"}));
        let mut socket = running.server.socket("/ws");
        socket.say(json!({"type": "reset"}));
        let (code, rest, log) = running.end(signal);
        assert_eq!((code, rest.as_str()), (Some(0), ""), "{log}");
        assert_eq!(socket.closed(), Some(1001));
        assert!(log.contains("path=\"/health\" status=200"), "{log}");
        assert!(!log.contains("WARN"), "{log}");
    }
}

#[test]
#[cfg(unix)]
fn the_event_streams_of_mcp_clients_end_with_the_server() {
    let running = start(&[], &[]);
    let mut events = Mcp::begin(&running.server, "").listen();
    let mut begun = [0];
    events.read_exact(&mut begun).expect("the head of the stream");
    let (code, _, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let mut rest = String::new();
    events.read_to_string(&mut rest).expect("text");
    assert!(
        rest.contains("text/event-stream") && rest.ends_with("\r\n0\r\n\r\n"),
        "the last chunk: {rest:?}"
    );
}

#[test]
#[cfg(unix)]
fn the_address_that_the_server_listens_on_is_a_host() {
    let running = start(&["--host", "0.0.0.0", "--allow-host", "shop.example"], &[]);
    let status = |host: &str| {
        let request = initialize().to_string();
        running.server.send_to(host, "POST", "/mcp", mcp::client::HEADERS, &request).status
    };
    assert_eq!(["0.0.0.0:1", "shop.example", "evil.example"].map(status), [200, 200, 403]);
    running.end("-TERM");
}

#[test]
#[cfg(unix)]
fn beyond_this_machine_a_token_is_missed() {
    let running = start(&["--host", "0.0.0.0"], &[]);
    let (code, _, log) = running.end("-TERM");
    assert_eq!(code, Some(0));
    assert_eq!(log.matches("WARN").count(), 1, "{log}");
    assert!(log.contains("`--token-env` asks for a token"), "{log}");
    let running = start(&["--host", "0.0.0.0", "--token-env", "SHOP_TOKEN"], &[("SHOP_TOKEN", "s3cret")]);
    assert_eq!(running.server.get("/api/v1/info").status, 401);
    let (_, _, log) = running.end("-TERM");
    assert!(!log.contains("WARN") && !log.contains("s3cret"), "{log}");
}

#[test]
#[cfg(unix)]
fn flags_are_the_defaults_of_resets() {
    let flags =
        ["--split", "all", "--max-steps", "1", "--observation", "url", "--max-sessions", "3", "--seed", "4"];
    let running = start(&flags, &[]);
    let info = running.server.get("/api/v1/info").json();
    assert_eq!((&info["split"], &info["max_steps"]), (&"all".into(), &1.into()));
    assert_eq!((&info["max_sessions"], &info["seed"]), (&3.into(), &4.into()));
    let session = running.server.post("/api/v1/sessions", &json!({"goal": 0})).json();
    assert_eq!(session["observation"], "http://127.0.0.1:3000/0");
    let step = running.server.post("/api/v1/sessions/0/step", &json!({"action": "x"})).json();
    assert_eq!(step["truncated"], true);
    running.end("-TERM");
}

#[test]
#[cfg(unix)]
fn health_is_asked_for_by_a_command() {
    let running = start(&["--token-env", "SHOP_TOKEN"], &[("SHOP_TOKEN", "s3cret")]);
    let address = running.server.address.clone();
    assert_eq!(answer(&["health", &address]), format!("`{address}` is healthy\n"));
    running.end("-TERM");
    let gone = webshop(&["health", &address], "");
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(gone.stdout.starts_with(&format!("`{address}` is not healthy: ")), "{}", gone.stdout);
    // What listens there and is no shop is not healthy either.
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("an address").to_string();
    let asked = std::thread::spawn({
        let address = address.clone();
        move || webshop(&["health", &address], "")
    });
    let (mut stream, _) = other.accept().expect("a connection");
    stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").expect("an open connection");
    assert_eq!(
        asked.join().expect("an answer").stdout,
        format!("`{address}` is not healthy: it responds with `HTTP/1.1 503 `\n")
    );
}

#[test]
fn a_server_that_cannot_run_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let dir = temporary();
    let message =
        |args: &[&str]| refusal(dir.path(), &[&["serve", "--catalog", CORNER_SHOP], args].concat(), "");
    let of_port = message(&["--port", &port]);
    assert!(
        of_port.contains(&format!("cannot listen on `127.0.0.1:{port}`; give another port")),
        "{of_port}"
    );
    let of_host = message(&["--port", "0", "--host", "no such host"]);
    assert!(of_host.contains("the host `no such host` cannot be resolved"), "{of_host}");
    let of_token = message(&["--port", "0", "--token-env", "NO_SUCH_VARIABLE"]);
    assert!(of_token.contains("`NO_SUCH_VARIABLE` of `--token-env` holds no token"), "{of_token}");
    let whole = ["serve", "--catalog", CORNER_SHOP, "--port", "0", "--token-env", "SHOP_TOKEN"];
    let refused = command(&whole).env("SHOP_TOKEN", "s3cret\n").output().expect("the binary starts");
    let of_token = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(2), "{of_token}");
    assert!(of_token.contains("other than visible ASCII") && !of_token.contains("s3cret"), "{of_token}");
    let of_device = message(&["--port", "0", "--device", "cpu", "--kernels", "reference"]);
    assert!(of_device.contains("is of the model that is served, and needs `--model`"), "{of_device}");
    let of_host = message(&["--allow-host", "http://shop.example"]);
    assert!(of_host.contains("not a host, such as `shop.example` or `shop.example:8000`"), "{of_host}");
    let of_origin = message(&["--allow-origin", "app.example"]);
    assert!(of_origin.contains("not an origin, such as `https://app.example`"), "{of_origin}");
    let of_idle = message(&["--port", "0", "--idle-seconds", "0"]);
    assert!(of_idle.contains("'--idle-seconds <S>': must be above 0"), "{of_idle}");
    let of_replay = message(&["--port", "0", "--replay", "missing.jsonl"]);
    assert!(of_replay.contains("cannot open `missing.jsonl`"), "{of_replay}");
    let bad = dir.path().join("bad.jsonl");
    fs::write(&bad, "\n{}\n").expect("a file");
    let bad = bad.to_str().expect("text");
    let of_line = message(&["--port", "0", "--replay", bad]);
    assert!(of_line.contains("cannot show the episodes of `DIR/bad.jsonl`: line 2: "), "{of_line}");
    let of_record = message(&["--port", "0", "--record", bad]);
    assert!(of_record.contains("cannot append to `DIR/bad.jsonl`, which must be a new file"), "{of_record}");
}

#[test]
#[cfg(unix)]
fn recorded_people_are_replayed_and_shown() {
    let dir = temporary();
    let file = dir.path().join("people.jsonl");
    let path = file.to_str().expect("text");
    let running = start(&["--record", path], &[]);
    let next = |reply: &Reply| reply.header("location").expect("an address").to_owned();
    let start_page = read_html(&running.server.get("/fixed_0").body);
    let words = start_page.instruction().expect("an instruction");
    let found = running.server.form("/fixed_0", &[("search_query", words)]);
    let cookie = found.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let product = running.server.get(&next(&found)).body;
    let asin =
        product.split("href=\"?click=").nth(1).and_then(|rest| rest.split('"').next()).expect("a product");
    let follow = |path: &str| next(&running.server.send("GET", path, &format!("Cookie: {cookie}\r\n"), ""));
    let item = follow(&format!("{}?click={asin}", next(&found)));
    assert!(follow(&format!("{item}?click=buy+now")).starts_with("/done/fixed_0/"));
    running.end("-TERM");
    let replayed = answer(&["replay", path, "--catalog", CORNER_SHOP]);
    assert!(replayed.contains("1 episodes, 3 turns: no difference"), "{replayed}");
    // The same command begins again with the file.
    start(&["--record", path], &[]).end("-TERM");
    assert!(answer(&["replay", path, "--catalog", CORNER_SHOP]).contains("1 episodes, 3 turns"));
    let running = start(&["--replay", path], &[]);
    assert!(running.server.get("/replay").body.contains("<td>human</td>"));
    running.end("-TERM");
}
