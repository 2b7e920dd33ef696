//! Metrics of a set of predicted actions.
//!
//! [`evaluate`] compares each prediction with its gold action and returns [`NextActionScores`]: exact
//! accuracy, type accuracy, F1 over types, the rate of invalid completions, and the confusion matrix.
//!
//! ```text
//! F1(type) = 2·TP / (gold actions of the type + predictions of the type); 0 if there are none of either
//! macro    = mean over the types that occur, as gold actions or predictions; weighted = mean weighted by the number of gold actions of each type
//! ```
//!
//! The paper's F1 is the weighted one: two of its rows have a type accuracy at which their F1 is impossible
//! as macro F1. An invalid completion and an unknown type are wrong in every metric. Intervals are Wilson's
//! for rates and a percentile bootstrap over steps for F1.

use std::array;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_agent::next_action::{ActionType, NextAction, WrittenAction};
use webshop_products::Seed;

use crate::next_action::exactness::{Exactness, is_exact};
use crate::statistics::{bootstrap, wilson_interval};

/// A measured rate or F1 from 0 to 1 with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// The 95 % interval `[low, high]`.
    pub ci95: [f64; 2],
}

impl Estimate {
    /// The rate `count / n`; 0 for `n = 0`.
    fn rate(count: usize, n: usize) -> Self {
        Self { value: count as f64 / n.max(1) as f64, ci95: wilson_interval(count, n) }
    }
}

/// Metrics of a set of predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextActionScores {
    /// Number of steps.
    pub n: usize,
    /// Share of exact actions by [`Exactness::Soft`].
    pub exact_soft: Estimate,
    /// Share of exact actions by [`Exactness::String`].
    pub exact_string: Estimate,
    /// Share of the right action type.
    pub type_acc: Estimate,
    /// Unweighted mean of the F1 of the types that occur, as gold actions or predictions. The prompt formats `compact` and
    /// `text` have no `terminate`.
    pub macro_f1: Estimate,
    /// Mean of the F1 of the types, weighted by support.
    pub weighted_f1: Estimate,
    /// Share of invalid completions.
    pub invalid_rate: Estimate,
    /// Metrics by gold action type.
    pub per_type: BTreeMap<ActionType, TypeScores>,
    /// Number of steps by gold type (rows, as [`ActionType::ALL`]) and prediction (columns: the same types,
    /// any other type, an invalid completion).
    pub confusion: Confusion,
}

impl fmt::Display for NextActionScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |it: Estimate| {
            format!("{:.1} % [{:.1}, {:.1}]", 100.0 * it.value, 100.0 * it.ci95[0], 100.0 * it.ci95[1])
        };
        write!(
            f,
            "exact action {}, type {}, macro F1 {} over {} steps",
            percent(self.exact_soft),
            percent(self.type_acc),
            percent(self.macro_f1),
            self.n
        )
    }
}

/// Metrics of the steps with one gold action type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeScores {
    /// Number of these steps.
    pub support: usize,
    /// See [`NextActionScores::exact_soft`].
    pub exact_soft: Estimate,
    /// See [`NextActionScores::exact_string`].
    pub exact_string: Estimate,
    /// Share of them with a prediction of this type: the recall of the type.
    pub type_acc: Estimate,
    /// Share of this gold type among the predictions of this type; 0 without predictions.
    pub precision: f64,
    /// The F1 of the type.
    pub f1: f64,
}

/// The columns of the confusion matrix: a type, an unknown type, or an invalid completion.
pub(crate) const PREDICTED: [&str; 5] = ["click", "type_and_submit", "terminate", "other", "invalid"];

/// Indices of the last two entries of [`PREDICTED`].
const OTHER: usize = 3;
const INVALID: usize = 4;

/// Rows are gold types, columns [`PREDICTED`].
type Confusion = [[usize; 5]; 3];

/// Row, column and exactness of one step.
struct Step {
    gold: usize,
    predicted: usize,
    is_soft: bool,
    is_string: bool,
}

