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
