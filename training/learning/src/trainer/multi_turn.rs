//! Rollouts that are whole episodes in the shop.

use webshop_agent::{Episode, EpisodeExt, Task};
use webshop_evaluation::{Summary, Tally};

use crate::data::task_set::{TaskId, TaskSet};
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::loss::{Scored, ScoredTurn};
use crate::metrics::Record;
use crate::metrics::record::{record_malformed, record_rollout};
use crate::model::network::Network;
use crate::trainer::experiment::Experiment;
use crate::trainer::progress::Progress;
use crate::trainer::state_value::StateValues;
use crate::trainer::task_source::{RolloutRequest, Rollouts, TaskSource, first_samples};
use crate::value::ReferenceRollout;

/// Episodes in the shops of a curriculum stage.
pub(super) struct MultiTurn<'a> {
    pub(super) ex: &'a Experiment<'a>,
    pub(super) tasks: TaskSet,
}

impl TaskSource for MultiTurn<'_> {
    fn goals(&self, _optimizer_step: u64) -> Result<Vec<TaskId>> {
        let seed = self.ex.seed();
        let tasks = self.tasks.clone().balanced(seed, self.ex.config.rl.goals_per_product);
        let mut goals = match self.ex.goal_limit() {
            Some(limit) => tasks.sample(seed, limit),
            None => tasks.training().to_vec(),
        };
        goals.sort();
        Ok(goals)
    }

    fn collect(
        &self,
        request: &RolloutRequest<'_>,
        progress: &mut Progress,
        record: &mut Record,
    ) -> Result<Rollouts> {
        let RolloutRequest { step, goals, network, reference } = *request;
        let group_size = self.ex.config.rl.group_size;
        let began = progress.clock.seconds();
        let episodes = self.ex.rollout(network, &self.tasks_of(goals, step, group_size), &|| ())?;
        progress.throughput.rolled_out(&episodes, progress.clock.seconds() - began);
        let values = StateValues { ex: self.ex, tasks: &self.tasks, reference };
        values.estimate(episodes.chunks(group_size).zip(goals), progress, record)?;
        let mut rollouts = Rollouts::default();
        for (place, episode) in episodes.iter().enumerate() {
            let (group, goal) = (place / group_size, goals[place / group_size]);
            if let Some(trajectory) = Trajectory::from_episode(episode) {
                let turns = scored_turns(episode, |state| values.get(&progress.state.forks, goal, state));
                let (reward, v_star) = (self.ex.config.reward(episode), reference.v_star(goal));
                rollouts.push(trajectory, Scored { group, reward, v_star, turns });
            }
        }
        if rollouts.batch.is_empty() {
            return Err(TrainingError::NothingSampled {
                n: episodes.len(),
                max_context: self.ex.config.prompt.max_context,
            });
        }
        rollouts.count_tokens(progress, record);
        record_rollout(record, &self.summary(&episodes), &rollouts.batch);
        record_malformed(record, &episodes, self.ex.config.malformed_penalty());
        Ok(rollouts)
    }

    fn reference_rollouts(
        &self,
        reference: &Network,
        goals: &[TaskId],
        at: u64,
        n_samples: usize,
    ) -> Result<Vec<Vec<ReferenceRollout>>> {
        let tasks = self.tasks_of(goals, at, n_samples);
        let episodes = self.ex.rollout(reference, &tasks, &|| self.ex.observer.advance(1, ""))?;
        let of_goals = episodes.chunks(n_samples);
        Ok(of_goals
            .map(|of_goal| of_goal.iter().map(|episode| self.reference_rollout(episode)).collect())
            .collect())
    }
}

impl MultiTurn<'_> {
    /// `n_samples` episodes of each goal at step coordinate `at`, goal by goal. No two are equal.
    pub(super) fn tasks_of(&self, goals: &[TaskId], at: u64, n_samples: usize) -> Vec<Task> {
        let of_goal = |(&goal, first): (&TaskId, u64)| {
            let samples = first..first + n_samples as u64;
            samples.map(move |sample| Experiment::task(&self.tasks, goal, at, sample))
        };
        goals.iter().zip(first_samples(goals.iter().copied(), n_samples)).flat_map(of_goal).collect()
    }

    /// The statistics of training episodes, whose coordinates name shops of the task set.
    fn summary(&self, episodes: &[Episode]) -> Summary {
        let mut tally = Tally::default();
        for episode in episodes {
            let shop = &self.tasks.shops()[episode.meta.coordinates.shop as usize];
            tally.count(episode, shop.goals());
        }
        tally.summary()
    }

    fn reference_rollout(&self, episode: &Episode) -> ReferenceRollout {
        let n_between = episode.turns.len().saturating_sub(1);
        let between = episode.turns.iter().take(n_between);
        ReferenceRollout {
            reward: self.ex.config.reward(episode),
            is_success: episode.is_success(),
            n_tokens: episode.n_sampled_tokens(),
            states: between.map(|turn| turn.after.observation.number()).collect(),
        }
    }
}

/// The turns of an episode that have tokens, with V* of the state after each if `v_state` knows it.
fn scored_turns(episode: &Episode, v_state: impl Fn(u64) -> Option<f64>) -> Vec<ScoredTurn> {
    let before = std::iter::once(episode.start).chain(episode.turns.iter().map(|turn| turn.after));
    let turns = episode.turns.iter().zip(before).filter_map(|(turn, before)| {
        let n_tokens = turn.agent.tokens.as_ref()?.completion.ids.len();
        let state = before.observation.number();
        let v_next = v_state(turn.after.observation.number());
        Some(ScoredTurn { v_next, ..ScoredTurn::new(n_tokens, state) })
    });
    turns.collect()
}
