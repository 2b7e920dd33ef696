//! Rollouts: a policy and tasks make episodes.
//!
//! [`rollout`] runs [`Task`]s on the lanes of a [`VecEnv`]. Each round the policy decides for all running
//! lanes at once, and the environments take one step. A lane whose episode is over takes the next task.
//! Episodes are returned in the order of the tasks, or one by one as they end ([`rollout_each`]) to be sorted
//! by [`InOrder`]. An episode depends on its own coordinates and prefix only, so the numbers of lanes and
//! threads do not change the result.

pub(crate) mod lane;
pub(crate) mod task;

use std::collections::BTreeMap;

use rayon::prelude::*;
use webshop_env::{ShopEnv, VecEnv};

use crate::episode::Episode;
use crate::error::AgentError;
use crate::policies::policy::Policy;
use crate::rollout::lane::{Choice, Recorder};
use crate::rollout::task::Task;

/// The fewest lanes recorded by one thread. Recording a turn takes tens of microseconds.
const LANES_PER_THREAD: usize = 8;

/// Limits of a rollout.
#[derive(Clone, Copy, Debug)]
pub struct RolloutConfig {
    /// Actions after which an episode is truncated, those of a prefix included.
    pub max_steps: u32,
    /// The number of concurrent episodes; 0 counts as 1.
    pub lanes: usize,
}

/// Runs every task and returns the episodes in the order of the tasks. `ended` is called with the position of
/// the task and the episode when an episode ends.
///
/// # Errors
/// Those of the policy.
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

/// Runs every task and keeps no episodes: `ended` gets the position of the task and the episode when it ends.
///
/// # Errors
/// Those of the policy and of `ended`, which stop the rollout.
pub fn rollout_each(
    policy: &mut dyn Policy,
    tasks: &[Task],
    config: RolloutConfig,
    ended: &mut dyn FnMut(usize, Episode) -> Result<(), AgentError>,
) -> Result<(), AgentError> {
    let n_lanes = config.lanes.clamp(1, tasks.len().max(1));
    policy.begin_rollout(n_lanes)?;
    let mut waiting = tasks.iter().enumerate();
    let (mut running, mut envs) = (Vec::with_capacity(n_lanes), Vec::with_capacity(n_lanes));
    for (lane, (place, task)) in waiting.by_ref().take(n_lanes).enumerate() {
        let (recorder, env) = start(policy, lane, task, config.max_steps)?;
        running.push(Some(Running { place, recorder }));
        envs.push(env);
    }
    let mut env = VecEnv::from_lanes(envs);
    while running.iter().any(Option::is_some) {
        step(policy, &mut env, &mut running)?;
        for slot in &mut running {
            if let Some(lane) = slot.take_if(|lane| lane.recorder.is_over()) {
                ended(lane.place, lane.recorder.into_episode())?;
            }
        }
        for (lane, slot) in running.iter_mut().enumerate().filter(|(_, slot)| slot.is_none()) {
            let Some((place, task)) = waiting.next() else { break };
            let (recorder, new) = start(policy, lane, task, config.max_steps)?;
            env.replace_lane(lane, new);
            *slot = Some(Running { place, recorder });
        }
    }
    Ok(())
}

/// Restores the order of the tasks, holding as few episodes as that takes.
#[derive(Debug, Default)]
pub struct InOrder {
    /// The position of the next episode to return.
    next: usize,
    early: BTreeMap<usize, Episode>,
}

impl InOrder {
    /// Takes the episode of the task at `place` and returns the episodes that are next in order.
    pub fn take(&mut self, place: usize, episode: Episode) -> impl Iterator<Item = Episode> {
        self.early.insert(place, episode);
        std::iter::from_fn(move || {
            let episode = self.early.remove(&self.next)?;
            self.next += 1;
            Some(episode)
        })
    }
}

/// The episode on a lane.
struct Running {
    /// The position of its task.
    place: usize,
    recorder: Recorder,
}

/// Starts a task on a lane of the policy.
fn start(
    policy: &mut dyn Policy,
    lane: usize,
    task: &Task,
    max_steps: u32,
) -> Result<(Recorder, ShopEnv), AgentError> {
    policy.begin_episode(lane);
    if let Some(prefix) = &task.prefix {
        for (view, turn) in prefix.views(lane, task.coordinates, max_steps) {
            policy.replay_turn(&view, turn)?;
        }
    }
    Ok(Recorder::start(task, max_steps, policy.name(), policy.prompt()))
}

