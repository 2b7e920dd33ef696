//! Single steps of demonstrations, drawn to be learned from or judged by.
//!
//! [`Steps`] gives each goal of the task_set one step for each visit, as a [`Example`]: a step of a customer's episode, or a
//! dead end, on which nothing is left but to leave. What is drawn depends on the seed, the goal and the visit alone.
//! Where [`RecordedSteps`] are there to be learned from, each of them stands in the place of a goal.
//! [`Steps::of`] puts steps into the tokens of an [`SingleStepSampler`].
//!
//! ```text
//! natural   with probability `terminate_share` a terminate example, else any step of the episode
//! paper     690 clicks : 677 searches : 512 terminate examples, each type's steps as likely as each other
//! ```
//!
//! Goals that nobody can demonstrate and prompts that leave no room for a completion are left out and counted in [`Drawn`]; a
//! draw of which nothing is left is an error. It makes no completions.

use std::collections::BTreeSet;
use std::iter;

use rand::Rng;
use rayon::prelude::*;
use webshop_agent::next_action::{ExampleOptions, ActionType, BuyNowAs, NextAction, PAPER_MIX, Example, ExampleSource, draw_terminate_example, examples_of, split_of};
use webshop_agent::{Expert, SingleStepSampler, ExpertKind};
use webshop_products::{Purpose, Seed, Split};

use crate::data::recorded_steps::RecordedSteps;
use crate::config::{Mix, ShopR1Config};
use crate::error::{Result, TrainingError};
use crate::data::task_set::{TaskSet, TaskId};
use crate::data::trajectory::Trajectory;

/// What a draw is for, beside the seed.
const DRAWS_GOALS: u64 = 2;
const DRAWS_STEP: u64 = 3;
/// Other goals whose searches are tried for a terminate example.
const DEAD_END_TRIES: u64 = 8;

/// Draws steps.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    /// Where the goals are.
    pub task_set: &'a TaskSet,
    /// Products of a results page that demonstrations choose from.
    pub results_shown: usize,
    /// Which steps.
    pub config: &'a ShopR1Config,
    /// Steps of a file in the place of demonstrations.
    pub recorded: Option<&'a RecordedSteps>,
    /// Where the draws come from.
    pub seed: Seed,
}

/// A step in tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The goal it is on the way to.
    pub goal: TaskId,
    /// Position in the episode, from 0.
    pub turn: usize,
    /// What is read.
    pub prompt_ids: Vec<u32>,
    /// The demonstrated completion, with the token that ends it.
    pub completion_ids: Vec<u32>,
    /// What was really done.
    pub gold: NextAction,
}

impl Step {
    /// `sample`, on the way to `goal`, in tokens; `None` if its prompt leaves no room for a completion.
    pub fn render(sampler: &SingleStepSampler<'_>, goal: TaskId, sample: &Example) -> Result<Option<Self>> {
        let Some(prompt_ids) = sampler.prompt(sample)? else { return Ok(None) };
        let completion_ids = sampler.gold(sample)?;
        Ok(Some(Self { goal, turn: sample.step, prompt_ids, completion_ids, gold: sample.action.clone() }))
    }

    /// The demonstrated completion behind its prompt, to clone.
    pub fn demonstration(&self) -> Trajectory {
        let mut step = Trajectory::new();
        step.push_observation(&self.prompt_ids);
        step.push_completion(&self.completion_ids, &vec![0.0; self.completion_ids.len()]);
        step
    }
}

/// Steps, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// In the order of the goals.
    pub steps: Vec<Step>,
    /// The position of each step's goal among the goals.
    pub places: Vec<usize>,
    /// Goals without a demonstration.
    pub undemonstrated: usize,
    /// Steps whose prompt leaves no room for a completion, or whose own is longer than one may be.
    pub too_long: usize,
}

impl Drawn {
    /// How many were left out.
    pub fn n_dropped(&self) -> usize {
        self.undemonstrated + self.too_long
    }
}

/// What came of a draw.
enum Draw {
    Step(Step),
    Undemonstrated,
    TooLong,
}

