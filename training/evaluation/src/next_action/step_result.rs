//! A model's answer at one step, beside what was really done there.
//!
//! [`judge`] sets completions beside the steps and gives a [`Verdict`] for each; [`scores_of`] counts them. A verdict as JSON is
//! a line of a run's `answers` and of `webshop shop-r1 eval --out`, and a row that `webshop shop-r1 score` takes. A question
//! that was too long to be asked counts as answered by nothing.

use serde::{Deserialize, Serialize};
use webshop_agent::next_action::{Answer, FormatMode, NextAction, Sample, SampleSource, WrittenAction};
use webshop_products::Seed;

use crate::next_action::baselines::instruction_of;
use crate::next_action::evaluation::{NextActionScores, evaluate};
use crate::next_action::exactness::{Exactness, is_exact};

/// What is wrong with an answer that nobody was asked for.
const NO_ROOM: &str = "the prompt leaves no room for an answer";

/// An answer, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The step's [`Sample::id`].
    pub id: String,
    /// Who took the step.
    pub source: SampleSource,
    /// The split of its goal.
    pub split: String,
    /// The goal, if it is known.
    pub goal: Option<u32>,
    /// Its position in the visit.
    pub step: usize,
    /// What is wanted, if the page says so; some copy it.
    pub instruction: Option<String>,
    /// What was really done.
    pub ground_truth: NextAction,
    /// All that the model wrote; empty if its prompt left no room.
    pub completion: String,
    /// The action in it, if it could be read.
    pub action: Option<WrittenAction>,
    /// Why it could not.
    pub problem: Option<String>,
    /// Whether the type is right.
    pub is_type_right: bool,
    /// Whether it is right by [`Exactness::Soft`].
    pub is_exact: bool,
    /// Whether it is right by [`Exactness::String`].
    pub is_exact_string: bool,
}

/// A verdict on each completion; `None` stands for a prompt that left no room for one.
///
/// Panics if there are not as many of both.
pub fn judge(steps: &[Sample], completions: &[Option<String>]) -> Vec<Verdict> {
    assert_eq!(steps.len(), completions.len(), "every step has one answer");
    steps.iter().zip(completions).map(|(step, completion)| Verdict::of(step, completion.as_deref())).collect()
}

/// The figures of these verdicts. The seed is the bootstrap's.
pub fn scores_of(verdicts: &[Verdict], seed: Seed) -> NextActionScores {
    let golds: Vec<NextAction> = verdicts.iter().map(|verdict| verdict.ground_truth.clone()).collect();
    let written: Vec<Option<WrittenAction>> = verdicts.iter().map(|verdict| verdict.action.clone()).collect();
    evaluate(&golds, &written, seed)
}

impl Verdict {
    fn of(step: &Sample, completion: Option<&str>) -> Self {
        let read = match completion {
            Some(completion) => Answer::read(completion, FormatMode::Json).map_err(|error| error.to_string()),
            None => Err(NO_ROOM.into()),
        };
        let (action, problem) = match read {
            Ok(answer) => (Some(answer.action), None),
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
