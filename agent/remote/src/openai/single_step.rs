//! Single steps, asked of a model behind a server.
//!
//! A [`RemoteSingleStepSampler`] asks about each [`Sample`] by itself, as [`webshop_agent::SingleStepSampler`] asks a model of our own: where the
//! chat is too long for the model, it is told again without its oldest page, as long as the prompt format can do without. Questions
//! are under way side by side, and answers stand in the order of the questions. It judges nothing, and gives up at the first
//! question that fails for good: a table without it would be about other steps.

use webshop_agent::AgentError;
use crate::error::RemoteError;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::openai::client::{Client, Refusal};
use crate::openai::policy::{RequestConfig, Endpoint};
use webshop_agent::PromptStamp;
use webshop_agent::next_action::Sample;

/// Asks a server about single steps in a prompt format of Shop-R1's.
#[derive(Clone, Debug)]
pub struct RemoteSingleStepSampler {
    request: Arc<Asking>,
}

/// What the questions share.
#[derive(Debug)]
struct Asking {
    client: Client,
    config: RequestConfig,
}

impl RemoteSingleStepSampler {
    /// Asks the model at `endpoint`. Nothing is sent yet.
    ///
    /// # Errors
    /// If the prompt format is not one of Shop-R1's, or no client can be made.
    pub fn new(endpoint: Endpoint, config: RequestConfig) -> Result<Self, RemoteError> {
        if !config.prompt_format.is_shop_r1() {
            return Err(AgentError::SingleSteps(config.prompt_format).into());
        }
        let client = Client::new(endpoint, &config)?;
        Ok(Self { request: Arc::new(Asking { client, config }) })
    }

    /// How the model is spoken to.
    pub fn prompt(&self) -> PromptStamp {
        self.request.config.prompt()
    }

    /// What the model answers at each step, in the order of the steps; `None` where the question is too long for it even
    /// without past pages. `ended` is told how many more answers have come.
    ///
    /// What is asked depends on the steps, their places and the seed alone.
    ///
    /// # Errors
    /// If nobody answers at the address or the server refuses key, model or address; [`RemoteError::NoCompletion`] if a question
    /// fails for good.
    pub fn answers(&self, steps: &[Sample], ended: &dyn Fn(u64)) -> Result<Vec<Option<String>>, RemoteError> {
        self.request.client.wait_for(self.answer_all(steps, ended))
    }

    async fn answer_all(
        &self,
        steps: &[Sample],
        ended: &dyn Fn(u64),
    ) -> Result<Vec<Option<String>>, RemoteError> {
        let mut answers = vec![None; steps.len()];
        let mut waiting = steps.iter().cloned().enumerate();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.request.config.concurrency.max(1)
                && let Some((place, step)) = waiting.next()
            {
                let request = self.request.clone();
                under_way.spawn(async move { (place, request.answer(place, &step).await) });
            }
            let Some(joined) = under_way.join_next().await else { return Ok(answers) };
            let (place, answer) = joined.expect("no question is aborted, and none panics");
            answers[place] = answer?;
            ended(1);
        }
    }
}

impl Asking {
    async fn answer(&self, place: usize, step: &Sample) -> Result<Option<String>, RemoteError> {
        let prompt_format = self.config.prompt_format;
        for n_dropped in 0..=prompt_format.n_droppable(step.context.len()) {
            let messages =
                prompt_format.question(step, n_dropped, false).ok_or(AgentError::SingleSteps(prompt_format))?;
            let request = self.config.request(&messages, &[place as u64]);
            let jitter = self.config.jitter(&[place as u64, n_dropped as u64]);
            match self.client.ask(&request, jitter).await {
                Ok(Some(reply)) => return Ok(Some(reply.message(prompt_format, 0).content)),
                Ok(None) => (),
                Err(Refusal::Closed(error)) => return Err(error),
                Err(Refusal::Failed(reason) | Refusal::Refused(reason)) => {
                    return Err(RemoteError::NoCompletion { step: step.id.clone(), reason });
                }
            }
        }
        Ok(None)
    }
}
