//! Policy × shops → episodes.
//!
//! [`rollout`] plays tasks on lanes: every lane is one customer in one shop; each round the policy is asked for
//! one move per lane, and the shops answer. A lane whose episode has ended takes the next task, so that none
//! waits for the longest. Episodes come back in the order of the tasks, or one by one as they end ([`rollout_each`]), to be
//! put [`InOrder`]. What an episode is depends on its own
//! coordinates only, and on the [`Beginning`] that it goes on from if it has one, so neither the number of lanes nor that of
//! threads shows in the result.

pub mod lane;

use webshop_lm::LmError;
use std::collections::BTreeMap;
use std::sync::Arc;

use webshop_env::Shop;

use crate::episode::prefix::Beginning;
use crate::episode::{Episode, EpisodeCoordinates};
use crate::error::AgentError;
use crate::rollout::lane::OpenTrip;
use crate::policies::Policy;

/// One trip to make.
#[derive(Clone, Debug)]
pub struct Task {
    /// Where.
    pub shop: Arc<Shop>,
    /// What for, and which draw of it.
    pub coordinates: EpisodeCoordinates,
    /// Where it begins, if not at the door; made in the same shop for the same goal.
    pub beginning: Option<Beginning>,
}

impl Task {
    /// A trip from the shop's door.
    pub fn new(shop: Arc<Shop>, coordinates: EpisodeCoordinates) -> Self {
        Self { shop, coordinates, beginning: None }
    }

    /// A trip from where `beginning` stands, with the draws of this step and sample.
    pub fn fork(beginning: &Beginning, step: u64, sample: u64) -> Self {
        let coordinates = EpisodeCoordinates { step, sample, ..beginning.coordinates() };
        Self { shop: beginning.shop().clone(), coordinates, beginning: Some(beginning.clone()) }
    }
}

/// Limits of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RolloutConfig {
    /// Actions after which an episode is truncated, those of its beginning included.
    pub max_steps: u32,
    /// Episodes played side by side.
    pub lanes: usize,
}

/// Plays every task and keeps the episodes, in the order of the tasks; `ended` is called with each as it ends, and with
/// the place of its task.
pub fn rollout(
    policy: &mut dyn Policy,
    tasks: &[Task],
    config: RolloutConfig,
    ended: &mut dyn FnMut(usize, &Episode),
) -> Result<Vec<Episode>, AgentError> {
    let (mut order, mut episodes) = (InOrder::default(), Vec::with_capacity(tasks.len()));
    rollout_each(policy, tasks, config, &mut |place, episode| {
        ended(place, &episode);
        episodes.extend(order.take(place, episode));
        Ok(())
    })?;
    Ok(episodes)
}

/// Plays every task and keeps nothing: `ended` is given each episode as it ends, and the place of its task. When that
/// fails, so does the rollout, at once.
pub fn rollout_each(
    policy: &mut dyn Policy,
    tasks: &[Task],
    config: RolloutConfig,
    ended: &mut dyn FnMut(usize, Episode) -> Result<(), AgentError>,
) -> Result<(), AgentError> {
    let n_lanes = config.lanes.clamp(1, tasks.len().max(1));
    policy.begin(n_lanes)?;
    let mut waiting = tasks.iter().enumerate();
    let mut lanes: Vec<Option<Lane>> = Vec::new();
    lanes.resize_with(n_lanes, || None);
    loop {
        for (lane, slot) in lanes.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
            let Some((place, task)) = waiting.next() else { break };
            policy.enter(lane);
            if let Some(beginning) = &task.beginning {
                for (view, turn) in beginning.past(lane, task.coordinates, config.max_steps) {
                    policy.recall(&view, turn)?;
                }
            }
            *slot = Some(Lane {
                place,
                trip: OpenTrip::new(task, config.max_steps, policy.name(), policy.prompt()),
            });
        }
        if lanes.iter().all(Option::is_none) {
            return Ok(());
        }
        play_round(policy, &mut lanes)?;
        for slot in &mut lanes {
            if let Some(lane) = slot.take_if(|lane| lane.trip.has_ended()) {
                ended(lane.place, lane.trip.into_episode())?;
            }
        }
    }
}

/// Puts episodes back into the order of their tasks, and holds no more of them than that takes.
#[derive(Debug, Default)]
pub struct InOrder {
    /// Place of the task whose episode comes next.
    next: usize,
    early: BTreeMap<usize, Episode>,
}

