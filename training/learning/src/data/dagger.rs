//! DAgger: demonstrations that go on from where the model got to.
//!
//! A model that is cloned from whole demonstrations sees no state that only its own mistakes lead to. Ross, Gordon and
//! Bagnell (2011, arXiv 1011.0686) let the learner act and the expert label. Here the model plays an episode with its
//! current weights, is stopped after the first action that does nothing or else at a random turn, and the
//! [`BrowsingExpert`] plays the rest. The loss is on the expert's tokens only.
//!
//! Deviations from the paper:
//!
//! - There is no growing data set: episodes are used in the step that they were made for.
//! - The expert does not label each of the learner's states but goes on from one, so that its later states are its own.
//! - The share of such episodes is constant, where the paper lets the expert act less and less.
//! - Where demonstrations are filtered by reward, so are these: a mistake that the expert cannot repair has no loss.

use rand::Rng;
use webshop_agent::{BrowsingExpert, Episode, Layout};
use webshop_env::Action;

use crate::data::demonstrations::Demonstrations;
use crate::data::layout_demonstrations::{continue_trajectory, render_demonstration};
use crate::data::task_set::TaskId;
use crate::data::trajectory::Trajectory;
use crate::error::Result;
use crate::purpose;

impl Demonstrations<'_> {
    /// The goal that the model begins at `place` in the batch of `step`.
    pub(crate) fn goal_to_begin(&self, step: u64, place: u64) -> TaskId {
        self.draw_begun(step, place).0
    }

    /// The goal of a place, and the draws of what follows.
    fn draw_begun(&self, step: u64, place: u64) -> (TaskId, impl Rng + use<>) {
        let mut rng = self.seed.rng(purpose::DAGGER, &[step, place]);
        (self.draw_goal(&mut rng), rng)
    }

    /// The model's `episode` for the goal of a place up to a turn, which has no loss, and the expert's from there on, which
    /// has. `None` if the expert cannot go on, the purchase is filtered out, or the whole exceeds a limit.
    pub(crate) fn finished(
        &self,
        layout: Layout,
        (step, place): (u64, u64),
        episode: &Episode,
    ) -> Result<Option<Trajectory>> {
        let (goal, mut rng) = self.draw_begun(step, place);
        let shop = self.task_set.shop_of(goal);
        let first_noop = episode.turns.iter().position(|turn| turn.noop.is_some());
        let n_kept = match first_noop {
            Some(at) => at + 1,
            None => rng.random_range(0..episode.turns.len().max(1)),
        };
        let kept = &episode.turns[..n_kept];
        let actions: Vec<Action> = kept.iter().map(|turn| turn.action.clone()).collect();
        let expert = BrowsingExpert::new(shop, self.results_shown, self.config.habits);
        let Some(rest) = expert.finish(goal.goal, &actions, &mut rng) else { return Ok(None) };
        if self.only_successful && rest.reward < 1.0 {
            return Ok(None);
        }
        let mut begun = Trajectory::new();
        for tokens in kept.iter().filter_map(|turn| turn.agent.tokens.as_ref()) {
            begun.push_observation(&tokens.prompt_ids);
            begun.push_observation(&tokens.completion.ids);
        }
        let turns = render_demonstration(layout, shop, goal.goal, &actions, &rest.turns);
        let whole = continue_trajectory(begun, self.tokenizer, turns, <[_]>::len)?;
        Ok(Some(whole).filter(|whole| self.fits(whole, n_kept + rest.turns.len())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webshop_agent::{EpisodeExt, ExpertPolicy, RolloutConfig, Task, rollout};

    use super::*;
    use crate::config::Config;
    use crate::data::demonstrations::tests::demonstrations;
    use crate::data::task_set::TaskSet;
    use crate::setup::limits::layout;
    use crate::setup::open_shop::open_shop;
    use crate::setup::tokenizer::train_tokenizer;

    /// The text of what is learned.
    fn learned(demonstrations: &Demonstrations<'_>, trajectory: &Trajectory) -> String {
        let ids = trajectory.ids.iter().zip(&trajectory.sampled);
        let ids: Vec<u32> = ids.filter_map(|(id, is_sampled)| is_sampled.then_some(*id)).collect();
        demonstrations.tokenizer.decode(&ids)
    }

    #[test]
    fn an_episode_without_a_mistake_is_taken_over_at_a_random_turn() {
        let keys = ["by_pairs=0", "reads_features=0"].map(String::from);
        let config = Config::resolve("test", "", &keys).unwrap();
        let task_set = TaskSet::of_shop(open_shop(&config.catalog).unwrap());
        let tokenizer = train_tokenizer(&task_set, &config).unwrap();
        let layout = layout(&config).unwrap();
        let unfiltered = demonstrations(&task_set, &tokenizer, &config);
        let demonstrations = Demonstrations { only_successful: true, ..unfiltered };
        let goals: Vec<TaskId> = (0..40).map(|place| demonstrations.goal_to_begin(0, place)).collect();
        let tasks: Vec<Task> =
            goals.iter().map(|goal| Task::new(Arc::clone(task_set.shop_of(*goal)), goal.at(0, 0))).collect();
        // The expert itself, without draws, in place of the model.
        let habits = config.warm_start.habits;
        let mut expert = ExpertPolicy::browsing(demonstrations.results_shown, habits, demonstrations.seed);
        let limits = RolloutConfig { max_steps: config.run.max_steps, lanes: 8 };
        let episodes = rollout(&mut expert, &tasks, limits, &mut |_, _| ()).unwrap();
        let mut n_turns = Vec::new();
        for ((episode, goal), place) in episodes.iter().zip(&goals).zip(0..) {
            let finished = demonstrations.finished(layout, (0, place), episode).unwrap();
            assert!(finished.is_none() || episode.is_success(), "a purchase of less than 1 is filtered out");
            let Some(finished) = finished else { continue };
            let shop = task_set.shop_of(*goal);
            let whole = BrowsingExpert::new(shop, demonstrations.results_shown, habits);
            let whole = whole.episode(goal.goal, &mut demonstrations.seed.rng(purpose::DAGGER, &[])).unwrap();
            let turns = render_demonstration(layout, shop, goal.goal, &[], &whole.turns);
            let whole = continue_trajectory(Trajectory::new(), &tokenizer, turns, <[_]>::len).unwrap();
            let [whole, rest] = [&whole, &finished].map(|one| learned(&demonstrations, one));
            assert!(rest.ends_with("click[buy now]<|im_end|>"), "{rest}");
            n_turns.push((rest.matches("<|im_end|>").count(), whole.matches("<|im_end|>").count()));
        }
        assert!(n_turns.iter().any(|(rest, whole)| rest == whole), "{n_turns:?}");
        assert!(n_turns.iter().any(|(rest, whole)| rest < whole), "{n_turns:?}");
        assert!(n_turns.len() > 10 && n_turns.len() < 40, "{} of 40 are successful", n_turns.len());
    }
}
