//! How a model behind a server is asked: what every request says, and when one is repeated.
//!
//! An [`RequestConfig`] makes the body of a request out of messages and the address of the answer, from which the request's seed
//! follows. It sends nothing.

use std::sync::Arc;
use std::time::Duration;

use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use webshop_products::{Purpose, Seed};

use webshop_lm::Message;
use webshop_agent::PromptFormat;
use webshop_agent::{PromptStamp, Sampling};

/// How a model is asked.
#[derive(Clone, Debug)]
pub struct RequestConfig {
    /// By which name the server knows the model.
    pub model: String,
    /// How it is spoken to.
    pub prompt_format: PromptFormat,
    /// How its answers are drawn.
    pub sampling: Sampling,
    /// Further fields of each request; null terminates one of ours out.
    pub more: Map<String, Value>,
    /// Answers that are waited for at one time: one of each episode or question.
    pub concurrency: usize,
    /// How long to wait for an answer.
    pub request_timeout: Duration,
    /// What is tried again, and when.
    pub retries: Retries,
}

/// When a request is repeated that failed for the time being.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// How often.
    pub per_request: u32,
    /// The mean wait before the first repetition; it doubles with each, up to a minute. Where the server says how long to
    /// wait, that counts.
    pub first_wait: Duration,
}

impl RequestConfig {
    /// How the model is spoken to, as every record says it.
    pub(super) fn prompt(&self) -> PromptStamp {
        PromptStamp {
            prompt_format: self.prompt_format,
            version: self.prompt_format.version().into(),
            model: Some(Arc::from(self.model.as_str())),
            sampling: Some(self.sampling),
        }
    }

    /// What is posted for the answer at this address.
    pub(super) fn request(&self, messages: &[Message], at: &[u64]) -> Value {
        // Servers take seeds of various widths; all take one of 31 bits.
        let seed = self.draws(Purpose::Request, at).next_u32() >> 1;
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
        body.extend(self.more.clone());
        body.retain(|_, value| !value.is_null());
        Value::Object(body)
    }

    /// How waits at this address vary.
    pub(super) fn jitter(&self, at: &[u64]) -> ChaCha8Rng {
        self.draws(Purpose::Backoff, at)
    }

    fn draws(&self, purpose: Purpose, at: &[u64]) -> ChaCha8Rng {
        Seed(self.sampling.seed).rng(purpose, at)
    }
}
