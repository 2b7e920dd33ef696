//! Requests with retries.
//!
//! A [`Client`] posts a request and returns the [`Reply`]. Temporary failures (no connection, a timeout, an
//! invalid reply, status 408, 409, 429 or 5xx) are retried after the wait that the server requests, or after
//! waits that double and have a random part. Other refusals are [`Failure`]s with the server's message.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, Url, redirect};
use serde_json::Value;
use tokio::runtime::Builder;

use crate::connection::{is_refused, root_cause};
use crate::error::RemoteError;
use crate::openai::endpoint::Endpoint;
use crate::openai::request::{RequestConfig, Retries};
use crate::openai::response::{Reply, ServerError};

/// The maximum size of a reply in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The maximum duration of connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The maximum mean wait that is not requested by the server.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The longest wait that a server can ask for.
const MAX_REQUESTED: Duration = Duration::from_secs(300);

/// The maximum characters of a server's message in errors.
const MAX_CHARS: usize = 300;

/// Why a request failed for good.
#[derive(Debug)]
pub(super) enum Failure {
    /// Temporary failures, more than the allowed retries.
    Temporary(String),
    /// The server refuses this request.
    Request(String),
    /// The server refuses every request or cannot be reached.
    Server(RemoteError),
}

/// Why one attempt failed.
enum AttemptFailure {
    /// Temporary, with the wait that the server requests.
    Temporary { reason: String, wait: Option<Duration> },
    /// No connection, possibly temporary.
    NoConnection(String),
    /// The chat exceeds the model's context.
    TooLong,
    /// Not temporary.
    Final(Failure),
}

/// An HTTP client for one endpoint.
pub(super) struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    request_timeout: Duration,
    retries: Retries,
    /// Whether the server has ever replied, including with errors.
    has_replied: AtomicBool,
}

impl Client {
    /// A client with the timeouts and retries of `config`.
    pub(super) fn new(endpoint: Endpoint, config: &RequestConfig) -> Result<Client, RemoteError> {
        let RequestConfig { request_timeout, retries, .. } = *config;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("webshop/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the key to another address.
            .redirect(redirect::Policy::none())
            .timeout(request_timeout)
            .connect_timeout(CONNECT_LIMIT);
        if is_this_machine(&endpoint.url) {
            builder = builder.no_proxy();
        }
        match builder.build() {
            Ok(http) => {
                Ok(Client { http, endpoint, request_timeout, retries, has_replied: AtomicBool::new(false) })
            }
            Err(error) => Err(RemoteError::Endpoint { url: endpoint.url.into(), reason: root_cause(&error) }),
        }
    }

    /// An error about the whole endpoint.
    pub(super) fn refusal(&self, reason: String) -> RemoteError {
        RemoteError::Endpoint { url: self.endpoint.url().to_owned(), reason }
    }

    /// Runs `requests` to completion.
    pub(super) fn block_on<T>(
        &self,
        requests: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        // One thread suffices: it only waits for the server.
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| self.refusal(error.to_string()))?.block_on(requests)
    }

    /// Posts `body` until there is a reply; `jitter` draws the random part of waits. `None` if the chat
    /// exceeds the model's context.
    pub(super) async fn complete(
        &self,
        body: &Value,
        mut jitter: ChaCha8Rng,
    ) -> Result<Option<Reply>, Failure> {
        let mut n_failed = 0;
        loop {
            let (reason, requested_wait, was_reached) = match self.attempt(body).await {
                Ok(reply) => return Ok(Some(reply)),
                Err(AttemptFailure::TooLong) => return Ok(None),
                Err(AttemptFailure::Final(refusal)) => return Err(refusal),
                Err(AttemptFailure::Temporary { reason, wait }) => (reason, wait, true),
                Err(AttemptFailure::NoConnection(reason)) => {
                    (reason, None, self.has_replied.load(Ordering::Relaxed))
                }
            };
            if n_failed == self.retries.per_request {
                // A server that never replied will not reply to other episodes either.
                return Err(match was_reached {
                    true => Failure::Temporary(reason),
                    false => Failure::Server(self.refusal(reason)),
                });
            }
            let wait = requested_wait.unwrap_or_else(|| wait(self.retries.first_wait, n_failed, &mut jitter));
            tokio::time::sleep(wait).await;
            n_failed += 1;
        }
    }