/// Takes one step on every running lane. An episode may be over after its prefix.
fn step(policy: &mut dyn Policy, env: &mut VecEnv, lanes: &mut [Option<Running>]) -> Result<(), AgentError> {
    let mut running: Vec<(usize, &mut Recorder)> = lanes
        .iter_mut()
        .enumerate()
        .filter_map(|(lane, slot)| Some((lane, &mut slot.as_mut()?.recorder)))
        .filter(|(_, recorder)| !recorder.is_over())
        .collect();
    let views: Vec<_> =
        running.iter().map(|(lane, recorder)| recorder.view(&env.lanes()[*lane], *lane)).collect();
    let decisions = policy.act(&views)?;
    let chosen = running.iter_mut().zip(decisions);
    let choices: Vec<Option<Choice>> =
        chosen.map(|((_, recorder), decision)| recorder.choose(decision)).collect();
    let actions = running.iter().zip(&choices);
    let actions = actions.filter_map(|((lane, _), choice)| Some((*lane, choice.as_ref()?.0.clone())));
    env.step_lanes(&actions.collect::<Vec<_>>());
    let (envs, steps) = (env.lanes(), env.steps());
    let recorded = running.par_iter_mut().zip(choices).with_min_len(LANES_PER_THREAD);
    recorded.for_each(|((lane, recorder), choice)| {
        if let Some(choice) = choice {
            recorder.record(&envs[*lane], &steps[*lane], choice);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use webshop_env::Shop;
    use webshop_lm::LmError;
    use webshop_products::{EmbeddedCatalog, GoalKind, Seed};

    use super::*;
    use crate::episode::EpisodeCoordinates;
    use crate::episode::file::EpisodeFile;
    use crate::policies::policy::{Decision, LaneView};
    use crate::policies::random::RandomPolicy;

    /// Random episodes, which differ in length, until so many rounds have been played.
    struct Failing {
        random: RandomPolicy,
        rounds: usize,
    }

    impl Policy for Failing {
        fn name(&self) -> &'static str {
            self.random.name()
        }

        fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
            self.rounds = self.rounds.checked_sub(1).ok_or(LmError::Sampling("enough".into()))?;
            self.random.act(lanes)
        }
    }

    fn tasks() -> Vec<Task> {
        let shop = Arc::new(Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Human));
        let goals = shop.goals().goals().iter().take(12);
        let at = EpisodeCoordinates::of_goal;
        goals.map(|goal| Task::new(shop.clone(), at(goal.id))).collect()
    }

    // So many steps that some random episodes end in a purchase before the others are truncated.
    const LIMITS: RolloutConfig = RolloutConfig { max_steps: 15, lanes: 3 };

    /// A rollout that writes as `webshop rollout --out` does: the text of its file, and how it ended.
    fn written(rounds: usize) -> (String, Result<(), AgentError>) {
        let (tasks, folder) = (tasks(), tempfile::tempdir().unwrap());
        let path = folder.path().join("episodes.jsonl");
        let (mut file, mut order) = (EpisodeFile::create(&path).unwrap(), InOrder::default());
        let mut policy = Failing { random: RandomPolicy::new(Seed(0)), rounds };
        let ended = rollout_each(&mut policy, &tasks, LIMITS, &mut |place, episode| {
            order.take(place, episode).try_for_each(|episode| file.append(&episode))
        });
        (fs::read_to_string(&path).unwrap(), ended)
    }

    #[test]
    fn an_interrupted_rollout_leaves_the_first_episodes_in_order() {
        let tasks = tasks();
        let mut random = RandomPolicy::new(Seed(0));
        let mut ends = Vec::new();
        let whole = rollout(&mut random, &tasks, LIMITS, &mut |place, _| ends.push(place)).unwrap();
        assert!(!ends.is_sorted(), "no episode overtakes another: {ends:?}");
        let lines = whole.iter().map(|episode| serde_json::to_string(episode).unwrap() + "\n");
        let lines: Vec<String> = lines.collect();
        let mut counts = Vec::new();
        for rounds in 0..=60 {
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
    fn an_error_of_the_callback_stops_the_rollout() {
        let mut n_ended = 0;
        let mut policy = RandomPolicy::new(Seed(0));
        let ended = rollout_each(&mut policy, &tasks(), LIMITS, &mut |_, _| {
            n_ended += 1;
            Err(AgentError::write("episodes.jsonl".as_ref(), std::io::Error::other("no space")))
        });
        assert_eq!(ended.unwrap_err().to_string(), "cannot write `episodes.jsonl`: no space");
        assert_eq!(n_ended, 1);
    }
}