impl Step {
    fn new(gold: &NextAction, predicted: Option<&WrittenAction>) -> Self {
        let column = |it: &WrittenAction| it.action_type().map_or(OTHER, |kind| kind as usize);
        Self {
            gold: gold.action_type() as usize,
            predicted: predicted.map_or(INVALID, column),
            is_soft: is_exact(predicted, gold, Exactness::Soft),
            is_string: is_exact(predicted, gold, Exactness::String),
        }
    }
}

/// Metrics of predictions against gold actions. `None` is an invalid completion; `seed` is for the bootstrap.
/// No steps give zeros.
///
/// # Panics
/// If the lengths differ.
pub fn evaluate(golds: &[NextAction], predicted: &[Option<WrittenAction>], seed: Seed) -> NextActionScores {
    assert_eq!(golds.len(), predicted.len(), "each step has one prediction");
    let steps = golds.iter().zip(predicted).map(|(gold, predicted)| Step::new(gold, predicted.as_ref()));
    let steps: Vec<Step> = steps.collect();
    let n = steps.len();
    let confusion = count(steps.iter());
    let rate = |holds: fn(&Step) -> bool| Estimate::rate(steps.iter().filter(|step| holds(step)).count(), n);
    let occurs = |kind: &usize| support(&confusion, *kind) + n_predicted(&confusion, *kind) > 0;
    let types: Vec<usize> = (0..ActionType::ALL.len()).filter(occurs).collect();
    let resampled = |of: &dyn Fn(&Confusion) -> f64| Estimate {
        value: of(&confusion),
        ci95: bootstrap(n, seed, |drawn| of(&count(drawn.iter().map(|idx| &steps[*idx])))),
    };
    let per_type = ActionType::ALL.map(|kind| (kind, of_type(kind as usize, &steps, &confusion)));
    NextActionScores {
        n,
        exact_soft: rate(|step| step.is_soft),
        exact_string: rate(|step| step.is_string),
        type_acc: rate(|step| step.gold == step.predicted),
        macro_f1: resampled(&|counts| macro_f1(counts, &types)),
        weighted_f1: resampled(&weighted_f1),
        invalid_rate: rate(|step| step.predicted == INVALID),
        per_type: per_type.into(),
        confusion,
    }
}

fn of_type(kind: usize, steps: &[Step], confusion: &Confusion) -> TypeScores {
    let support = support(confusion, kind);
    let rate = |holds: fn(&Step) -> bool| {
        Estimate::rate(steps.iter().filter(|step| step.gold == kind && holds(step)).count(), support)
    };
    TypeScores {
        support,
        exact_soft: rate(|step| step.is_soft),
        exact_string: rate(|step| step.is_string),
        type_acc: rate(|step| step.gold == step.predicted),
        precision: confusion[kind][kind] as f64 / n_predicted(confusion, kind).max(1) as f64,
        f1: f1(confusion, kind),
    }
}

fn count<'a>(steps: impl Iterator<Item = &'a Step>) -> Confusion {
    let mut counts = Confusion::default();
    for step in steps {
        counts[step.gold][step.predicted] += 1;
    }
    counts
}

fn support(confusion: &Confusion, kind: usize) -> usize {
    confusion[kind].iter().sum()
}

fn n_predicted(confusion: &Confusion, kind: usize) -> usize {
    confusion.iter().map(|row| row[kind]).sum()
}

fn f1(confusion: &Confusion, kind: usize) -> f64 {
    let both = support(confusion, kind) + n_predicted(confusion, kind);
    (2 * confusion[kind][kind]) as f64 / both.max(1) as f64
}

/// The mean over `types`; 0 without any.
fn macro_f1(confusion: &Confusion, types: &[usize]) -> f64 {
    types.iter().map(|kind| f1(confusion, *kind)).sum::<f64>() / types.len().max(1) as f64
}

fn weighted_f1(confusion: &Confusion) -> f64 {
    let supports: [usize; 3] = array::from_fn(|kind| support(confusion, kind));
    let weighted = supports.iter().enumerate().map(|(kind, support)| *support as f64 * f1(confusion, kind));
    weighted.sum::<f64>() / supports.iter().sum::<usize>().max(1) as f64
}
