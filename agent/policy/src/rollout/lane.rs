//! Running episodes.

use webshop_env::{NoopReason, ShopEnv, Step};

use crate::episode::{Episode, EpisodeMeta, ModelTurn, PromptProvenance};
use crate::policies::policy::{Decision, LaneView};
use crate::rollout::task::Task;

/// An action to take and what the policy adds to the turn.
pub(crate) type Choice = (webshop_env::Action, ModelTurn);

/// The recording of a running episode; its environment is passed to each method.
#[derive(Debug)]
pub(crate) struct Recorder {
    episode: Episode,
    noop: Option<NoopReason>,
}

impl Recorder {
    /// The recorder of `task`, and its environment: at the goal's start or after the prefix.
    pub(crate) fn start(
        task: &Task,
        max_steps: u32,
        policy: &str,
        prompt: Option<PromptProvenance>,
    ) -> (Recorder, ShopEnv) {
        let mut env = task.env(max_steps);
        let meta = EpisodeMeta::new(&task.shop, task.coordinates, policy, prompt);
        let mut recorder = Recorder { episode: Episode::new(&env, meta), noop: None };
        if let Some(prefix) = &task.prefix {
            let current = prefix.current();
            env.resume(current.session.clone());
            recorder.noop = current.noop_before;
            recorder.episode.turns = prefix.turns().cloned().collect();
            recorder.episode.truncated = env.is_truncated();
        }
        (recorder, env)
    }

    /// What the policy sees, for lane `lane` of the policy.
    pub(crate) fn view<'a>(&'a self, env: &'a ShopEnv, lane: usize) -> LaneView<'a> {
        LaneView {
            lane,
            coordinates: self.episode.meta.coordinates,
            shop: env.shop(),
            session: env.session(),
            page: env.page(),
            noop: self.noop,
            turn: self.episode.turns.len(),
            max_steps: self.episode.config.max_steps,
        }
    }

    /// The action of a decision; `None` ends the episode.
    pub(crate) fn choose(&mut self, decision: Decision) -> Option<Choice> {
        match decision {
            Decision::Act { action, turn } => Some((action, ModelTurn { terminates: false, ..turn })),
            Decision::Terminate { turn } => {
                let noop = webshop_env::Action::Noop(NoopReason::Malformed);
                Some((noop, ModelTurn { terminates: true, ..turn }))
            }
            Decision::Stop => {
                self.episode.truncated = true;
                None
            }
        }
    }

    /// Records a choice that took `env` to its present state with the result `step`.
    pub(crate) fn record(&mut self, env: &ShopEnv, step: &Step, (action, turn): Choice) {
        let terminates = turn.terminates;
        self.episode.push(env, action, step, turn);
        self.episode.truncated |= terminates;
        self.noop = step.info.noop;
    }

    /// Whether the episode is over.
    pub(crate) fn is_over(&self) -> bool {
        self.episode.terminated || self.episode.truncated
    }

    pub(crate) fn into_episode(self) -> Episode {
        self.episode
    }
}

/// A running episode with its environment.
#[derive(Debug)]
pub struct Lane {
    recorder: Recorder,
    env: ShopEnv,
}

impl Lane {
    /// Starts the episode of `task`, truncated after `max_steps` actions. `policy` and `prompt` are recorded.
    pub fn new(task: &Task, max_steps: u32, policy: &str, prompt: Option<PromptProvenance>) -> Self {
        let (recorder, env) = Recorder::start(task, max_steps, policy, prompt);
        Self { recorder, env }
    }

    /// What the policy sees, for lane `lane` of the policy.
    pub fn view(&self, lane: usize) -> LaneView<'_> {
        self.recorder.view(&self.env, lane)
    }

    /// Carries out a decision.
    pub fn step(&mut self, decision: Decision) {
        let Some(choice) = self.recorder.choose(decision) else { return };
        let step = self.env.step(&choice.0);
        self.recorder.record(&self.env, &step, choice);
    }

    /// Whether the episode is over.
    pub fn is_over(&self) -> bool {
        self.recorder.is_over()
    }

    /// The episode so far.
    pub fn into_episode(self) -> Episode {
        self.recorder.into_episode()
    }
}