impl InOrder {
    /// Takes the episode of the task at `place`, and hands over those that nothing is before any more.
    pub fn take(&mut self, place: usize, episode: Episode) -> impl Iterator<Item = Episode> {
        self.early.insert(place, episode);
        std::iter::from_fn(move || {
            let episode = self.early.remove(&self.next)?;
            self.next += 1;
            Some(episode)
        })
    }
}

struct Lane {
    /// Of the task.
    place: usize,
    trip: OpenTrip,
}

/// Asks for one move per occupied lane and carries them out. A trip may have ended with its beginning.
fn play_round(policy: &mut dyn Policy, lanes: &mut [Option<Lane>]) -> Result<(), AgentError> {
    let mut open: Vec<(usize, &mut OpenTrip)> = lanes
        .iter_mut()
        .enumerate()
        .filter_map(|(at, slot)| Some((at, &mut slot.as_mut()?.trip)))
        .filter(|(_, trip)| !trip.has_ended())
        .collect();
    let views: Vec<_> = open.iter().map(|(at, trip)| trip.view(*at)).collect();
    let moves = policy.act(&views)?;
    for ((_, trip), chosen) in open.iter_mut().zip(moves) {
        trip.take(chosen);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed};

    use super::*;
    use crate::policies::{LaneView, Move, RandomPolicy};
    use crate::episode::file::TripFile;

    /// Random trips, which differ in length, until so many rounds have been played.
    struct Failing {
        random: RandomPolicy,
        rounds: usize,
    }

    impl Policy for Failing {
        fn name(&self) -> &'static str {
            self.random.name()
        }

        fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
            self.rounds = self.rounds.checked_sub(1).ok_or(LmError::Sampling("enough".into()))?;
            self.random.act(lanes)
        }
    }

    fn tasks() -> Vec<Task> {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).unwrap();
        let shop = Arc::new(Shop::new(catalog, goals).unwrap());
        let goals = shop.goals().goals().iter().take(12);
        let at = |goal| EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
        goals.map(|goal| Task::new(shop.clone(), at(goal.id))).collect()
    }

    const LIMITS: RolloutConfig = RolloutConfig { max_steps: 9, lanes: 3 };

    /// A rollout that writes as `webshop rollout --out` does: the text of its file, and how it ended.
    fn written(rounds: usize) -> (String, Result<(), AgentError>) {
        let (tasks, folder) = (tasks(), tempfile::tempdir().unwrap());
        let path = folder.path().join("trips.jsonl");
        let (mut file, mut order) = (TripFile::create(&path).unwrap(), InOrder::default());
        let mut policy = Failing { random: RandomPolicy::new(Seed(0)), rounds };
        let ended = rollout_each(&mut policy, &tasks, LIMITS, &mut |place, episode| {
            order.take(place, episode).try_for_each(|trip| file.append(&trip.record(&tasks[0].shop)))
        });
        (fs::read_to_string(&path).unwrap(), ended)
    }

    #[test]
    fn whatever_ends_a_rollout_leaves_the_first_trips_in_order() {
        let tasks = tasks();
        let mut random = RandomPolicy::new(Seed(0));
        let mut ends = Vec::new();
        let whole = rollout(&mut random, &tasks, LIMITS, &mut |place, _| ends.push(place)).unwrap();
        assert!(!ends.is_sorted(), "no trip overtakes another: {ends:?}");
        let lines =
            whole.iter().map(|trip| serde_json::to_string(&trip.record(&tasks[0].shop)).unwrap() + "\n");
        let lines: Vec<String> = lines.collect();
        let mut counts = Vec::new();
        for rounds in 0..60 {
            let (text, ended) = written(rounds);
            let n = text.lines().count();
            assert_eq!(text, lines[..n].concat(), "after {rounds} rounds");
            assert_eq!(ended.is_ok(), n == lines.len(), "after {rounds} rounds");
            counts.push(n);
        }
        counts.dedup();
        assert!(counts.len() > 4 && counts.is_sorted() && counts.last() == Some(&12), "{counts:?}");
    }

    #[test]
    fn an_episode_that_cannot_be_kept_stops_the_rollout() {
        let mut n_ended = 0;
        let mut policy = RandomPolicy::new(Seed(0));
        let ended = rollout_each(&mut policy, &tasks(), LIMITS, &mut |_, _| {
            n_ended += 1;
            Err(LmError::Write { path: "trips.jsonl".into(), reason: "no space".into() })
        });
        assert_eq!(ended.unwrap_err().to_string(), "cannot write `trips.jsonl`: no space");
        assert_eq!(n_ended, 1);
    }
}
