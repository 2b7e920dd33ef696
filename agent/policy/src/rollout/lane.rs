//! A trip that is under way: an environment, and what has become of it so far.

use std::sync::Arc;

use webshop_env::{EnvConfig, Footprint, NoopReason, Shop, ShopEnv};

use crate::episode::prefix::Beginning;
use crate::episode::{Episode, EpisodeTurn, PromptStamp};
use crate::policies::{LaneView, Move};
use crate::rollout::Task;

/// An [`Episode`] in the making.
#[derive(Debug)]
pub struct OpenTrip {
    env: ShopEnv,
    shop: Arc<Shop>,
    episode: Episode,
    noop: Option<NoopReason>,
}

impl OpenTrip {
    /// A customer at the door, or where the task begins, who is called `policy`, has `max_steps` actions and is spoken to as
    /// `prompt` says.
    pub fn new(task: &Task, max_steps: u32, policy: &str, prompt: Option<PromptStamp>) -> Self {
        let config = EnvConfig { max_steps, ..EnvConfig::default() };
        let mut env = ShopEnv::new(task.shop.clone(), config);
        let shown = env.reset(task.coordinates.goal);
        let episode = Episode {
            policy: policy.into(),
            coordinates: task.coordinates,
            config,
            start: Footprint::of(env.session(), &shown),
            turns: Vec::new(),
            reward: 0.0,
            breakdown: None,
            terminated: false,
            truncated: false,
            prompt,
        };
        let mut trip = Self { env, shop: task.shop.clone(), episode, noop: None };
        if let Some(beginning) = &task.beginning {
            trip.go_on_from(beginning);
        }
        trip
    }

    /// Forks the session of a beginning and takes its turns for one's own.
    fn go_on_from(&mut self, beginning: &Beginning) {
        let now = beginning.now();
        self.env.resume(now.session.clone());
        self.noop = now.noop;
        self.episode.turns = beginning.turns().cloned().collect();
        self.episode.truncated = self.env.is_truncated();
    }

    /// What there is to decide on, for the policy's lane `lane`.
    pub fn view(&self, lane: usize) -> LaneView<'_> {
        LaneView {
            lane,
            coordinates: self.episode.coordinates,
            shop: &self.shop,
            session: self.env.session(),
            page: self.env.page(),
            noop: self.noop.as_ref(),
            turn: self.episode.turns.len(),
            max_steps: self.episode.config.max_steps,
        }
    }

    /// Carries out a move.
    pub fn take(&mut self, chosen: Move) {
        let Some(action) = chosen.action else {
            self.episode.truncated = true;
            return;
        };
        let step = self.env.step(&action);
        self.episode.reward += step.reward;
        self.episode.breakdown = step.info.breakdown;
        self.episode.terminated = step.terminated;
        self.episode.truncated = step.truncated || chosen.leaves;
        self.noop = step.info.noop;
        self.episode.turns.push(EpisodeTurn {
            action,
            thought: chosen.thought,
            answer: chosen.answer,
            is_well_formed: chosen.is_well_formed,
            leaves: chosen.leaves,
            stop: chosen.stop,
            noop: self.noop,
            reward: step.reward,
            after: Footprint::of(self.env.session(), &step.observation),
            tokens: chosen.tokens,
        });
    }

    /// Whether nothing more can be done.
    pub fn has_ended(&self) -> bool {
        self.episode.terminated || self.episode.truncated
    }

    /// What has become of it.
    pub fn into_episode(self) -> Episode {
        self.episode
    }
}
