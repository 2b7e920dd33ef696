//! Hostile and vanishing clients: each is refused or forgotten, and the others notice nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use webshop_serve::{ServeConfig, raise_open_files};

use super::command::start;
use super::mcp::client::Mcp;
use crate::common::client::{Served, Socket, TIMEOUT, config, served, wait_until};

/// Addresses that read a body, of every interface that takes JSON.
const PATHS: [&str; 9] = [
    "/api/v1/sessions",
    "/api/v1/batch/reset",
    "/reset",
    "/step",
    "/agentgym/reset",
    "/agentgym/step",
    "/webshop/task_range",
    "/v1/chat/completions",
    "/v1/completions",
];

/// Fails if a new client cannot complete an episode's first step.
#[track_caller]
fn check_healthy(server: &Served) {
    assert_eq!(server.get("/health").json(), json!({"status": "healthy"}));
    let mut socket = server.socket("/ws");
    socket.say(json!({"type": "reset", "data": {"goal": 1}}));
    let step = socket.say(json!({"type": "step", "data": {"action": "search[lamp]"}}));
    assert_eq!(step["data"]["observation"]["step"], 1);
}

/// Sends bytes as they are and returns the beginning of the reply; empty if the server closes the connection. A server that does
/// neither fails the test.
fn send(server: &Served, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut reply = [0; 256];
    let n = match stream.read(&mut reply) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the server does not reply")
        }
        // Closed with bytes unread.
        Err(_) => 0,
        Ok(n) => n,
    };
    String::from_utf8_lossy(&reply[..n]).into_owned()
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn hostile_bodies_are_refused() {
    let server = served(config());
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let deep_object = br#"{"goal":"#.repeat(50_000);
    let bodies: [&[u8]; 9] = [
        &deep,
        &deep_object,
        b"{\"goal\": 1e999}",
        b"{\"goal\": -1, \"env_idx\": -1, \"prompt\": -1, \"action\": -1}",
        b"{\"goal\": \"\\ud800\", \"prompt\": \"\\ud800\"}",
        b"\xff\xfe{\"goal\": 1}",
        b"{\"goal\": 1",
        b"\0",
        b"[]",
    ];
    for path in PATHS {
        for body in bodies {
            let reply = send(&server, &post(path, body));
            let start = String::from_utf8_lossy(&body[..body.len().min(40)]);
            assert!(reply.starts_with("HTTP/1.1 4"), "{path} {start}: {reply}");
        }
    }
    check_healthy(&server);
}

