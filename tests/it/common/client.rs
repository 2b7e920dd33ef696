//! A server of the shop in this process, and small clients of it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tungstenite::protocol::CloseFrame;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};
use webshop_env::{ObservationMode, Shop};
use webshop_products::{Seed, Split};
use webshop_serve::{Allowed, Defaults, Port, ServeConfig, Server, Stop};
use webshop_training::config::CatalogConfig;
use webshop_training::open_shop;

/// The shop that all servers of the tests share.
pub(crate) static SHOP: LazyLock<Arc<Shop>> =
    LazyLock::new(|| Arc::new(open_shop(&CatalogConfig::default()).expect("the embedded shop opens")));

/// The longest wait for a reply; a test that waits longer fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `is_met`.
///
/// # Panics
/// If it takes longer than [`TIMEOUT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(2);
    let n_looks = TIMEOUT.as_millis() / PAUSE.as_millis();
    let is_met_in_time = (0..n_looks).any(|_| {
        let is_met = is_met();
        if !is_met {
            thread::sleep(PAUSE);
        }
        is_met
    });
    assert!(is_met_in_time, "after {} s still not: {what}", TIMEOUT.as_secs());
}

/// A running server.
pub(crate) struct Served {
    /// Host and port.
    pub(crate) address: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The lines of the head, the first included.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header, whose name is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        found.next()
    }
}

/// The configuration of [`served`].
pub(crate) fn config() -> ServeConfig {
    ServeConfig {
        defaults: Defaults {
            split: Split::Train,
            max_steps: 15,
            observation: ObservationMode::Text,
            seed: Seed(0),
        },
        max_sessions: 1000,
        idle: Duration::from_secs(3600),
        max_body: 4 << 20,
        header_timeout: Duration::from_secs(60),
        body_timeout: Duration::from_secs(30),
        token: None,
        allowed: Allowed::default(),
        snapshot_dir: None,
        threads: 2,
    }
}

/// A server of [`SHOP`] until the tests end.
pub(crate) fn served(config: ServeConfig) -> Served {
    served_with(config, |server| server)
}

/// As [`served`], after `prepare`.
pub(crate) fn served_with(config: ServeConfig, prepare: impl FnOnce(Server) -> Server) -> Served {
    let port = Port::open("127.0.0.1", 0).expect("a free port");
    let address = port.address().to_string();
    let server = prepare(Server::new(port, SHOP.clone(), config).expect("goals to train on"));
    thread::spawn(move || server.run(Stop::Never, || Ok(())).expect("it runs"));
    Served { address }
}

impl Served {
    /// Sends a request with a body of this type, and reads the response.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        self.send_to(&self.address, method, path, headers, body)
    }

    /// As [`Served::send`], with another name of the host.
    pub(crate) fn send_to(&self, host: &str, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
        let n_bytes = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {n_bytes}\r\n{headers}\r\n{body}"
        );
        // A server that refuses a large body may close before it has read it.
        let _ = stream.write_all(request.as_bytes());
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let reply = String::from_utf8(reply).expect("text");
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {reply}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut reply = Reply { status, head: head.to_owned(), body: body.to_owned() };
        if reply.header("transfer-encoding") == Some("chunked") {
            reply.body = dechunked(body);
        }
        reply
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, "Content-Type: application/json\r\n", &body.to_string())
    }

    /// Sends a form, whose values are encoded here.
    pub(crate) fn form(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.send("POST", path, headers, &pairs.join("&"))
    }

    /// Opens a WebSocket.
    pub(crate) fn socket(&self, path: &str) -> Socket {
        let (socket, _) = tungstenite::connect(format!("ws://{}{path}", self.address)).expect("a WebSocket");
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
            stream.set_nodelay(true).expect("an option of TCP");
        }
        Socket(socket)
    }
}

/// The body that was sent in chunks.
fn dechunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let (chunk, rest) = rest.split_at(usize::from_str_radix(size, 16).expect("a size"));
        whole.push_str(chunk);
        body = rest.strip_prefix("\r\n").expect("the end of a chunk");
    }
    whole
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A WebSocket.
pub(crate) struct Socket(WebSocket<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// Sends a text and reads the JSON of the reply.
    pub(crate) fn ask(&mut self, text: &str) -> Value {
        self.0.send(Message::text(text)).expect("an open socket");
        self.next()
    }

    /// Sends a message of JSON and reads the reply.
    pub(crate) fn say(&mut self, message: Value) -> Value {
        self.ask(&message.to_string())
    }

    /// The JSON of the next text.
    pub(crate) fn next(&mut self) -> Value {
        loop {
            match self.0.read().expect("a reply") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("no text: {other:?}"),
            }
        }
    }

    /// Sends a text of which no reply is awaited.
    pub(crate) fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("an open socket");
    }

    /// Closes with this code.
    pub(crate) fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: code.into(), reason: Default::default() };
        self.0.close(Some(frame)).expect("an open socket");
    }

    /// The code with which the server closes.
    pub(crate) fn closed(&mut self) -> Option<u16> {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(error) => panic!("no close: {error}"),
            }
        }
    }
}
