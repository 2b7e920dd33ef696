//! One episode with a model behind a server.
//!
//! [`Shopping`] is what all episodes share. An episode tells the model page after page, as its prompt format has it, and does what
//! the answers mean; one that fails for reasons that may pass is begun anew.

use crate::error::RemoteError;
use tokio::time::timeout;

use crate::openai::client::{Client, Refusal};
use crate::openai::response::Reply;
use crate::openai::policy::{FailedEpisode, REMOTE, RemoteConfig};
use webshop_agent::Conversation;
use webshop_agent::Episode;
use webshop_agent::rollout::lane::Lane;
use webshop_agent::Decision;
use webshop_agent::Task;

/// What the episodes share.
#[derive(Debug)]
pub(super) struct Shopping {
    pub client: Client,
    pub config: RemoteConfig,
}

/// Why an episode came to nothing.
#[derive(Debug)]
pub(super) enum EpisodeFailure {
    /// This one did.
    Alone(FailedEpisode),
    /// All would.
    All(RemoteError),
}

impl Shopping {
    /// Makes an episode, and begins it anew where that may help.
    pub async fn shop_at_last(&self, task: &Task) -> Result<Episode, EpisodeFailure> {
        let limit = self.config.episode_timeout;
        let mut attempts = 0;
        loop {
            let outcome = timeout(limit, self.shop(task, attempts)).await.unwrap_or_else(|_| {
                Err(Refusal::Failed(format!("the episode had not ended after {} s", limit.as_secs_f64())))
            });
            attempts += 1;
            let reason = match outcome {
                Ok(episode) => return Ok(episode),
                Err(Refusal::Closed(error)) => return Err(EpisodeFailure::All(error)),
                Err(Refusal::Failed(_)) if attempts <= self.config.episode_retries => continue,
                Err(Refusal::Failed(reason) | Refusal::Refused(reason)) => reason,
            };
            return Err(EpisodeFailure::Alone(FailedEpisode { coordinates: task.coordinates, reason, attempts }));
        }
    }

    async fn shop(&self, task: &Task, attempt: u32) -> Result<Episode, Refusal> {
        let RemoteConfig { request, max_steps, .. } = &self.config;
        let (at, max_steps) = (task.coordinates, *max_steps);
        let instruction = task.shop.goals().get(at.goal).instruction.clone();
        let mut conversation = Conversation::new(request.prompt_format, instruction, max_steps);
        let mut episode = Lane::new(task, max_steps, REMOTE, Some(request.prompt()));
        while !episode.has_ended() {
            let view = episode.view(0);
            let turn = view.turn;
            conversation.see(view.page, view.noop.copied());
            // An episode that is begun anew asks the same, after other waits.
            let turn = [at.step, at.shop, u64::from(at.goal.0), at.sample, turn as u64];
            let jitter = request.jitter(&[&turn[..], &[u64::from(attempt)]].concat());
            match self.client.ask(&request.request(&conversation.messages(), &turn), jitter).await? {
                Some(reply) => answer(&mut episode, &mut conversation, reply),
                None => episode.take(Decision::Stop),
            }
        }
        Ok(episode.into_episode())
    }
}

/// Does what the model says.
fn answer(episode: &mut Lane, conversation: &mut Conversation, reply: Reply) {
    let prompt_format = conversation.prompt_format();
    let stop = reply.stop;
    let view = episode.view(0);
    let message = reply.message(prompt_format, view.turn);
    let written = prompt_format.written(&message);
    let parsed = conversation.say(message, view.page);
    episode.take(Decision { stop, ..Decision::completed(written, parsed, None) });
}