#[test]
fn hostile_requests_are_refused() {
    let server = served(config());
    let header =
        [b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", &[b'x'; 1 << 20][..], b"\r\n\r\n"].concat();
    let address = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(1 << 17));
    let requests: [&[u8]; 6] = [
        &header,
        address.as_bytes(),
        b"GET /health HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ];
    for request in requests {
        let reply = send(&server, request);
        let start = String::from_utf8_lossy(&request[..request.len().min(40)]);
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 4"), "{start}: {reply}");
    }
    check_healthy(&server);
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let server = served(ServeConfig { body_timeout: Duration::from_secs(1), ..config() });
    let request = "POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"goal\"";
    let reply = send(&server, request.as_bytes());
    assert!(reply.starts_with("HTTP/1.1 408") && reply.contains("the body did not come in time"), "{reply}");
    check_healthy(&server);
}

#[test]
fn the_head_of_a_request_that_does_not_come_is_given_up() {
    let server = served(ServeConfig { header_timeout: Duration::from_secs(1), ..config() });
    let mut socket = server.socket("/ws");
    let mut events = Mcp::begin(&server, "").listen();
    let begins: [&[u8]; 3] =
        [b"", b"GET /health HTTP/1.1\r\nHos", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"];
    for begin in begins {
        let mut stream = TcpStream::connect(&server.address).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
        stream.write_all(begin).expect("an open connection");
        let mut reply = String::new();
        // An error would mean that the connection is still open.
        stream.read_to_string(&mut reply).expect("the end of the connection");
        assert_eq!(reply.starts_with("HTTP/1.1 200"), begin.ends_with(b"\r\n\r\n"), "{reply}");
    }
    let reset = socket.say(json!({"type": "reset", "data": {"goal": 1}}));
    assert_eq!(reset["data"]["observation"]["goal"], 1, "a WebSocket may be silent for longer");
    events.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
    let mut part = [0; 1024];
    let end = loop {
        match events.read(&mut part) {
            Ok(0) => panic!("a response that goes on was cut off"),
            Ok(_) => {}
            Err(error) => break error.kind(),
        }
    };
    assert!(matches!(end, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{end}");
    check_healthy(&server);
}

#[test]
fn a_client_that_closes_gets_its_answer() {
    let server = served(config());
    for path in ["/ws", "/mcp"] {
        let mut socket = server.socket(path);
        socket.close(1000);
        assert_eq!(socket.closed(), Some(1000), "{path}");
    }
    // A text that is not UTF-8: FF FE, masked with zeros.
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    let frame: &[u8] = &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe];
    stream.write_all(&[upgrade.as_bytes(), frame].concat()).expect("an open connection");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).expect("the end of the connection");
    let close = reply.windows(4).find(|bytes| bytes[0] == 0x88).expect("a frame that closes");
    assert_eq!(u16::from_be_bytes([close[2], close[3]]), 1007);
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let server = served(config());
    for n_bytes in [0, 9, 60, 125] {
        let request = post("/api/v1/sessions", br#"{"goal": 1}"#); // 133 bytes
        let mut stream = TcpStream::connect(&server.address).expect("a connection");
        stream.write_all(&request[..request.len().min(n_bytes)]).expect("an open connection");
    }
    for _ in 0..50 {
        let mut socket = server.socket("/ws");
        socket.say(json!({"type": "reset", "data": {"goal": 1}}));
        // The reply to this is never read.
        socket.send(&json!({"type": "step", "data": {"action": "search[lamp]"}}).to_string());
    }
    let info = || server.get("/api/v1/info").json();
    wait_until("no session is left", || info()["sessions"] == 0);
    check_healthy(&server);
}

#[test]
fn silent_connections_do_not_hold_up_the_others() {
    let server = served(config());
    // Few enough for the usual limit of 1024 open files, both ends of a connection counted.
    let silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(&server.address).expect("a connection")).collect();
    let mut sockets: Vec<_> = (0..100).map(|_| server.socket("/ws")).collect();
    for (goal, socket) in sockets.iter_mut().enumerate() {
        let reset = socket.say(json!({"type": "reset", "data": {"goal": goal % 7}}));
        assert_eq!(reset["data"]["observation"]["goal"], goal % 7);
    }
    for (goal, socket) in sockets.iter_mut().enumerate() {
        let state = socket.say(json!({"type": "state"}));
        assert_eq!(state["data"]["goal"], goal % 7);
    }
    check_healthy(&server);
    drop(silent);
}

/// Sends a message on all sockets, and then reads the reply on each.
fn ask_all(sockets: &mut [Socket], message: impl Fn(usize) -> Value, check: impl Fn(usize, Value)) {
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.send(&message(number).to_string());
    }
    for (number, socket) in sockets.iter_mut().enumerate() {
        check(number, socket.next());
    }
}

/// Each connection is an open file in this process and in the server's, which both raise their limits.
#[test]
#[cfg(unix)]
fn two_thousand_sockets_step_side_by_side() {
    const N_SOCKETS: usize = 2000;
    let limit = raise_open_files();
    assert!(limit >= Some(N_SOCKETS as u64 + 500), "{limit:?} files may be open: raise `ulimit -Hn`");
    // The access log would fill the pipe, which is read at the end.
    let running = start(&[], &[("RUST_LOG", "warn")]);
    let mut sockets: Vec<Socket> = (0..N_SOCKETS).map(|_| running.server.socket("/ws")).collect();
    let goal = |number: usize| number % 3;
    let reset = |number| json!({"type": "reset", "data": {"goal": goal(number)}});
    ask_all(&mut sockets, reset, |number, reply| {
        assert_eq!(reply["data"]["observation"]["goal"], goal(number), "{reply}");
    });
    for step in 1..3 {
        let action = json!({"type": "step", "data": {"action": "search[lamp]"}});
        ask_all(
            &mut sockets,
            |_| action.clone(),
            |number, reply| {
                let observation = &reply["data"]["observation"];
                assert_eq!(
                    (&observation["goal"], &observation["step"]),
                    (&goal(number).into(), &step.into())
                );
            },
        );
    }
    assert_eq!(running.server.get("/api/v1/info").json()["sessions"], N_SOCKETS);
    check_healthy(&running.server);
    drop(sockets);
    let (code, _, log) = running.end("-TERM");
    assert_eq!((code, log.as_str()), (Some(0), ""), "nothing to warn of");
}
