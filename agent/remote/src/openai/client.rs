//! Asking a model server, once and until it answers.
//!
//! A [`Client`] posts a request and reads the [`Reply`]. What may pass by itself (no connection, no answer in time, a
//! broken answer, status 408, 409, 429 or 5xx) is tried again after a while: as long as the server says, or with waits
//! that double and vary, by draws whose address the caller gives. Other refusals are [`Refusal`]s at once, in the
//! server's own words.

use crate::error::RemoteError;
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

use crate::openai::response::{Reply, ServerError};
use crate::openai::policy::{RequestConfig, Endpoint, Retries};
use crate::connection::{cause, is_refused};

/// The most bytes of an answer.
const MAX_BYTES: usize = 16 << 20;

/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The longest mean wait that is of our own choice.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The most characters that are told of what a server says.
const MAX_CHARS: usize = 300;

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It failed as often as it was tried.
    Failed(String),
    /// The server does not answer this request, however often it is asked.
    Refused(String),
    /// The server would answer no request at all.
    Closed(RemoteError),
}

/// Why there is no reply this time.
enum Failure {
    /// It may pass; the server may have said when.
    Passing { reason: String, wait: Option<Duration> },
    /// It may pass, but nobody was reached.
    NoConnection(String),
    /// It will not pass: the chat is longer than the model can read.
    TooLong,
    /// It will not pass.
    Lasting(Refusal),
}

/// Who asks.
pub(super) struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    request_timeout: Duration,
    retries: Retries,
    /// Whether anybody has answered so far, be it with an error.
    has_answered: AtomicBool,
}

impl Client {
    /// A client that waits for answers and repeats requests as `config` says.
    pub fn new(endpoint: Endpoint, config: &RequestConfig) -> Result<Client, RemoteError> {
        let RequestConfig { request_timeout, retries, .. } = *config;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("webshop/", env!("CARGO_PKG_VERSION")))
            // A key is for the address that it was given for.
            .redirect(redirect::Policy::none())
            .timeout(request_timeout)
            .connect_timeout(CONNECT_LIMIT);
        if is_this_machine(&endpoint.url) {
            builder = builder.no_proxy();
        }
        match builder.build() {
            Ok(http) => {
                Ok(Client { http, endpoint, request_timeout, retries, has_answered: AtomicBool::new(false) })
            }
            Err(error) => Err(RemoteError::Endpoint { url: endpoint.url.into(), reason: cause(&error) }),
        }
    }

    /// An error about the whole endpoint.
    pub fn refusal(&self, reason: String) -> RemoteError {
        RemoteError::Endpoint { url: self.endpoint.url().to_owned(), reason }
    }

    /// Waits until all that is asked in `requests` has come to its end.
    pub fn wait_for<T>(
        &self,
        requests: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        // One thread is plenty: it waits for the server.
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| self.refusal(error.to_string()))?.block_on(requests)
    }

    /// Posts `body` until there is a reply, or no hope for one; `jitter` says how waits vary. There is none to a chat that
    /// is longer than the model can read.
    pub async fn ask(&self, body: &Value, mut jitter: ChaCha8Rng) -> Result<Option<Reply>, Refusal> {
        let mut n_failed = 0;
        loop {
            let (reason, wait_asked_for, was_reached) = match self.ask_once(body).await {
                Ok(reply) => return Ok(Some(reply)),
                Err(Failure::TooLong) => return Ok(None),
                Err(Failure::Lasting(refusal)) => return Err(refusal),
                Err(Failure::Passing { reason, wait }) => (reason, wait, true),
                Err(Failure::NoConnection(reason)) => {
                    (reason, None, self.has_answered.load(Ordering::Relaxed))
                }
            };
            if n_failed == self.retries.per_request {
                // Where nobody ever was, nobody will be for the other episodes.
                return Err(match was_reached {
                    true => Refusal::Failed(reason),
                    false => Refusal::Closed(self.refusal(reason)),
                });
            }
            let wait = wait_asked_for.unwrap_or_else(|| wait(self.retries.first_wait, n_failed, &mut jitter));
            tokio::time::sleep(wait).await;
            n_failed += 1;
        }
    }

    async fn ask_once(&self, body: &Value) -> Result<Reply, Failure> {
        let response = self.request(body).send().await.map_err(|error| self.failure(&error))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let status = response.status();
        let wait = wait_asked_for(&response);
        let text = self.text(response).await?;
        if status.is_success() {
            return Reply::read(&text).map_err(|reason| {
                let reason = format!("{reason}: `{}`", self.told(&text));
                Failure::Passing { reason, wait: None }
            });
        }
        let said = ServerError::read(&text);
        let reason = match said.message.as_deref().unwrap_or(&text).trim() {
            "" => format!("HTTP status {status}"),
            message => format!("HTTP status {status}: {}", self.told(message)),
        };
        Err(match status.as_u16() {
            408 | 409 | 429 | 500..=599 => Failure::Passing { reason, wait },
            400 | 413 if said.is_about_length() => Failure::TooLong,
            401 | 403 | 404 => Failure::Lasting(Refusal::Closed(self.refusal(reason))),
            _ => Failure::Lasting(Refusal::Refused(reason)),
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

    async fn text(&self, mut response: Response) -> Result<String, Failure> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                let reason = format!("an answer of more than {MAX_BYTES} bytes");
                return Err(Failure::Lasting(Refusal::Refused(reason)));
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Why there is no whole answer.
    fn failure(&self, error: &reqwest::Error) -> Failure {
        match (error.is_connect(), error.is_timeout()) {
            (true, true) => {
                Failure::NoConnection(format!("no connection within {} s", CONNECT_LIMIT.as_secs_f64()))
            }
            (true, false) if is_refused(error) => {
                Failure::NoConnection(format!("{}; is the server running", cause(error)))
            }
            (true, false) => Failure::NoConnection(cause(error)),
            (false, true) => Failure::Passing {
                reason: format!("no answer within {} s", self.request_timeout.as_secs_f64()),
                wait: None,
            },
            (false, false) => Failure::Passing { reason: cause(error), wait: None },
        }
    }

    /// The server's words on one line: not too many, and without the key, which some servers repeat.
    fn told(&self, text: &str) -> String {
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

/// How long to wait after so many failures: half to one and a half of a mean that doubles.
fn wait(first: Duration, n_failed: u32, jitter: &mut ChaCha8Rng) -> Duration {
    let mean = first.saturating_mul(1 << n_failed.min(20)).min(MAX_WAIT.max(first));
    let half = mean / 2;
    half + mean.mul_f64(jitter.random::<f64>())
}

/// How long the server asks to wait, where it says so in seconds; its other form, a date, is not read.
fn wait_asked_for(response: &Response) -> Option<Duration> {
    let seconds: f64 = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Whether the server runs here, where no proxy leads.
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
    fn waits_double_and_vary_by_address() {
        let first = Duration::from_secs(1);
        let wait = |n_failed, goal| wait(first, n_failed, &mut Seed(0).rng(Purpose::Backoff, &[goal]));
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
