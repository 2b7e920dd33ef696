//! Single-step completions from a model server.

use std::sync::Arc;

use tokio::task::JoinSet;
use webshop_agent::next_action::Example;
use webshop_agent::{AgentError, PromptFormat, PromptProvenance};

use crate::error::RemoteError;
use crate::openai::client::{Client, Failure};
use crate::openai::endpoint::Endpoint;
use crate::openai::request::RequestConfig;

/// Completes single-step prompts in a format of Shop-R1.
///
/// Like [`webshop_agent::SingleStepEncoder`], it drops the oldest page of a prompt that is too long for the
/// model, as often as the format can. The first example without a completion is an error, because figures
/// without it would be about other examples.
#[derive(Clone, Debug)]
pub struct RemoteSingleStepSampler {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    config: RequestConfig,
}

impl RemoteSingleStepSampler {
    /// A sampler for the model at `endpoint`. Sends nothing.
    ///
    /// # Errors
    /// If the prompt format is not one of Shop-R1, or the HTTP client cannot be created.
    pub fn new(endpoint: Endpoint, config: RequestConfig) -> Result<Self, RemoteError> {
        if !config.prompt_format.is_shop_r1() {
            return Err(unsupported(config.prompt_format));
        }
        let client = Client::new(endpoint, &config)?;
        Ok(Self { shared: Arc::new(Shared { client, config }) })
    }

    /// The prompt format and sampling.
    pub fn prompt(&self) -> PromptProvenance {
        self.shared.config.prompt()
    }

    /// The completion of each example, in the order of the examples; `None` if the prompt is too long for the
    /// model even without past pages. `progress` gets the number of new completions.
    ///
    /// Requests depend only on the examples, their positions and the seed.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the key, the model or the address;
    /// [`RemoteError::NoCompletion`] if an example fails for good.
    pub fn sample(
        &self,
        examples: &[Example],
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Option<String>>, RemoteError> {
        self.shared.client.block_on(self.sample_all(examples, progress))
    }

    async fn sample_all(
        &self,
        examples: &[Example],
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Option<String>>, RemoteError> {
        let mut completions = vec![None; examples.len()];
        let mut waiting = examples.iter().cloned().enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < self.shared.config.concurrency.max(1)
                && let Some((place, example)) = waiting.next()
            {
                let shared = self.shared.clone();
                running.spawn(async move { (place, shared.complete(place, &example).await) });
            }
            let Some(joined) = running.join_next().await else { return Ok(completions) };
            let (place, completion) = joined.expect("no request is aborted, and none panics");
            completions[place] = completion?;
            progress(1);
        }
    }
}

impl Shared {
    async fn complete(&self, place: usize, example: &Example) -> Result<Option<String>, RemoteError> {
        let prompt_format = self.config.prompt_format;
        for n_dropped in 0..=prompt_format.n_droppable(example.context.len()) {
            let messages = prompt_format
                .single_step_messages(example, n_dropped, false)
                .ok_or_else(|| unsupported(prompt_format))?;
            let body = self.config.body(&messages, &[place as u64]);
            let jitter = self.config.jitter(&[place as u64, n_dropped as u64]);
            match self.client.complete(&body, jitter).await {
                Ok(Some(reply)) => return Ok(Some(reply.message(prompt_format, 0).content)),
                Ok(None) => (),
                Err(Failure::Server(error)) => return Err(error),
                Err(Failure::Temporary(reason) | Failure::Request(reason)) => {
                    return Err(RemoteError::NoCompletion { example: example.id.clone(), reason });
                }
            }
        }
        Ok(None)
    }
}

fn unsupported(prompt_format: PromptFormat) -> RemoteError {
    AgentError::SingleSteps { prompt_format: prompt_format.name() }.into()
}
