//! The completion of one step, compared with its gold action.
//!
//! [`score_steps`] returns a [`StepResult`] for each completion; [`scores_of`] computes the metrics of many.
//! A result as JSON is a line of a run's `completions/` and of `webshop shop-r1 eval --out`, and an input row
//! of `webshop shop-r1 score`. A prompt that is too long for a completion counts as an invalid completion.

use serde::{Deserialize, Serialize};
use webshop_agent::next_action::{
    Example, ExampleSource, FormatMode, NextAction, NextActionCompletion, WrittenAction,
};
use webshop_products::Seed;

use crate::next_action::baselines::instruction_of;
use crate::next_action::exactness::{Exactness, is_exact};
use crate::next_action::scores::{NextActionScores, evaluate};

/// [`StepResult::problem`] of a step whose prompt is too long.
const NO_ROOM: &str = "the prompt leaves no room for a completion";

/// A completion with its gold action, and whether they agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step's [`Example::id`].
    pub id: String,
    /// Source of the recorded step.
    pub source: ExampleSource,
    /// Split of its goal.
    pub split: String,
    /// Index of its goal, if known.
    pub goal: Option<u32>,
    /// Index of the step in its session.
    pub step: usize,
    /// The instruction, if the page shows it; the `copied instruction` baseline reads it.
    pub instruction: Option<String>,
    /// The gold action.
    pub ground_truth: NextAction,
    /// The whole completion; empty if the prompt left no room for one.
    pub completion: String,
    /// The parsed action; `None` if the completion is invalid.
    pub action: Option<WrittenAction>,
    /// Why the completion is invalid.
    pub problem: Option<String>,
    /// Whether the action type is right.
    pub is_type_right: bool,
    /// Whether the action is exact by [`Exactness::Soft`].
    pub is_exact: bool,
    /// Whether the action is exact by [`Exactness::String`].
    pub is_exact_string: bool,
}

/// The result of each completion, in order. `None` is a prompt that left no room for a completion.
///
/// # Panics
/// If the lengths differ.
pub fn score_steps(steps: &[Example], completions: &[Option<String>]) -> Vec<StepResult> {
    assert_eq!(steps.len(), completions.len(), "each step has one completion");
    let pairs = steps.iter().zip(completions);
    pairs.map(|(step, completion)| StepResult::of(step, completion.as_deref())).collect()
}

/// The metrics of these results. `seed` is for the bootstrap.
pub fn scores_of(results: &[StepResult], seed: Seed) -> NextActionScores {
    let golds: Vec<NextAction> = results.iter().map(|result| result.ground_truth.clone()).collect();
    let predicted: Vec<Option<WrittenAction>> = results.iter().map(|result| result.action.clone()).collect();
    evaluate(&golds, &predicted, seed)
}

impl StepResult {
    fn of(step: &Example, completion: Option<&str>) -> Self {
        let parsed = match completion {
            Some(completion) => {
                NextActionCompletion::read(completion, FormatMode::Json).map_err(|error| error.to_string())
            }
            None => Err(NO_ROOM.into()),
        };
        let (action, problem) = match parsed {
            Ok(parsed) => (Some(parsed.action), None),
            Err(problem) => (None, Some(problem)),
        };
        let gold = &step.action;
        let exact = |exactness| is_exact(action.as_ref(), gold, exactness);
        Self {
            id: step.id.clone(),
            source: step.source,
            split: step.split.clone(),
            goal: step.goal,
            step: step.step,
            instruction: instruction_of(&step.page).map(str::to_owned),
            ground_truth: gold.clone(),
            completion: completion.unwrap_or_default().to_owned(),
            is_type_right: action.as_ref().and_then(WrittenAction::action_type) == Some(gold.action_type()),
            is_exact: exact(Exactness::Soft),
            is_exact_string: exact(Exactness::String),
            action,
            problem,
        }
    }
}