    async fn attempt(&self, body: &Value) -> Result<Reply, AttemptFailure> {
        let response = self.request(body).send().await.map_err(|error| self.failure(&error))?;
        self.has_replied.store(true, Ordering::Relaxed);
        let status = response.status();
        let wait = requested_wait(&response);
        let text = self.text(response).await?;
        if status.is_success() {
            return Reply::read(&text).map_err(|reason| {
                let reason = format!("{reason}: `{}`", self.excerpt(&text));
                AttemptFailure::Temporary { reason, wait: None }
            });
        }
        let error = ServerError::read(&text);
        let reason = match error.message.as_deref().unwrap_or(&text).trim() {
            "" => format!("HTTP status {status}"),
            message => format!("HTTP status {status}: {}", self.excerpt(message)),
        };
        Err(match status.as_u16() {
            408 | 409 | 429 | 500..=599 => AttemptFailure::Temporary { reason, wait },
            400 | 413 if error.is_context_exceeded() => AttemptFailure::TooLong,
            300..=399 | 401 | 403 | 404 | 405 => AttemptFailure::Final(Failure::Server(self.refusal(reason))),
            _ => AttemptFailure::Final(Failure::Request(reason)),
        })
    }

    fn request(&self, body: &Value) -> RequestBuilder {
        let request = self.http.post(self.endpoint.url.clone()).header(CONTENT_TYPE, "application/json");
        let request = request.body(body.to_string());
        match &self.endpoint.key {
            None => request,
            Some(key) => {
                let mut key =
                    HeaderValue::from_str(&format!("Bearer {key}")).expect("keys are visible ASCII");
                key.set_sensitive(true);
                request.header(AUTHORIZATION, key)
            }
        }
    }

    async fn text(&self, mut response: Response) -> Result<String, AttemptFailure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                let reason = format!("a reply of more than {MAX_BYTES} bytes");
                return Err(AttemptFailure::Final(Failure::Request(reason)));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The failure of a request without a complete reply.
    fn failure(&self, error: &reqwest::Error) -> AttemptFailure {
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => AttemptFailure::NoConnection(format!(
                "no connection within {} s",
                CONNECT_LIMIT.as_secs_f64()
            )),
            (true, false) if is_refused(error) => AttemptFailure::NoConnection(format!(
                "{}; check that the server is running",
                root_cause(error)
            )),
            (true, false) => AttemptFailure::NoConnection(root_cause(error)),
            (false, true) => AttemptFailure::Temporary {
                reason: format!("no reply within {} s", self.request_timeout.as_secs_f64()),
                wait: None,
            },
            (false, false) => AttemptFailure::Temporary { reason: root_cause(error), wait: None },
        }
    }

    /// A server's message on one line, shortened and without the key, which some servers repeat.
    fn excerpt(&self, text: &str) -> String {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = match &self.endpoint.key {
            Some(key) => words.replace(key.as_str(), "…"),
            None => words,
        };
        match words.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The wait after `n_failed` failures: 0.5 to 1.5 times a mean that doubles.
fn wait(first: Duration, n_failed: u32, jitter: &mut ChaCha8Rng) -> Duration {
    let mean = first.saturating_mul(1 << n_failed.min(20)).min(MAX_WAIT.max(first));
    let half = mean / 2;
    half + mean.mul_f64(jitter.random::<f64>())
}

/// The wait that the server requests in seconds, at most [`MAX_REQUESTED`]. A wait of 0 and the other form of the header, a
/// date, are ignored.
fn requested_wait(response: &Response) -> Option<Duration> {
    let seconds: f64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    let wait = Duration::try_from_secs_f64(seconds).ok()?.min(MAX_REQUESTED);
    Some(wait).filter(|wait| !wait.is_zero())
}

/// Whether the server runs on this machine, where proxies do not apply.
fn is_this_machine(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use webshop_products::{Purpose, Seed};

    use super::*;

    #[test]
    fn waits_double_and_vary_by_coordinates() {
        let first = Duration::from_secs(1);
        let wait = |n_failed, goal| wait(first, n_failed, &mut Seed(0).rng(Purpose::new("backoff"), &[goal]));
        for goal in 0..50 {
            for (n_failed, mean) in [(0, 1), (1, 2), (3, 8), (6, 60), (40, 60)] {
                let (mean, waited) = (f64::from(mean), wait(n_failed, goal).as_secs_f64());
                assert!((0.5 * mean..1.5 * mean).contains(&waited), "{n_failed}: {waited}");
            }
        }
        assert_eq!(wait(2, 7), wait(2, 7));
        assert_ne!(wait(2, 7), wait(2, 8));
    }
}
