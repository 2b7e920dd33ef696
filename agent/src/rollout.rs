//! Policy × shops → episodes.
//!
//! [`rollout`] plays tasks on lanes: every lane is one customer in one shop; each round the policy is asked for
//! one move per lane, and the shops answer. A lane whose episode has ended takes the next task, so that none
//! waits for the longest. Episodes come back in the order of the tasks. What an episode is depends on its own
//! coordinates only, so neither the number of lanes nor that of threads shows in the result.

use std::sync::Arc;

use webshop_env::Shop;

use crate::episode::{Episode, EpisodeCoordinates};
use crate::error::AgentError;
use crate::open_trip::OpenTrip;
use crate::policy::Policy;

/// One trip to make.
#[derive(Clone, Debug)]
pub struct Task {
    /// Where.
    pub shop: Arc<Shop>,
    /// What for, and which draw of it.
    pub coordinates: EpisodeCoordinates,
}

/// Limits of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RolloutConfig {
    /// Actions after which an episode is truncated.
    pub max_steps: u32,
    /// Episodes played side by side.
    pub lanes: usize,
}

/// Plays every task; `ended` is called with each episode as it ends, and with the place of its task.
pub fn rollout(
    policy: &mut dyn Policy,
    tasks: &[Task],
    config: RolloutConfig,
    ended: &mut dyn FnMut(usize, &Episode),
) -> Result<Vec<Episode>, AgentError> {
    let n_lanes = config.lanes.clamp(1, tasks.len().max(1));
    policy.begin(n_lanes)?;
    let mut waiting = tasks.iter().enumerate();
    let mut lanes: Vec<Option<Lane>> = Vec::new();
    lanes.resize_with(n_lanes, || None);
    let mut episodes: Vec<Option<Episode>> = Vec::new();
    episodes.resize_with(tasks.len(), || None);
    loop {
        for (lane, slot) in lanes.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
            let Some((place, task)) = waiting.next() else { break };
            policy.enter(lane);
            *slot = Some(Lane {
                place,
                trip: OpenTrip::new(task, config.max_steps, policy.name(), policy.prompt()),
            });
        }
        if lanes.iter().all(Option::is_none) {
            break;
        }
        play_round(policy, &mut lanes)?;
        for slot in &mut lanes {
            if let Some(lane) = slot.take_if(|lane| lane.trip.has_ended()) {
                let episode = lane.trip.into_episode();
                ended(lane.place, &episode);
                episodes[lane.place] = Some(episode);
            }
        }
    }
    Ok(episodes.into_iter().map(|episode| episode.expect("every task was played to its end")).collect())
}

struct Lane {
    /// Of the task.
    place: usize,
    trip: OpenTrip,
}

/// Asks for one move per occupied lane and carries them out.
fn play_round(policy: &mut dyn Policy, lanes: &mut [Option<Lane>]) -> Result<(), AgentError> {
    let open = lanes.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.as_ref()?)));
    let views: Vec<_> = open.map(|(at, lane)| lane.trip.view(at)).collect();
    let moves = policy.act(&views)?;
    for (lane, chosen) in lanes.iter_mut().flatten().zip(moves) {
        lane.trip.take(chosen);
    }
    Ok(())
}
