//! One trip with a model behind a server.
//!
//! [`Shopping`] is what all trips share. A trip tells the model page after page, as its dialect has it, and does what
//! the answers mean; one that fails for reasons that may pass is begun anew.

use crate::error::RemoteError;
use tokio::time::timeout;

use crate::openai::client::{Client, Refusal};
use crate::openai::response::Reply;
use crate::openai::policy::{FailedTrip, REMOTE, RemoteConfig};
use webshop_agent::Dialogue;
use webshop_agent::Episode;
use webshop_agent::rollout::lane::OpenTrip;
use webshop_agent::Move;
use webshop_agent::Task;

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
    All(RemoteError),
}

impl Shopping {
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
                Err(Refusal::Failed(_)) if attempts <= self.config.trip_retries => continue,
                Err(Refusal::Failed(reason) | Refusal::Refused(reason)) => reason,
            };
            return Err(TripFailure::Alone(FailedTrip { coordinates: task.coordinates, reason, attempts }));
        }
    }

    async fn shop(&self, task: &Task, attempt: u32) -> Result<Episode, Refusal> {
        let RemoteConfig { asking, max_steps, .. } = &self.config;
        let (at, max_steps) = (task.coordinates, *max_steps);
        let instruction = task.shop.goals().get(at.goal).instruction.clone();
        let mut dialogue = Dialogue::new(asking.dialect, instruction, max_steps);
        let mut trip = OpenTrip::new(task, max_steps, REMOTE, Some(asking.prompt()));
        while !trip.has_ended() {
            let view = trip.view(0);
            let turn = view.turn;
            dialogue.see(view.page, view.noop.copied());
            // A trip that is begun anew asks the same, after other waits.
            let turn = [at.step, at.shop, u64::from(at.goal.0), at.sample, turn as u64];
            let jitter = asking.jitter(&[&turn[..], &[u64::from(attempt)]].concat());
            match self.client.ask(&asking.request(&dialogue.messages(), &turn), jitter).await? {
                Some(reply) => answer(&mut trip, &mut dialogue, reply),
                None => trip.take(Move::none()),
            }
        }
        Ok(trip.into_episode())
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
