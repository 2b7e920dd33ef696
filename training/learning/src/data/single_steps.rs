//! Single steps of demonstrations, for training and evaluation.
//!
//! [`StepSampler`] draws one [`Example`] for each goal of the task set and each round: a step of an expert's
//! episode, or a terminate example, whose right action is to terminate. The draw depends on the seed, the
//! goal and the round only. With [`RecordedSteps`], each recorded step replaces a goal. [`StepSampler::of`] renders
//! steps to tokens in a [`StepFormat`].
//!
//! The expert is the [`Expert`] of `two-habits`, or in a layout the demonstrator of the run. An action of the [`BrowsingExpert`] is
//! taken to be right if it leads to a purchase with a reward of 1.
//!
//! ```text
//! natural   with probability `terminate_share` a terminate example, else any step of the episode
//! paper     690 clicks : 677 searches : 512 terminate examples, uniform within a type
//! ```
//!
//! Goals without a demonstration and prompts without room for a completion are left out and counted in
//! [`SampledSteps`]; a draw without any step is an error. Nothing here generates completions.

use std::collections::BTreeSet;
use std::iter;

use rand::Rng;
use rayon::prelude::*;
use webshop_agent::next_action::{
    ActionType, BuyNowAs, Example, ExampleOptions, ExampleSource, NextAction, PAPER_MIX,
    draw_terminate_example, examples_of,
};
use webshop_agent::{BrowsingExpert, BrowsingHabits, Demonstrated, Expert, ExpertKind, ExpertTurn};
use webshop_env::Shop;
use webshop_products::{Seed, Split};

use crate::config::{Mix, ShopR1Config};
use crate::data::recorded_steps::RecordedSteps;
use crate::data::step_format::{DemonstratedStep, RenderedStep, StepFormat};
use crate::data::task_set::{TaskId, TaskSet};
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::purpose;

/// First coordinate of a draw: goals of a batch, or the step of a goal.
const DRAWS_GOALS: u64 = 2;
const DRAWS_STEP: u64 = 3;
/// Other goals whose searches are tried for a terminate example.
const TERMINATE_TRIES: u64 = 8;
/// Draws of a batch to clone, until a step of it can be used.
const BATCH_TRIES: u64 = 8;
/// Episodes of the browsing expert for a goal, with other draws, until one has a reward of 1.
const BROWSING_TRIES: u64 = 8;

/// Draws steps.
#[derive(Clone, Debug)]
pub struct StepSampler<'a> {
    /// The shops and their goals.
    pub(crate) task_set: &'a TaskSet,
    /// Products of a results page that demonstrations choose from.
    pub(crate) results_shown: usize,
    /// The mix of action types.
    pub(crate) mix: Mix,
    /// Share of terminate examples in the natural mix, 0 to 1.
    pub(crate) terminate_share: f64,
    /// The habits of the browsing expert, if it demonstrates; else the experts of `two-habits` do.
    pub(crate) browsing: Option<BrowsingHabits>,
    /// The largest number of actions of its episodes.
    pub(crate) max_steps: u32,
    /// Steps of a file, which replace demonstrations.
    pub(crate) recorded: Option<&'a RecordedSteps>,
    /// The seed of the draws.
    pub(crate) seed: Seed,
}

/// A step as token ids.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// The goal of its episode.
    pub(crate) goal: TaskId,
    /// Position in the episode, from 0.
    pub(crate) turn: usize,
    /// The `sample` coordinate of its first completion: 0, unless its goal was drawn before in the same RL step.
    pub(crate) first_sample: u64,
    /// The prompt and the demonstrated completion.
    pub(crate) rendered: RenderedStep,
    /// The demonstrated action (ground truth).
    pub(crate) gold: NextAction,
}

impl Step {
    /// The prompt with the demonstrated completion, for cloning.
    pub(crate) fn demonstration(&self) -> Trajectory {
        let RenderedStep { prompt_ids, completion_ids, .. } = &self.rendered;
        let mut step = Trajectory::new();
        step.push_observation(prompt_ids);
        step.push_completion(completion_ids, &vec![0.0; completion_ids.len()]);
        step
    }
}

/// Steps, and the number of those left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampledSteps {
    /// The steps, in the order of the goals.
    pub(crate) steps: Vec<Step>,
    /// The position of each step's goal among the goals.
    pub(crate) places: Vec<usize>,
    /// Goals without a demonstration.
    pub(crate) undemonstrated: usize,
    /// Steps whose prompt leaves no room for a completion, or whose demonstrated completion is too long.
    pub(crate) too_long: usize,
}

impl SampledSteps {
    /// Number of goals left out.
    pub(crate) fn n_dropped(&self) -> usize {
        self.undemonstrated + self.too_long
    }
}

/// The result of a draw.
enum Draw {
    Step(Box<Step>),
    Undemonstrated,
    TooLong,
}

