//! One episode with a model on a server.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use webshop_agent::{Conversation, Decision, Episode, EpisodeCoordinates, Lane, PromptFormat, Task};

use crate::error::RemoteError;
use crate::openai::client::{Client, Failure};
use crate::openai::request::RequestConfig;
use crate::openai::response::Reply;

/// The policy's name.
pub const REMOTE: &str = "remote";

/// Requests and limits of a remote rollout.
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// The requests.
    pub request: RequestConfig,
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
    /// The maximum duration of an episode, waits included.
    pub episode_timeout: Duration,
    /// How often a failed episode is restarted, beside the retries of its requests.
    pub episode_retries: u32,
}

/// An episode that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedEpisode {
    /// Its coordinates.
    pub coordinates: EpisodeCoordinates,
    /// The reason of the last attempt.
    pub reason: String,
    /// The number of attempts.
    pub attempts: u32,
}

/// Runs episodes; shared by all of them.
#[derive(Debug)]
pub(super) struct EpisodeRunner {
    pub(super) client: Client,
    pub(super) config: RemoteConfig,
}

/// Why there is no episode.
#[derive(Debug)]
pub(super) enum EpisodeFailure {
    /// This episode failed.
    One(FailedEpisode),
    /// All episodes would fail.
    All(RemoteError),
}

impl EpisodeRunner {
    /// Runs an episode, and restarts it after failures that may be temporary.
    pub(super) async fn run(&self, task: &Task) -> Result<Episode, EpisodeFailure> {
        let limit = self.config.episode_timeout;
        let mut attempts = 0;
        loop {
            let outcome = timeout(limit, self.run_once(task, attempts)).await.unwrap_or_else(|_| {
                Err(Failure::Temporary(format!("the episode was not over after {} s", limit.as_secs_f64())))
            });
            attempts += 1;
            let reason = match outcome {
                Ok(episode) => return Ok(episode),
                Err(Failure::Server(error)) => return Err(EpisodeFailure::All(error)),
                Err(Failure::Temporary(_)) if attempts <= self.config.episode_retries => continue,
                Err(Failure::Temporary(reason) | Failure::Request(reason)) => reason,
            };
            let coordinates = task.coordinates;
            return Err(EpisodeFailure::One(FailedEpisode { coordinates, reason, attempts }));
        }
    }

    async fn run_once(&self, task: &Task, attempt: u32) -> Result<Episode, Failure> {
        let RemoteConfig { request, max_steps, .. } = &self.config;
        let (at, prompt_format) = (task.coordinates, request.prompt_format);
        let instruction = task.shop.goals().get(at.goal).instruction.clone();
        let mut conversation = Conversation::new(instruction, *max_steps);
        let mut lane = Lane::new(task, *max_steps, REMOTE, Some(request.prompt()));
        while !lane.is_over() {
            let view = lane.view(0);
            prompt_format.add_page(&mut conversation, view.page, view.noop);
            // A restarted episode sends the same requests, with other waits between retries.
            let turn = [at.step, at.shop, u64::from(at.goal.0), at.sample, view.turn as u64];
            let jitter = request.jitter(&[&turn[..], &[u64::from(attempt)]].concat());
            let body = request.body(&prompt_format.messages(&conversation), &turn);
            match self.client.complete(&body, jitter).await? {
                Some(reply) => step(&mut lane, &mut conversation, prompt_format, reply),
                None => lane.step(Decision::Stop),
            }
        }
        Ok(lane.into_episode())
    }
}

/// Takes the action of a completion.
fn step(lane: &mut Lane, conversation: &mut Conversation, prompt_format: PromptFormat, reply: Reply) {
    let stop_reason = reply.stop;
    let view = lane.view(0);
    let message = reply.message(prompt_format, view.turn);
    let text = prompt_format.completion_text(&message);
    let rules = view.shop.config().compat;
    let parsed = prompt_format.add_completion(conversation, message, view.page, rules);
    let mut decision = Decision::completed(text, parsed, None);
    if let Decision::Act { turn, .. } | Decision::Terminate { turn } = &mut decision {
        turn.stop = stop_reason;
    }
    lane.step(decision);
}
