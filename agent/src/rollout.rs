//! Policy × shops → episodes.
//!
//! [`rollout`] plays tasks in batches of lanes: every lane is one customer in one shop; each round the
//! policy is asked for one move per unfinished lane, and the shop answers. Episodes come back in the
//! order of the tasks. What a lane does depends on its own coordinates only, so neither the batch size
//! nor the thread count shows in the result.

use std::sync::Arc;

use webshop_env::{EnvConfig, Footprint, NoopReason, Shop, ShopEnv};

use crate::episode::{Episode, EpisodeCoordinates, EpisodeTurn};
use crate::error::AgentError;
use crate::policy::{LaneView, Policy};

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

/// Plays every task; `progress` is called with the number of episodes finished by each batch.
pub fn rollout(
    policy: &mut dyn Policy,
    tasks: &[Task],
    config: RolloutConfig,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Episode>, AgentError> {
    let mut episodes = Vec::with_capacity(tasks.len());
    for batch in tasks.chunks(config.lanes.max(1)) {
        policy.begin(batch.len())?;
        let mut lanes: Vec<Lane> = batch.iter().map(|task| Lane::new(task, config.max_steps)).collect();
        while lanes.iter().any(Lane::is_open) {
            play_round(policy, &mut lanes)?;
        }
        episodes.extend(lanes.into_iter().map(|lane| lane.episode));
        progress(batch.len());
    }
    Ok(episodes)
}

struct Lane {
    env: ShopEnv,
    shop: Arc<Shop>,
    episode: Episode,
    noop: Option<NoopReason>,
}

impl Lane {
    fn new(task: &Task, max_steps: u32) -> Self {
        let config = EnvConfig { max_steps, ..EnvConfig::default() };
        let mut env = ShopEnv::new(task.shop.clone(), config);
        let shown = env.reset(task.coordinates.goal);
        let episode = Episode {
            coordinates: task.coordinates,
            config,
            start: Footprint::of(env.session(), &shown),
            turns: Vec::new(),
            reward: 0.0,
            breakdown: None,
            terminated: false,
            truncated: false,
        };
        Self { env, shop: task.shop.clone(), episode, noop: None }
    }

    fn is_open(&self) -> bool {
        !self.episode.terminated && !self.episode.truncated
    }
}

/// Asks for one move per open lane and carries them out.
fn play_round(policy: &mut dyn Policy, lanes: &mut [Lane]) -> Result<(), AgentError> {
    let open: Vec<usize> = (0..lanes.len()).filter(|&lane| lanes[lane].is_open()).collect();
    let views: Vec<LaneView<'_>> = open
        .iter()
        .map(|&lane| LaneView {
            lane,
            coordinates: lanes[lane].episode.coordinates,
            shop: &lanes[lane].shop,
            session: lanes[lane].env.session(),
            page: lanes[lane].env.page(),
            noop: lanes[lane].noop.as_ref(),
            turn: lanes[lane].episode.turns.len(),
        })
        .collect();
    let moves = policy.act(&views)?;
    drop(views);
    for (lane, chosen) in open.into_iter().zip(moves) {
        let lane = &mut lanes[lane];
        let Some(action) = chosen.action else {
            lane.episode.truncated = true;
            continue;
        };
        let step = lane.env.step(&action);
        lane.episode.reward += step.reward;
        lane.episode.breakdown = step.info.breakdown;
        lane.episode.terminated = step.terminated;
        lane.episode.truncated = step.truncated;
        lane.noop = step.info.noop;
        lane.episode.turns.push(EpisodeTurn {
            action,
            thought: chosen.thought,
            noop: lane.noop,
            reward: step.reward,
            after: Footprint::of(lane.env.session(), &step.observation),
            tokens: chosen.tokens,
        });
    }
    Ok(())
}
