//! What all replies have in common: their head, their usage, and the events of a streamed one.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::select;
use tokio::sync::mpsc;

use super::error::ApiError;
use crate::model::{Finish, Generation, Piece, Scored, now};

/// Events that wait for a slow client; the generation goes on, but its text is made as it is read.
const WAITING_EVENTS: usize = 16;

/// The fields that every document of a reply begins with.
#[derive(Debug)]
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

impl Head {
    /// The head of a reply, whose id is `kind` and the number of the generation.
    pub(super) fn new(kind: &str, generation: &Generation) -> Head {
        Head {
            id: format!("{kind}-{}", generation.ordinal),
            created: now(),
            model: generation.model().name.clone(),
            fingerprint: generation.model().fingerprint.clone(),
        }
    }

    /// A document with these choices.
    pub(super) fn document(&self, object: &str, choices: &[Value]) -> Value {
        let Head { id, created, model, fingerprint } = self;
        json!({
            "id": id, "object": object, "created": created, "model": model,
            "system_fingerprint": fingerprint, "choices": choices,
        })
    }
}

/// The numbers of tokens.
pub(super) fn usage(n_prompt: usize, n_completion: usize) -> Value {
    json!({
        "prompt_tokens": n_prompt, "completion_tokens": n_completion, "total_tokens": n_prompt + n_completion,
    })
}

/// The ids of tokens.
pub(super) fn ids(tokens: &[Scored]) -> Value {
    tokens.iter().map(|token| token.id).collect()
}

/// What the events of a streamed completion hold.
pub(super) trait Chunks: Send + 'static {
    /// The name of the documents.
    const OBJECT: &'static str;

    /// Whether the completion is read to its end before anything of it is sent.
    fn needs_whole(&self) -> bool;

    /// The choices that say what a piece says, each in a document of its own.
    fn of_piece(&mut self, piece: Piece) -> Vec<Value>;

    /// The choice that says how the completion ended.
    fn of_finish(&mut self, finish: Finish) -> Value;
}

/// The response that sends a completion as server-sent events.
pub(super) fn stream(
    head: Head,
    mut generation: Generation,
    mut chunks: impl Chunks,
    includes_usage: bool,
) -> Response {
    let (sender, mut events) = mpsc::channel::<Result<Event, Infallible>>(WAITING_EVENTS);
    tokio::spawn(async move {
        // A client that has gone drops the channel; the generation ends with this task.
        let _ = send(&sender, &head, &mut generation, &mut chunks, includes_usage).await;
    });
    let events = stream::poll_fn(move |context| events.poll_recv(context));
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

type Sender = mpsc::Sender<Result<Event, Infallible>>;

/// The client has gone.
struct Disconnected;

async fn send_data(sender: &Sender, data: String) -> Result<(), Disconnected> {
    sender.send(Ok(Event::default().data(data))).await.map_err(|_| Disconnected)
}

async fn send<C: Chunks>(
    sender: &Sender,
    head: &Head,
    generation: &mut Generation,
    chunks: &mut C,
    includes_usage: bool,
) -> Result<(), Disconnected> {
    let document = |choices: &[Value]| {
        let mut document = head.document(C::OBJECT, choices);
        if includes_usage {
            document["usage"] = Value::Null;
        }
        document
    };
    let mut n_tokens = 0;
    let mut is_first = true;
    loop {
        let is_whole = is_first && chunks.needs_whole();
        let next = async {
            match is_whole {
                true => generation.rest().await.map(|(whole, _)| Some(whole)),
                false => generation.next().await,
            }
        };
        // Nothing may be sent for long.
        let next = select! {
            () = sender.closed() => return Err(Disconnected),
            next = next => next,
        };
        is_first = false;
        let piece = match next {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(failed) => return send_data(sender, ApiError::from(failed).document().to_string()).await,
        };
        n_tokens += piece.tokens.len();
        for choice in chunks.of_piece(piece) {
            send_data(sender, document(&[choice]).to_string()).await?;
        }
    }
    let finish = generation.finish().expect("a generation without a next piece has ended");
    send_data(sender, document(&[chunks.of_finish(finish)]).to_string()).await?;
    if includes_usage {
        let mut last = document(&[]);
        last["usage"] = usage(generation.prompt_ids.len(), n_tokens);
        send_data(sender, last.to_string()).await?;
    }
    send_data(sender, "[DONE]".to_owned()).await
}