impl StepSampler<'_> {
    /// The first round of evaluation steps.
    const HELD_OUT: u64 = 1 << 40;
    /// Largest number of rounds when evaluation needs more steps than there are goals.
    const MAX_ROUNDS: u64 = 100;

    /// `n` different steps of held-out goals for evaluation, by the thinking expert of `two-habits`; the same for every run
    /// and seed: one of each goal, then another of each, and so on; fewer if the goals do not have as many.
    pub fn held_out(
        task_set: &TaskSet,
        results_shown: usize,
        config: &ShopR1Config,
        split: Split,
        n: usize,
    ) -> Vec<(TaskId, Example)> {
        let &ShopR1Config { mix, terminate_share, .. } = config;
        let steps = StepSampler {
            task_set,
            results_shown,
            mix,
            terminate_share,
            browsing: None,
            max_steps: u32::MAX,
            recorded: None,
            seed: Seed(0),
        };
        steps.of_split(split, n).into_iter().map(|(goal, step)| (goal, step.example)).collect()
    }

    /// [`StepSampler::held_out`] by the expert of these steps, on whose habits they depend: at most one step of a goal at each position.
    pub(crate) fn held_out_steps(&self, split: Split, n: usize) -> Vec<(TaskId, DemonstratedStep)> {
        StepSampler { recorded: None, seed: Seed(0), ..self.clone() }.of_split(split, n)
    }

    fn of_split(&self, split: Split, n: usize) -> Vec<(TaskId, DemonstratedStep)> {
        let goals = self.task_set.held_out(split, n);
        let rounds = (0..Self::MAX_ROUNDS).map(|round| Self::HELD_OUT + round);
        let each = rounds.flat_map(|round| goals.iter().map(move |&goal| (TaskId { shop: 0, goal }, round)));
        let mut seen = BTreeSet::new();
        each.filter_map(|(goal, round)| Some((goal, self.step(goal, ExpertKind::Thinking, round)?)))
            .filter(|(_, step)| seen.insert(step.example.id.clone()))
            .take(n)
            .collect()
    }

    /// The tokens of a step of `goal`; `None` if its prompt leaves no room for a completion.
    pub(crate) fn render(
        &self,
        format: &StepFormat<'_>,
        goal: TaskId,
        step: &DemonstratedStep,
    ) -> Result<Option<Step>> {
        let shop = self.task_set.shop_of(goal);
        let Some(rendered) = format.render(shop, goal.goal, step)? else { return Ok(None) };
        let (turn, gold) = (step.example.step, step.example.action.clone());
        Ok(Some(Step { goal, turn, first_sample: 0, rendered, gold }))
    }

    /// The expert's steps for `goals` in round `round`, for optimizer step `step`.
    ///
    /// # Errors
    /// [`TrainingError::NoSteps`] if none is left.
    pub(crate) fn of(
        &self,
        format: &StepFormat<'_>,
        goals: &[TaskId],
        round: u64,
        step: u64,
    ) -> Result<SampledSteps> {
        let demonstrated: Vec<_> = goals.iter().map(|&goal| (goal, ExpertKind::Thinking)).collect();
        self.draw(format, &demonstrated, round, step)
    }

    /// As [`Self::of`] in a round of optimizer step `step` alone, or in another if no goal has a step in that.
    ///
    /// # Errors
    /// As [`Self::of`], after some rounds.
    pub(crate) fn of_step(
        &self,
        format: &StepFormat<'_>,
        goals: &[TaskId],
        step: u64,
    ) -> Result<SampledSteps> {
        first_with_steps(|retry| self.of(format, goals, step + (retry << 32), step))
    }

    /// The steps of these goals by these experts.
    fn draw(
        &self,
        format: &StepFormat<'_>,
        goals: &[(TaskId, ExpertKind)],
        round: u64,
        step: u64,
    ) -> Result<SampledSteps> {
        let longest = format.sampler().max_completion_tokens();
        let draw = |&(goal, kind): &(TaskId, ExpertKind)| match self.step(goal, kind, round) {
            None => Ok(Draw::Undemonstrated),
            Some(step) => Ok(self
                .render(format, goal, &step)?
                .filter(|step| step.rendered.completion_ids.len() <= longest)
                .map_or(Draw::TooLong, |step| Draw::Step(step.into()))),
        };
        let draws: Vec<Result<Draw>> = goals.par_iter().map(draw).collect();
        let mut drawn = SampledSteps::default();
        for (place, draw) in draws.into_iter().enumerate() {
            match draw? {
                Draw::Step(step) => {
                    drawn.steps.push(*step);
                    drawn.places.push(place);
                }
                Draw::Undemonstrated => drawn.undemonstrated += 1,
                Draw::TooLong => drawn.too_long += 1,
            }
        }
        if drawn.steps.is_empty() {
            let SampledSteps { undemonstrated, too_long, .. } = drawn;
            return Err(TrainingError::NoSteps { step, drawn: goals.len(), undemonstrated, too_long });
        }
        Ok(drawn)
    }

    /// Demonstrations of `n` drawn training goals, to clone at optimizer step `step`. A `thinking_share` of
    /// them, 0 to 1, is the thinking expert's, the rest the no-thinking expert's.
    pub(crate) fn batch(
        &self,
        format: &StepFormat<'_>,
        thinking_share: f64,
        step: u64,
        n: usize,
    ) -> Result<Vec<Trajectory>> {
        let mut rng = self.seed.rng(purpose::STEPS, &[DRAWS_GOALS, step]);
        let goals = self.addresses();
        let mut draw = || {
            let goal = |_| {
                let goal = goals[rng.random_range(0..goals.len() as u64) as usize];
                let thinking = rng.random::<f64>() < thinking_share;
                (goal, if thinking { ExpertKind::Thinking } else { ExpertKind::NoThinking })
            };
            // In another batch, the same goal has another step.
            self.draw(format, &(0..n).map(goal).collect::<Vec<_>>(), step, step)
        };
        Ok(first_with_steps(|_| draw())?.steps.iter().map(Step::demonstration).collect())
    }

    /// All training goals, or the task ids of the recorded steps.
    pub(crate) fn addresses(&self) -> &[TaskId] {
        match self.recorded {
            Some(recorded) => recorded.addresses(),
            None => self.task_set.training(),
        }
    }

    /// The step of `goal` in this round; `None` if the expert has no demonstration of such a step.
    fn step(&self, goal: TaskId, kind: ExpertKind, round: u64) -> Option<DemonstratedStep> {
        let without_episode = |example| DemonstratedStep { example, episode: None };
        if let Some(recorded) = self.recorded {
            return recorded.at(goal).cloned().map(without_episode);
        }
        let coordinates = [DRAWS_STEP, round, u64::from(goal.shop), u64::from(goal.goal.0)];
        let mut rng = self.seed.rng(purpose::STEPS, &coordinates);
        match self.wanted(&mut rng) {
            Some(ActionType::Terminate) => self.terminate_example(goal, &mut rng).map(without_episode),
            wanted => self.on_episode(goal, kind, wanted, &mut rng),
        }
    }

    /// The type of the step to draw; `None` for any but a terminate example.
    fn wanted(&self, rng: &mut impl Rng) -> Option<ActionType> {
        match self.mix {
            Mix::Natural => (rng.random::<f64>() < self.terminate_share).then_some(ActionType::Terminate),
            Mix::Paper => {
                let whole: usize = PAPER_MIX.iter().map(|(_, weight)| weight).sum();
                let at = rng.random_range(0..whole as u64) as usize;
                PAPER_MIX.iter().flat_map(|(kind, weight)| iter::repeat_n(*kind, *weight)).nth(at)
            }
        }
    }

    /// A step of an expert's episode.
    fn on_episode(
        &self,
        goal: TaskId,
        kind: ExpertKind,
        wanted: Option<ActionType>,
        rng: &mut impl Rng,
    ) -> Option<DemonstratedStep> {
        let shop = self.task_set.shop_of(goal);
        let episode = match self.browsing {
            None => Expert::new(shop, self.results_shown).episode(goal.goal, kind)?,
            Some(habits) => self.successful_episode(shop, goal, habits, rng)?,
        };
        let steps: Vec<_> =
            episode.iter().map(|turn| (turn.thought.trim().to_owned(), turn.action.clone())).collect();
        let split = shop.goals().split_of(goal.goal).to_string();
        let about = ExampleOptions {
            source: ExampleSource::Demonstration,
            split: &split,
            buy_now_as: BuyNowAs::Click,
        };
        let mut examples = examples_of(shop, goal.goal, &steps, about);
        examples.retain(|example| wanted.is_none_or(|wanted| example.action.action_type() == wanted));
        let at = rng.random_range(0..examples.len().max(1) as u64) as usize;
        (at < examples.len())
            .then(|| DemonstratedStep { example: examples.swap_remove(at), episode: Some(episode) })
    }

    /// An episode of the browsing expert with a reward of 1; `None` if none of [`BROWSING_TRIES`] has it.
    fn successful_episode(
        &self,
        shop: &Shop,
        goal: TaskId,
        habits: BrowsingHabits,
        rng: &mut impl Rng,
    ) -> Option<Vec<ExpertTurn>> {
        let expert = BrowsingExpert::new(shop, self.results_shown, habits);
        let mut episodes = (0..BROWSING_TRIES).filter_map(|_| expert.episode(goal.goal, rng));
        let is_usable =
            |episode: &Demonstrated| episode.reward == 1.0 && episode.turns.len() <= self.max_steps as usize;
        episodes.find(is_usable).map(|episode| episode.turns)
    }

    /// A terminate example: a results page for the query of another goal.
    fn terminate_example(&self, goal: TaskId, rng: &mut impl Rng) -> Option<Example> {
        let shop = self.task_set.shop_of(goal);
        (0..TERMINATE_TRIES).find_map(|_| draw_terminate_example(shop, goal.goal, BuyNowAs::Click, rng))
    }
}

/// The first of some draws, numbered from 0, that has a step.
fn first_with_steps(mut draw: impl FnMut(u64) -> Result<SampledSteps>) -> Result<SampledSteps> {
    let mut drawn = draw(0);
    for retry in 1..BATCH_TRIES {
        if !matches!(drawn, Err(TrainingError::NoSteps { .. })) {
            break;
        }
        drawn = draw(retry);
    }
    drawn
}

#[cfg(test)]
mod tests;
