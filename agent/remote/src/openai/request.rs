//! Requests to a model server.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use webshop_agent::{PromptFormat, PromptProvenance, Sampling};
use webshop_lm::chat::Message;
use webshop_products::{Purpose, Seed};

/// The seeds of requests.
const REQUEST: Purpose = Purpose::new("request");
/// The random part of waits between retries.
const BACKOFF: Purpose = Purpose::new("backoff");

/// The content of requests, and when they are repeated.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// The model's name on the server.
    pub model: String,
    /// The prompt format.
    pub prompt_format: PromptFormat,
    /// How completions are sampled.
    pub sampling: Sampling,
    /// Further fields of each request; null removes a field.
    pub extra_body: Map<String, Value>,
    /// The number of concurrent requests: one for each episode or single-step prompt.
    pub concurrency: usize,
    /// The maximum duration of a request.
    pub request_timeout: Duration,
    /// Retries of failed requests.
    pub retries: Retries,
}

/// Retries of requests after temporary failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// The maximum number of retries of a request.
    pub per_request: u32,
    /// The mean wait before the first retry. It doubles with each retry, up to a minute. A wait requested by
    /// the server replaces it.
    pub first_wait: Duration,
}

impl RequestConfig {
    /// The prompt format and sampling, as recorded with each episode.
    pub(super) fn prompt(&self) -> PromptProvenance {
        PromptProvenance {
            prompt_format: self.prompt_format,
            version: self.prompt_format.version().into(),
            model: Some(Arc::from(self.model.as_str())),
            sampling: Some(self.sampling),
        }
    }

    /// The body of the request for the completion at these coordinates.
    pub(super) fn body(&self, messages: &[Message], coordinates: &[u64]) -> Value {
        // Servers take seeds of various widths; all take 31 bits.
        let seed = self.rng(REQUEST, coordinates).next_u32() >> 1;
        let mut body = Map::new();
        let mut set = |field: &str, value: Value| body.insert(field.to_owned(), value);
        set("model", json!(self.model));
        set("messages", messages.iter().map(Message::to_server).collect());
        set("temperature", json!(self.sampling.temperature));
        set("top_p", json!(self.sampling.top_p));
        set("max_tokens", json!(self.sampling.max_tokens));
        set("seed", json!(seed));
        if let Some(tools) = self.prompt_format.tools() {
            set("tools", Value::Array(tools));
        }
        body.extend(self.extra_body.clone());
        body.retain(|_, value| !value.is_null());
        Value::Object(body)
    }

    /// The generator of the waits of the request at these coordinates.
    pub(super) fn jitter(&self, coordinates: &[u64]) -> ChaCha8Rng {
        self.rng(BACKOFF, coordinates)
    }

    fn rng(&self, purpose: Purpose, coordinates: &[u64]) -> ChaCha8Rng {
        Seed(self.sampling.seed).rng(purpose, coordinates)
    }
}
