//! Flags that name a model behind a server and say how it is asked, shared by the verbs that ask one.

use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::{Map, Value};
use webshop_agent::{AskConfig, Dialect, Endpoint, Retries, Sampling};

use crate::rollout::SpeechArgs;

/// Tokens of an answer, unless asked otherwise: as many as local models have in a chat.
const MAX_TOKENS: u32 = 256;

/// Where the model is, and how it is asked.
#[derive(clap::Args)]
#[command(next_help_heading = "Models behind a server")]
pub struct ServerArgs {
    /// A server with the interface of OpenAI's, such as `http://localhost:8000/v1`
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,
    /// The name by which the server knows the model
    #[arg(long, value_name = "NAME", requires = "base_url")]
    model: Option<String>,
    /// The environment variable that holds the key to the server, if it asks for one
    #[arg(long, value_name = "VAR", default_value = "OPENAI_API_KEY", requires = "base_url")]
    api_key_env: String,
    /// Share of the probability that tokens are drawn from
    #[arg(long, value_name = "P", default_value_t = 1.0, requires = "base_url")]
    top_p: f64,
    /// Further fields of each request, as one JSON object; null leaves out a field that would be sent. They are not on
    /// record
    #[arg(long, value_name = "JSON", value_parser = object, requires = "base_url")]
    body: Option<Map<String, Value>>,
    /// Answers that are waited for at one time
    #[arg(long, value_name = "N", default_value_t = 16, requires = "base_url", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "S", default_value = "300", value_parser = seconds, requires = "base_url")]
    answer_limit: Duration,
    /// How often a request is repeated that failed for the time being
    #[arg(long, value_name = "N", default_value_t = 5, requires = "base_url")]
    request_retries: u32,
    /// Seconds before the first repetition of a request, on average; they double with each
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds, requires = "base_url")]
    backoff: Duration,
}

impl ServerArgs {
    /// The server and how it is asked; `None` if none is named.
    pub fn asking(
        &self,
        speech: &SpeechArgs,
        dialect: Dialect,
        seed: u64,
    ) -> anyhow::Result<Option<(Endpoint, AskConfig)>> {
        let (Some(base), Some(model)) = (&self.base_url, &self.model) else { return Ok(None) };
        ensure!(speech.max_context.is_none(), "a server has its own limit; leave out `--max-context`");
        let temperature = speech.temperature.unwrap_or(1.0);
        ensure!(temperature >= 0.0 && temperature.is_finite(), "`--temperature` is a number from 0 up");
        ensure!(self.top_p > 0.0 && self.top_p <= 1.0, "`--top-p` is above 0 and at most 1");
        let endpoint = Endpoint::parse(base, self.key()?)?;
        let max_tokens = speech.max_turn_tokens.unwrap_or(MAX_TOKENS);
        let config = AskConfig {
            model: model.clone(),
            dialect,
            sampling: Sampling { temperature, top_p: self.top_p, max_tokens, seed },
            more: self.body.clone().unwrap_or_default(),
            concurrency: usize::from(self.concurrency),
            answer_limit: self.answer_limit,
            retries: Retries { of_request: self.request_retries, first_wait: self.backoff },
        };
        Ok(Some((endpoint, config)))
    }

    /// The key, which stands in no flag so that no list of processes shows it.
    fn key(&self) -> anyhow::Result<Option<String>> {
        match std::env::var(&self.api_key_env) {
            Ok(key) => Ok(Some(key).filter(|key| !key.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => bail!("the key in `{}` is no text", self.api_key_env),
        }
    }
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON object: {error}"))
}

/// A number of seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