impl Steps<'_> {
    /// The first visit at which steps are drawn to judge by.
    const HELD_OUT: u64 = 1 << 40;
    /// How often goals are come to at most, where there are fewer of them than steps to judge by.
    const MOST_VISITS: u64 = 100;

    /// `n` different steps of held-out goals to judge by, the same for every run and seed: one of each goal, then another of
    /// each, and so on; fewer if the goals have no more.
    pub fn held_out(
        task_set: &TaskSet,
        results_shown: usize,
        config: &ShopR1Config,
        split: Split,
        n: usize,
    ) -> Vec<(TaskId, Example)> {
        let steps = Steps { task_set, results_shown, config, recorded: None, seed: Seed(0) };
        let goals = task_set.held_out(split, n);
        let visits = (0..Self::MOST_VISITS).map(|visit| Self::HELD_OUT + visit);
        let each =
            visits.flat_map(|visit| goals.iter().map(move |&goal| (TaskId { shop: 0, goal }, visit)));
        let mut met = BTreeSet::new();
        each.filter_map(|(goal, visit)| Some((goal, steps.sample(goal, ExpertKind::Thinking, visit)?)))
            .filter(|(_, sample)| met.insert(sample.id.clone()))
            .take(n)
            .collect()
    }

    /// The thinking expert's steps for `goals` on the `visit`-th visit of each, for optimizer step `step`.
    ///
    /// # Errors
    /// [`TrainingError::NoSteps`] if none is left.
    pub fn of(
        &self,
        sampler: &SingleStepSampler<'_>,
        goals: &[TaskId],
        visit: u64,
        step: u64,
    ) -> Result<Drawn> {
        let told: Vec<_> = goals.iter().map(|&goal| (goal, ExpertKind::Thinking)).collect();
        self.told(sampler, &told, visit, step)
    }

    /// The steps of these customers.
    fn told(
        &self,
        sampler: &SingleStepSampler<'_>,
        goals: &[(TaskId, ExpertKind)],
        visit: u64,
        step: u64,
    ) -> Result<Drawn> {
        let draw = |&(goal, kind): &(TaskId, ExpertKind)| match self.sample(goal, kind, visit) {
            None => Ok(Draw::Undemonstrated),
            Some(sample) => Ok(Step::render(sampler, goal, &sample)?
                .filter(|step| step.completion_ids.len() <= sampler.max_completion_tokens())
                .map_or(Draw::TooLong, Draw::Step)),
        };
        let draws: Vec<Result<Draw>> = goals.par_iter().map(draw).collect();
        let mut drawn = Drawn::default();
        for (place, draw) in draws.into_iter().enumerate() {
            match draw? {
                Draw::Step(step) => {
                    drawn.steps.push(step);
                    drawn.places.push(place);
                }
                Draw::Undemonstrated => drawn.undemonstrated += 1,
                Draw::TooLong => drawn.too_long += 1,
            }
        }
        if drawn.steps.is_empty() {
            let Drawn { undemonstrated, too_long, .. } = drawn;
            return Err(TrainingError::NoSteps { step, drawn: goals.len(), undemonstrated, too_long });
        }
        Ok(drawn)
    }

    /// Demonstrations of `n` drawn training goals, to clone at optimizer step `step`; a `thinking_share` of them by the careful
    /// customer, the rest by the hasty one.
    pub fn batch(
        &self,
        sampler: &SingleStepSampler<'_>,
        thinking_share: f64,
        step: u64,
        n: usize,
    ) -> Result<Vec<Trajectory>> {
        let mut rng = self.seed.rng(Purpose::Steps, &[DRAWS_GOALS, step]);
        let goals = self.addresses();
        let told: Vec<(TaskId, ExpertKind)> = (0..n)
            .map(|_| {
                let goal = goals[rng.random_range(0..goals.len() as u64) as usize];
                let careful = rng.random::<f64>() < thinking_share;
                (goal, if careful { ExpertKind::Thinking } else { ExpertKind::NoThinking })
            })
            .collect();
        // The same goal is another step in another batch.
        let drawn = self.told(sampler, &told, step, step)?;
        Ok(drawn.steps.iter().map(Step::demonstration).collect())
    }

    /// All goals of which there may be a step to learn from.
    pub fn addresses(&self) -> &[TaskId] {
        match self.recorded {
            Some(recorded) => recorded.addresses(),
            None => self.task_set.training(),
        }
    }

    /// The step of `goal` on this visit; `None` if such a customer can demonstrate none.
    pub fn sample(&self, goal: TaskId, kind: ExpertKind, visit: u64) -> Option<Example> {
        if let Some(recorded) = self.recorded {
            return recorded.at(goal).cloned();
        }
        let coordinates = [DRAWS_STEP, visit, u64::from(goal.shop), u64::from(goal.goal.0)];
        let mut rng = self.seed.rng(Purpose::Steps, &coordinates);
        match self.wanted(&mut rng) {
            Some(ActionType::Terminate) => self.terminate_example(goal, &mut rng),
            wanted => self.on_episode(goal, kind, wanted, &mut rng),
        }
    }

    /// The type of the step to draw; `None` for any but a terminate example.
    fn wanted(&self, rng: &mut impl Rng) -> Option<ActionType> {
        match self.config.mix {
            Mix::Natural => (rng.random::<f64>() < self.config.terminate_share).then_some(ActionType::Terminate),
            Mix::Paper => {
                let whole: usize = PAPER_MIX.iter().map(|(_, weight)| weight).sum();
                let at = rng.random_range(0..whole as u64) as usize;
                PAPER_MIX.iter().flat_map(|(kind, weight)| iter::repeat_n(*kind, *weight)).nth(at)
            }
        }
    }

    /// A step of a customer's episode.
    fn on_episode(
        &self,
        goal: TaskId,
        kind: ExpertKind,
        wanted: Option<ActionType>,
        rng: &mut impl Rng,
    ) -> Option<Example> {
        let shop = self.task_set.shop_of(goal);
        let turns = Expert::new(shop, self.results_shown).episode(goal.goal, kind)?;
        let told = turns.into_iter().map(|turn| {
            let thought = &turn.thought;
            (thought.trim().to_owned(), turn.action)
        });
        let steps: Vec<_> = told.collect();
        let split = split_of(shop.goals(), goal.goal).to_string();
        let about = ExampleOptions { source: ExampleSource::Demonstration, split: &split, buy_now_as: BuyNowAs::Click };
        let mut samples = examples_of(shop, goal.goal, &steps, about);
        samples.retain(|sample| wanted.is_none_or(|wanted| sample.action.action_type() == wanted));
        let at = rng.random_range(0..samples.len().max(1) as u64) as usize;
        (at < samples.len()).then(|| samples.swap_remove(at))
    }

    /// A page of results for what somebody else wants.
    fn terminate_example(&self, goal: TaskId, rng: &mut impl Rng) -> Option<Example> {
        let shop = self.task_set.shop_of(goal);
        (0..DEAD_END_TRIES).find_map(|_| draw_terminate_example(shop, goal.goal, BuyNowAs::Click, rng))
    }
}
