//! A model on a server as a policy.
//!
//! A [`RemotePolicy`] runs many episodes at once. It does not implement [`webshop_agent::Policy`], which
//! decides for all lanes together: every lane would wait for the slowest completion. A server batches
//! requests itself, so each episode sends its next request when it has the previous completion.
//!
//! A failed episode is reported with its reason; it is not recorded and does not count as reward 0. An
//! episode whose chat exceeds the model's context is truncated, as with local models.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use webshop_agent::{AgentError, Episode, PromptProvenance, Task};

use crate::error::RemoteError;
use crate::openai::client::Client;
use crate::openai::endpoint::Endpoint;
use crate::openai::episode::{EpisodeFailure, EpisodeRunner, FailedEpisode, RemoteConfig};

/// The interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(50);

/// The refusal of a rollout in which no first prompt fits.
const TOO_LONG: &str = "the first prompt of every episode and its completion exceed the context of the model; give a smaller \
                        `--max-turn-tokens`, or serve the model with a longer context";

/// The result of one task: its position and its episode.
type Outcome = (usize, Result<Episode, FailedEpisode>);

/// A model on a server as a policy.
#[derive(Clone, Debug)]
pub struct RemotePolicy {
    runner: Arc<EpisodeRunner>,
}

impl RemotePolicy {
    /// A policy for the model at `endpoint`. Sends nothing.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub fn new(endpoint: Endpoint, config: RemoteConfig) -> Result<RemotePolicy, RemoteError> {
        let client = Client::new(endpoint, &config.request)?;
        Ok(RemotePolicy { runner: Arc::new(EpisodeRunner { client, config }) })
    }

    /// The prompt format and sampling, as recorded with each episode.
    pub fn prompt(&self) -> PromptProvenance {
        self.runner.config.request.prompt()
    }

    /// Actions after which an episode is truncated.
    pub fn max_steps(&self) -> u32 {
        self.runner.config.max_steps
    }

    /// Runs an episode for each task. `ended` is called with the task's number and its result when an episode
    /// ends, in any order. When `stop` becomes true, running episodes are abandoned.
    ///
    /// Completions depend on the server; requests depend only on the tasks and the seed.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the key, the model or the address; if no first prompt fits into the
    /// context of the model; if a task has a prefix, which is not supported; and errors of `ended`.
    pub fn run(
        &self,
        tasks: &[(usize, Task)],
        stop: &AtomicBool,
        ended: &mut dyn FnMut(usize, Result<Episode, FailedEpisode>) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        if let Some(prefix) = tasks.iter().find_map(|(_, task)| task.prefix.as_ref()) {
            let error = AgentError::Prefix {
                turn: prefix.turns().len(),
                goal: prefix.coordinates().goal.0,
                reason: "remote policies run whole episodes only".into(),
            };
            return Err(error.into());
        }
        self.runner.client.block_on(self.run_all(tasks, stop, &mut |(place, result)| ended(place, result)))
    }

    async fn run_all(
        &self,
        tasks: &[(usize, Task)],
        stop: &AtomicBool,
        ended: &mut dyn FnMut(Outcome) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let mut waiting = tasks.iter().cloned();
        let mut running = JoinSet::new();
        // Episodes whose first prompt does not fit are results like others once one fits.
        let (mut has_fitted, mut without_turns) = (false, Vec::new());
        while !stop.load(Ordering::Relaxed) {
            while running.len() < self.runner.config.request.concurrency.max(1)
                && let Some((place, task)) = waiting.next()
            {
                let runner = self.runner.clone();
                running.spawn(async move { (place, runner.run(&task).await) });
            }
            let Ok(next) = timeout(POLL, running.join_next()).await else { continue };
            let Some(joined) = next else { break };
            let (place, result) = joined.expect("no episode is aborted, and none panics");
            match result {
                Ok(episode) if episode.turns.is_empty() && !has_fitted => {
                    without_turns.push((place, Ok(episode)))
                }
                Ok(episode) => {
                    has_fitted = true;
                    without_turns.drain(..).try_for_each(&mut *ended)?;
                    ended((place, Ok(episode)))?;
                }
                Err(EpisodeFailure::One(failed)) => ended((place, Err(failed)))?,
                Err(EpisodeFailure::All(error)) => return Err(error),
            }
        }
        match without_turns.is_empty() || stop.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(self.runner.client.refusal(TOO_LONG.into())),
        }
    }
}
