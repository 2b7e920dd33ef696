//! Conversations over a WebSocket: one reply for each message, pings, and an orderly end.
//!
//! A protocol is a function from a message to a [`Reply`]. The server pings every [`PING_EVERY`] and gives up
//! after two pings without a sign of life, or when a client takes no message for as long. A message that is too large closes
//! with 1009, a text that is not UTF-8 with 1007, the end of the server with 1001.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::app::App;
use crate::connections::stops;

/// The time between two pings.
const PING_EVERY: Duration = Duration::from_secs(20);

/// Pings without a sign of life after which a connection is given up.
const MAX_UNANSWERED: u32 = 2;

/// The longest wait for a client to take a message.
const SENDING: Duration = PING_EVERY.saturating_mul(MAX_UNANSWERED);

/// The longest wait for the other side to close, once this one has.
const CLOSING: Duration = Duration::from_secs(1);

/// What a message is answered by.
pub(crate) enum Reply {
    /// A text.
    Text(String),
    /// A text, and the end of the conversation.
    Last(String),
    /// The end of the conversation.
    End,
}

/// A protocol: the replies to the messages of one connection.
pub(crate) type Protocol = Arc<dyn Fn(&App, &str) -> Reply + Send + Sync>;

/// Opens a WebSocket and converses. `begin` gives the protocol, or the text that refuses the connection.
pub(crate) fn open(
    app: Arc<App>,
    upgrade: WebSocketUpgrade,
    begin: impl FnOnce(&Arc<App>) -> Result<Protocol, String> + Send + 'static,
) -> Response {
    let upgrade = upgrade.max_message_size(app.max_body).max_frame_size(app.max_body);
    upgrade.on_upgrade(async move |mut socket| {
        let _open = app.open_socket.clone();
        let (code, reason) = match begin(&app) {
            Ok(protocol) => exchange_messages(&app, &mut socket, &protocol).await,
            Err(refusal) => {
                // A client that is gone already needs no refusal.
                let _ = send(&mut socket, Message::text(refusal)).await;
                (close_code::AGAIN, "refused")
            }
        };
        close(socket, code, reason).await;
    })
}

/// What happens to a connection.
enum Event {
    Received(Option<Result<Message, axum::Error>>),
    PingIsDue,
    Stops,
}

/// Answers messages until one side ends, and returns why.
async fn exchange_messages(
    app: &Arc<App>,
    socket: &mut WebSocket,
    protocol: &Protocol,
) -> (u16, &'static str) {
    let mut stopping = app.stopping.clone();
    let mut pings = interval(PING_EVERY);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate.
    pings.tick().await;
    let mut unanswered = 0;
    loop {
        let event = tokio::select! {
            message = socket.recv() => Event::Received(message),
            _ = pings.tick() => Event::PingIsDue,
            _ = stops(&mut stopping) => Event::Stops,
        };
        let message = match event {
            Event::Received(message) => message,
            Event::Stops => return (close_code::AWAY, "the server stops"),
            Event::PingIsDue => {
                let is_gone = unanswered == MAX_UNANSWERED;
                if is_gone || !send(socket, Message::Ping(Default::default())).await {
                    return (close_code::POLICY, "no answer to pings");
                }
                unanswered += 1;
                continue;
            }
        };
        unanswered = 0;
        let text = match message {
            None | Some(Ok(Message::Close(_))) => return (close_code::NORMAL, ""),
            Some(Err(error)) => return of_error(&error),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Text(text))) => text.to_string(),
            // No protocol here has binary messages; what is not text is not JSON either.
            Some(Ok(Message::Binary(bytes))) => String::from_utf8_lossy(&bytes).into_owned(),
        };
        let answer = Arc::clone(protocol);
        let reply = Arc::clone(app).run(move |app| answer(app, &text)).await;
        let (text, is_last) = match reply {
            Reply::Text(text) => (text, false),
            Reply::Last(text) => (text, true),
            Reply::End => return (close_code::NORMAL, ""),
        };
        if !send(socket, Message::text(text)).await || is_last {
            return (close_code::NORMAL, "");
        }
    }
}

/// Sends a message; whether the client took it in time.
async fn send(socket: &mut WebSocket, message: Message) -> bool {
    timeout(SENDING, socket.send(message)).await.is_ok_and(|sent| sent.is_ok())
}

/// The close code of a failed receipt. The library does not tell the kinds of errors by a type.
fn of_error(error: &axum::Error) -> (u16, &'static str) {
    let error = error.to_string();
    if error.contains("too long") {
        (close_code::SIZE, "the message is too large")
    } else if error.contains("UTF-8") {
        (close_code::INVALID, "a text is not UTF-8")
    } else {
        (close_code::PROTOCOL, "not a WebSocket message")
    }
}

/// Closes, and waits a little for the other side to do so, so that it reads the last message.
async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let handshake = async {
        // It is an error if the client closed first. The answer to that is sent by the next receipt.
        let _ = socket.send(Message::Close(Some(frame))).await;
        while let Some(Ok(_)) = socket.recv().await {}
    };
    // After that the connection is dropped, whatever the other side does.
    let _ = timeout(CLOSING, handshake).await;
}
