//! Throughput, latency and memory of a server under load.
//!
//! `webshop serve` serves the embedded catalog of 1000 products, without the access log; this process is the client, on
//! the same machine. Episodes are those of the oracle: searches, item pages, options, purchases. Every episode must earn 1.
//!
//! ```text
//! cargo bench --bench load                     # Linux, for its /proc
//! cargo bench --bench load -- 1000000          # steps of the last part, 200000 by default
//! ```
//!
//! Latency is from a request's first byte written to its response's last byte read; with a rate, from when the step was
//! due, so that a step that waits for a slow one before it is slow too. Resets are made, and not counted.

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};
use webshop_agent::{EpisodeCoordinates, OraclePolicy, RolloutConfig, Task, rollout};
use webshop_env::Shop;
use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};

/// Connections of the parts with many.
const MANY: usize = 64;

/// Steps per second of the part with a rate, over all connections.
const RATE: u32 = 10_000;

/// Sessions that are held at once.
const N_HELD: usize = 10_000;

/// Goals whose episodes are repeated.
const N_GOALS: u32 = 256;

fn main() {
    let n_long = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(200_000);
    let episodes: Arc<[OracleEpisode]> = oracle_episodes().into();
    let server = Serving::start(&[]);
    println!("{:<34} {:>9} {:>8} {:>8} {:>8}", "part", "steps/s", "p50, ms", "p99, ms", "max, ms");
    let socket = |number: usize, n_steps: usize, pace: Pace| {
        let (episodes, address) = (Arc::clone(&episodes), server.address.clone());
        move || over_socket(&address, &episodes, 3 * number, n_steps, pace)
    };
    report("WebSocket, 1 connection", &on_threads(vec![socket(0, 20_000, Pace::Unlimited)]));
    let many = |n_steps: usize, pace: fn(usize) -> Pace| {
        (0..MANY).map(|number| socket(number, n_steps / MANY, pace(number))).collect()
    };
    report(&format!("WebSocket, {MANY} connections"), &on_threads(many(100_000, |_| Pace::Unlimited)));
    report(&format!("the same, at {RATE} steps/s"), &on_threads(many(100_000, Pace::one_of_many)));
    let rest = {
        let (episodes, address) = (Arc::clone(&episodes), server.address.clone());
        move || over_rest(&address, &episodes, 10_000)
    };
    report("REST, 1 connection", &on_threads(vec![rest]));
    report("REST, 1 connection, kept", &on_threads(vec![over_rest_kept(Arc::clone(&episodes))]));
    println!("\nmemory of the server, MB: {:.1}", server.memory() as f64 / 1e6);
    let held = hold_sessions(&server.address);
    println!("with {held} sessions: {:.1}", server.memory() as f64 / 1e6);
    println!("\n{n_long} steps on {MANY} connections, memory after each quarter, MB:");
    for _ in 0..4 {
        on_threads(many(n_long / 4, |_| Pace::Unlimited));
        println!("  {:.1}", server.memory() as f64 / 1e6);
    }
}

fn shop() -> Arc<Shop> {
    Arc::new(Shop::embedded(EmbeddedCatalog::Thousand, GoalKind::Both))
}

/// The goal and the actions of an episode that earns 1.
struct OracleEpisode {
    goal: u32,
    actions: Vec<String>,
}

fn oracle_episodes() -> Vec<OracleEpisode> {
    let shop = shop();
    let task = |goal| {
        let coordinates = EpisodeCoordinates::of_goal(GoalId(goal));
        Task::new(Arc::clone(&shop), coordinates)
    };
    let tasks: Vec<Task> = (0..N_GOALS).map(task).collect();
    let limits = RolloutConfig { max_steps: 15, lanes: 32 };
    let played = rollout(&mut OraclePolicy, &tasks, limits, &mut |_, _| ()).expect("the oracle decides");
    let actions = played.into_iter().map(|episode| {
        assert!(episode.reward >= 1.0, "the oracle earns 1");
        episode.turns.iter().map(|turn| turn.action.to_string()).collect()
    });
    (0..N_GOALS).zip(actions).map(|(goal, actions)| OracleEpisode { goal, actions }).collect()
}

