//! One trip with a model behind a server.
//!
//! [`Shopping`] is what all trips share. A trip tells the model page after page, as its dialect has it, and does what
//! the answers mean; one that fails for reasons that may pass is begun anew.

use std::sync::Arc;

use rand::RngCore;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use webshop_products::{Purpose, Seed};

use super::client::{Client, Refusal};
use super::reply::Reply;
use super::{FailedTrip, REMOTE, RemoteConfig};
use crate::dialogue::Dialogue;
use crate::episode::{Episode, EpisodeCoordinates, PromptStamp};
use crate::error::AgentError;
use crate::open_trip::OpenTrip;
use crate::policy::Move;
use crate::rollout::Task;

/// What the trips share.
#[derive(Debug)]
pub(super) struct Shopping {
    pub client: Client,
    pub config: RemoteConfig,
}

/// Why a trip came to nothing.
#[derive(Debug)]
pub(super) enum TripFailure {
    /// This one did.
    Alone(FailedTrip),
    /// All would.
    All(AgentError),
}

impl Shopping {
    /// How the model is spoken to.
    pub fn prompt(&self) -> PromptStamp {
        let RemoteConfig { dialect, model, sampling, .. } = &self.config;
        PromptStamp {
            dialect: *dialect,
            version: dialect.version().into(),
            model: Some(Arc::from(model.as_str())),
            sampling: Some(*sampling),
        }
    }

    /// Makes a trip, and begins it anew where that may help.
    pub async fn shop_at_last(&self, task: &Task) -> Result<Episode, TripFailure> {
        let limit = self.config.trip_limit;
        let mut attempts = 0;
        loop {
            let outcome = timeout(limit, self.shop(task, attempts)).await.unwrap_or_else(|_| {
                Err(Refusal::Failed(format!("the trip had not ended after {} s", limit.as_secs_f64())))
            });
            attempts += 1;
            let reason = match outcome {
                Ok(episode) => return Ok(episode),
                Err(Refusal::Closed(error)) => return Err(TripFailure::All(error)),
                Err(Refusal::Failed(_)) if attempts <= self.config.retries.of_trip => continue,
                Err(Refusal::Failed(reason) | Refusal::Refused(reason)) => reason,
            };
            return Err(TripFailure::Alone(FailedTrip { coordinates: task.coordinates, reason, attempts }));
        }
    }

    async fn shop(&self, task: &Task, attempt: u32) -> Result<Episode, Refusal> {
        let RemoteConfig { dialect, max_steps, .. } = self.config;
        let at = task.coordinates;
        let instruction = task.shop.goals().get(at.goal).instruction.clone();
        let mut dialogue = Dialogue::new(dialect, instruction, max_steps);
        let mut trip = OpenTrip::new(task, max_steps, REMOTE, Some(self.prompt()));
        while !trip.has_ended() {
            let view = trip.view(0);
            let turn = view.turn;
            dialogue.see(view.page, view.noop.copied());
            let jitter = self.draws(Purpose::Backoff, at, &[turn as u64, u64::from(attempt)]);
            match self.client.ask(&self.request(&dialogue, at, turn), jitter).await? {
                Some(reply) => answer(&mut trip, &mut dialogue, reply),
                None => trip.take(Move::none()),
            }
        }
        Ok(trip.into_episode())
    }

    /// What is posted for a turn. A trip that is begun anew asks the same.
    fn request(&self, dialogue: &Dialogue, at: EpisodeCoordinates, turn: usize) -> Value {
        let RemoteConfig { model, dialect, sampling, more, .. } = &self.config;
        // Servers take seeds of various widths; all take one of 31 bits.
        let seed = self.draws(Purpose::Request, at, &[turn as u64]).next_u32() >> 1;
        let mut body = Map::new();
        let mut set = |field: &str, value: Value| body.insert(field.to_owned(), value);
        set("model", json!(model));
        set("messages", dialogue.messages().iter().map(|message| message.to_server()).collect());
        set("temperature", json!(sampling.temperature));
        set("top_p", json!(sampling.top_p));
        set("max_tokens", json!(sampling.max_tokens));
        set("seed", json!(seed));
        if let Some(tools) = dialect.tools() {
            set("tools", Value::Array(tools));
        }
        body.extend(more.clone());
        body.retain(|_, value| !value.is_null());
        Value::Object(body)
    }

    fn draws(&self, purpose: Purpose, at: EpisodeCoordinates, more: &[u64]) -> ChaCha8Rng {
        let trip = [at.step, at.shop, u64::from(at.goal.0), at.sample];
        Seed(self.config.sampling.seed).rng(purpose, &[&trip, more].concat())
    }
}

/// Does what the model says.
fn answer(trip: &mut OpenTrip, dialogue: &mut Dialogue, reply: Reply) {
    let dialect = dialogue.dialect();
    let stop = reply.stop;
    let view = trip.view(0);
    let message = reply.message(dialect, view.turn);
    let written = dialect.written(&message);
    let utterance = dialogue.say(message, view.page);
    trip.take(Move { stop, ..Move::said(written, utterance, None) });
}
