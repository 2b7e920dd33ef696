//! Flags of a model behind an OpenAI-compatible server: where it is, and how requests are sent.

use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::{Map, Value};
use webshop_agent::{PromptFormat, Sampling};
use webshop_remote::{Endpoint, RequestConfig, Retries};

use super::episodes::SamplingArgs;

/// Default of the largest number of tokens of a completion; local chat models have the same.
const DEFAULT_MAX_TOKENS: u32 = 256;

/// The server, the model's name, and how requests are sent.
#[derive(clap::Args)]
#[command(next_help_heading = "Models behind an OpenAI-compatible server")]
pub(crate) struct ServerArgs {
    /// Base address of a server with OpenAI's chat completions API, such as `http://localhost:8000/v1`
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,
    /// Name of the model at the server
    #[arg(long, value_name = "NAME", requires = "base_url")]
    model: Option<String>,
    /// Environment variable that holds the API key; no key is sent if it is not set
    #[arg(long, value_name = "VAR", default_value = "OPENAI_API_KEY", requires = "base_url")]
    api_key_env: String,
    /// Additional fields of each request, as one JSON object; a field set to null is not sent. Recordings do
    /// not contain them
    #[arg(long, value_name = "JSON", value_parser = json_object, requires = "base_url")]
    extra_body: Option<Map<String, Value>>,
    /// Number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = 16, requires = "base_url",
          value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// Seconds after which a request without a response fails
    #[arg(long, value_name = "S", default_value = "300", value_parser = positive_seconds, requires = "base_url")]
    request_timeout: Duration,
    /// Number of retries of a request after a transient failure, such as a timeout or status 429 or 5xx
    #[arg(long, value_name = "N", default_value_t = 5, requires = "base_url")]
    request_retries: u32,
    /// Mean seconds before the first retry of a request; doubled with each further retry
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = seconds, requires = "base_url")]
    backoff: Duration,
}

impl ServerArgs {
    /// The server and the configuration of requests; `None` without `--base-url`.
    pub(crate) fn requests(
        &self,
        sampling: &SamplingArgs,
        prompt_format: PromptFormat,
        seed: u64,
    ) -> anyhow::Result<Option<(Endpoint, RequestConfig)>> {
        let (Some(base), Some(model)) = (&self.base_url, &self.model) else { return Ok(None) };
        ensure!(
            prompt_format.is_chat(),
            "the prompt format `{prompt_format}` has no chats, which a model behind a server needs; give another `--prompt-format`"
        );
        ensure!(
            sampling.max_context.is_none(),
            "the context of a model behind a server is the server's; leave out `--max-context`"
        );
        let temperature = sampling.temperature.unwrap_or(1.0);
        ensure!(
            temperature >= 0.0 && temperature.is_finite(),
            "`--temperature` must be a number of at least 0"
        );
        let top_p = sampling.top_p.unwrap_or(1.0);
        ensure!(top_p > 0.0 && top_p <= 1.0, "`--top-p` must be above 0 and at most 1");
        let endpoint = Endpoint::parse(base, self.key()?)?;
        let max_tokens = sampling.max_turn_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
        let config = RequestConfig {
            model: model.clone(),
            prompt_format,
            sampling: Sampling { temperature, top_p, max_tokens, seed },
            extra_body: self.extra_body.clone().unwrap_or_default(),
            concurrency: usize::from(self.concurrency),
            request_timeout: self.request_timeout,
            retries: Retries { per_request: self.request_retries, first_wait: self.backoff },
        };
        Ok(Some((endpoint, config)))
    }

    /// The API key. It has no flag, because lists of processes show flags.
    fn key(&self) -> anyhow::Result<Option<String>> {
        match std::env::var(&self.api_key_env) {
            Ok(key) => Ok(Some(key).filter(|key| !key.is_empty())),
            Err(std::env::VarError::NotPresent) => Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                bail!("the API key in the environment variable `{}` is not valid UTF-8", self.api_key_env)
            }
        }
    }
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// Parses a number of seconds above 0, which may have a fraction.
pub(crate) fn positive_seconds(text: &str) -> Result<Duration, String> {
    let duration = seconds(text)?;
    if duration.is_zero() { Err("must be above 0".into()) } else { Ok(duration) }
}

/// Parses a number of seconds, which may have a fraction.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