/// The process of the server; it ends with this value.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(more: &[&str]) -> Serving {
        let most = (2 * N_HELD).to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_webshop"))
            .args(["serve", "--catalog", "1000", "--port", "0", "--max-sessions", &most])
            .args(more)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output).read_line(&mut line).expect("the line of a server that is ready");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        let url = ready["url"].as_str().expect("an address");
        Serving { child, address: url.trim_start_matches("http://").to_owned() }
    }

    /// Its resident size in bytes.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("Linux tells of a process here");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("with its memory");
        let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
        kilobytes.expect("in kB") * 1024
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A server that has ended already needs no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When a client takes its steps.
#[derive(Clone, Copy)]
enum Pace {
    /// Each when the one before has its response.
    Unlimited,
    /// One every `interval`, the first after `delay`, unless the client is late.
    Rate { interval: Duration, delay: Duration },
}

impl Pace {
    /// The pace of connection `number` of [`MANY`] that take [`RATE`] steps per second together, in turn.
    fn one_of_many(number: usize) -> Pace {
        let together = Duration::from_secs(1) / RATE;
        Pace::Rate { interval: together * MANY as u32, delay: together * number as u32 }
    }

    /// Waits until step `number` is due, of a client that began at `began`, and returns the time from which it counts.
    fn wait(self, began: Instant, number: usize) -> Instant {
        let Pace::Rate { interval, delay } = self else { return Instant::now() };
        let due = began + delay + interval * number as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due
    }
}

/// What one part measured.
struct Measured {
    elapsed: Duration,
    /// Of each step, over all connections.
    latencies: Vec<Duration>,
}

/// Runs clients side by side, each of which returns the latencies of its steps.
fn on_threads<F: FnOnce() -> Vec<Duration> + Send + 'static>(clients: Vec<F>) -> Measured {
    let start = Instant::now();
    let threads: Vec<_> = clients.into_iter().map(thread::spawn).collect();
    let latencies = threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect();
    Measured { elapsed: start.elapsed(), latencies }
}

fn report(part: &str, measured: &Measured) {
    let mut sorted = measured.latencies.clone();
    sorted.sort_unstable();
    let at = |share: f64| 1e3 * sorted[((sorted.len() - 1) as f64 * share) as usize].as_secs_f64();
    let rate = sorted.len() as f64 / measured.elapsed.as_secs_f64();
    println!("{part:<34} {rate:>9.0} {:>8.3} {:>8.3} {:>8.3}", at(0.5), at(0.99), at(1.0));
}

/// Steps over OpenEnv's WebSocket, from episode number `first` on.
fn over_socket(
    address: &str,
    episodes: &[OracleEpisode],
    first: usize,
    n_steps: usize,
    pace: Pace,
) -> Vec<Duration> {
    let (mut socket, _) = tungstenite::connect(format!("ws://{address}/ws")).expect("a WebSocket");
    if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
        stream.set_nodelay(true).expect("an option of TCP");
    }
    steps(episodes, first, n_steps, pace, |request| {
        let message = match request {
            Request::Reset(goal) => json!({"type": "reset", "data": {"goal": goal}}),
            Request::Step(action) => json!({"type": "step", "data": {"action": action}}),
        };
        let text = ask(&mut socket, message.to_string());
        move || serde_json::from_str::<Value>(&text).expect("JSON")["data"]["reward"].as_f64()
    })
}

fn ask(socket: &mut WebSocket<MaybeTlsStream<TcpStream>>, text: String) -> String {
    socket.send(Message::text(text)).expect("an open socket");
    loop {
        match socket.read().expect("a reply") {
            Message::Text(text) => return text.as_str().to_owned(),
            Message::Ping(_) | Message::Pong(_) => {}
            other => panic!("no text: {other:?}"),
        }
    }
}

/// Steps over the native REST interface, on one connection that is kept open.
fn over_rest(address: &str, episodes: &[OracleEpisode], n_steps: usize) -> Vec<Duration> {
    let mut connection = Http::connect(address);
    let mut id = String::new();
    steps(episodes, 0, n_steps, Pace::Unlimited, |request| {
        let text = match request {
            Request::Reset(goal) => {
                if !id.is_empty() {
                    connection.send("DELETE", &format!("/api/v1/sessions/{id}"), "");
                }
                let text = connection.send("POST", "/api/v1/sessions", &json!({ "goal": goal }).to_string());
                let session: Value = serde_json::from_str(&text).expect("JSON");
                id = session["id"].as_str().expect("an id").to_owned();
                text
            }
            Request::Step(action) => {
                let path = format!("/api/v1/sessions/{id}/step");
                connection.send("POST", &path, &json!({ "action": action }).to_string())
            }
        };
        move || serde_json::from_str::<Value>(&text).expect("JSON")["reward"].as_f64()
    })
}

/// As [`over_rest`], at a server of its own that keeps sessions in a folder.
fn over_rest_kept(episodes: Arc<[OracleEpisode]>) -> impl FnOnce() -> Vec<Duration> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("a plain name").to_owned();
    let server = Serving::start(&["--snapshot-dir", &path]);
    move || {
        let latencies = over_rest(&server.address, &episodes, 10_000);
        drop(server);
        drop(folder);
        latencies
    }
}

enum Request<'a> {
    Reset(u32),
    Step(&'a str),
}

/// Plays episodes by `send`, which returns what reads the reward of its response, and times the steps.
fn steps<R: FnOnce() -> Option<f64>>(
    episodes: &[OracleEpisode],
    first: usize,
    n_steps: usize,
    pace: Pace,
    mut send: impl FnMut(Request<'_>) -> R,
) -> Vec<Duration> {
    let mut latencies = Vec::with_capacity(n_steps);
    let began = Instant::now();
    for OracleEpisode { goal, actions } in episodes.iter().cycle().skip(first) {
        if latencies.len() >= n_steps {
            break;
        }
        send(Request::Reset(*goal));
        let mut reward = None;
        for action in actions {
            let start = pace.wait(began, latencies.len());
            let read_reward = send(Request::Step(action));
            latencies.push(start.elapsed());
            reward = Some(read_reward);
        }
        let reward = reward.and_then(|read_reward| read_reward());
        assert_eq!(reward, Some(1.0), "the oracle's episode of goal {goal}");
    }
    latencies
}

/// Opens [`N_HELD`] sessions and takes a step in each; returns how many there are.
fn hold_sessions(address: &str) -> usize {
    let mut connection = Http::connect(address);
    let mut n_held = 0;
    for _ in 0..N_HELD / 100 {
        let goals: Vec<usize> = (0..100).map(|place| (n_held + place) % N_GOALS as usize).collect();
        let text = connection.send("POST", "/api/v1/batch/reset", &json!({ "goals": goals }).to_string());
        let opened: Value = serde_json::from_str(&text).expect("JSON");
        let ids = opened["ids"].as_array().expect("ids");
        n_held += ids.len();
        let step = json!({"ids": ids, "actions": vec!["search[lamp]"; ids.len()]});
        connection.send("POST", "/api/v1/batch/step", &step.to_string());
    }
    n_held
}

/// A connection of HTTP/1.1 that is kept open.
struct Http {
    reader: BufReader<TcpStream>,
}

impl Http {
    fn connect(address: &str) -> Http {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("an option of TCP");
        Http { reader: BufReader::new(stream) }
    }

    /// Sends a request and returns the body of the response, whose status must be below 300.
    fn send(&mut self, method: &str, path: &str, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.reader.get_mut().write_all(request.as_bytes()).expect("an open connection");
        let mut length = 0;
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a status line");
        assert!(line.starts_with("HTTP/1.1 2"), "{method} {path}: {line}");
        while line != "\r\n" {
            line.clear();
            self.reader.read_line(&mut line).expect("a header");
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a body");
        String::from_utf8(body).expect("text")
    }
}
