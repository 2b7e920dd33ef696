//! What a set of answers amounts to: the next-action table.
//!
//! [`evaluate`] sets each answer beside its gold action and gives [`NextActionScores`]: how often the whole action is
//! right, how often its type, and how well the types are told apart.
//!
//! ```text
//! F1(type) = 2·TP / (gold of this type + answered with this type); 0 where there are none of either
//! macro    = the mean of the three; weighted = their mean by how many gold actions there are of each
//! ```
//!
//! The paper says F1 and means the weighted one: a macro F1 of two of its rows is out of reach at their accuracy. An
//! answer that could not be read is wrong in every count, and so is one of a type that does not exist. Intervals are
//! Wilson's for rates and a percentile bootstrap over the steps for F1. It compares with nothing; see [`crate::next_action::always`].

use std::array;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use webshop_agent::next_action::{ActionType, NextAction, WrittenAction};
use webshop_products::Seed;

use crate::next_action::exactness::{Exactness, is_exact};
use crate::statistics::{bootstrap, wilson_interval};

/// A figure from 0 to 1, and the bounds that hold the truth in 95 of 100 repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub ci95: [f64; 2],
}

impl Measured {
    /// A share of `n`; 0 of none.
    fn rate(count: usize, n: usize) -> Self {
        Self { value: count as f64 / n.max(1) as f64, ci95: wilson_interval(count, n) }
    }
}

/// The figures of a set of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextActionScores {
    /// How many steps.
    pub n: usize,
    /// Share of the right action, queries by [`Exactness::Soft`].
    pub exact_soft: Measured,
    /// Share of the right action, queries by [`Exactness::String`].
    pub exact_string: Measured,
    /// Share of the right type.
    pub type_acc: Measured,
    /// F1 over the types, each counting the same.
    pub macro_f1: Measured,
    /// F1 over the types by how frequent they are.
    pub weighted_f1: Measured,
    /// Share of answers that could not be read.
    pub invalid_rate: Measured,
    /// The same by the type of the gold action.
    pub per_type: BTreeMap<ActionType, TypeScores>,
    /// How many steps of each type, in the order of [`ActionType::ALL`], were answered with each of [`WRITTEN_AS`].
    pub confusion: Confusion,
}

impl fmt::Display for NextActionScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |it: Measured| {
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

/// The figures of the steps whose gold action is of one type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeScores {
    /// How many.
    pub support: usize,
    /// See [`NextActionScores::exact_soft`].
    pub exact_soft: Measured,
    /// See [`NextActionScores::exact_string`].
    pub exact_string: Measured,
    /// Share of them that were answered with this type: its recall.
    pub type_acc: Measured,
    /// Share of this type among the steps that were answered with it; 0 where none was.
    pub precision: f64,
    /// The F1 of the type.
    pub f1: f64,
}

/// What an answer can be written as: a type, one that does not exist, or nothing that could be read.
pub const WRITTEN_AS: [&str; 5] = ["click", "type_and_submit", "terminate", "other", "invalid"];

/// The position of a type that does not exist, and of nothing that could be read.
const OTHER: usize = 3;
const INVALID: usize = 4;

/// Rows are gold types, columns [`WRITTEN_AS`].
type Confusion = [[usize; 5]; 3];

/// One step, as it is counted.
struct Step {
    gold: usize,
    written: usize,
    is_soft: bool,
    is_string: bool,
}

impl Step {
    fn new(gold: &NextAction, written: Option<&WrittenAction>) -> Self {
        let written_as = |it: &WrittenAction| it.action_type().map_or(OTHER, |kind| kind as usize);
        Self {
            gold: gold.action_type() as usize,
            written: written.map_or(INVALID, written_as),
            is_soft: is_exact(written, gold, Exactness::Soft),
            is_string: is_exact(written, gold, Exactness::String),
        }
    }
}

/// Counts answers against what the customers did; `None` stands for one that could not be read. The seed is the
/// bootstrap's. No steps give zeros, about which nothing is known.
///
/// Panics if there are not as many of both.
pub fn evaluate(golds: &[NextAction], answers: &[Option<WrittenAction>], seed: Seed) -> NextActionScores {
    assert_eq!(golds.len(), answers.len(), "every step has one answer");
    let steps = golds.iter().zip(answers).map(|(gold, answer)| Step::new(gold, answer.as_ref()));
    let steps: Vec<Step> = steps.collect();
    let n = steps.len();
    let confusion = count(steps.iter());
    let rate = |holds: fn(&Step) -> bool| Measured::rate(steps.iter().filter(|step| holds(step)).count(), n);
    let resampled = |of: fn(&Confusion) -> f64| Measured {
        value: of(&confusion),
        ci95: bootstrap(n, seed, |drawn| of(&count(drawn.iter().map(|at| &steps[*at])))),
    };
    let per_type = ActionType::ALL.map(|kind| (kind, of_type(kind as usize, &steps, &confusion)));
    NextActionScores {
        n,
        exact_soft: rate(|step| step.is_soft),
        exact_string: rate(|step| step.is_string),
        type_acc: rate(|step| step.gold == step.written),
        macro_f1: resampled(macro_f1),
        weighted_f1: resampled(weighted_f1),
        invalid_rate: rate(|step| step.written == INVALID),
        per_type: per_type.into(),
        confusion,
    }
}

fn of_type(kind: usize, steps: &[Step], confusion: &Confusion) -> TypeScores {
    let support = support(confusion, kind);
    let rate = |holds: fn(&Step) -> bool| {
        Measured::rate(steps.iter().filter(|step| step.gold == kind && holds(step)).count(), support)
    };
    TypeScores {
        support,
        exact_soft: rate(|step| step.is_soft),
        exact_string: rate(|step| step.is_string),
        type_acc: rate(|step| step.gold == step.written),
        precision: confusion[kind][kind] as f64 / written(confusion, kind).max(1) as f64,
        f1: f1(confusion, kind),
    }
}

fn count<'a>(steps: impl Iterator<Item = &'a Step>) -> Confusion {
    let mut counts = Confusion::default();
    for step in steps {
        counts[step.gold][step.written] += 1;
    }
    counts
}

fn support(confusion: &Confusion, kind: usize) -> usize {
    confusion[kind].iter().sum()
}

fn written(confusion: &Confusion, kind: usize) -> usize {
    confusion.iter().map(|row| row[kind]).sum()
}

fn f1(confusion: &Confusion, kind: usize) -> f64 {
    let both = support(confusion, kind) + written(confusion, kind);
    (2 * confusion[kind][kind]) as f64 / both.max(1) as f64
}

fn macro_f1(confusion: &Confusion) -> f64 {
    array::from_fn::<f64, 3, _>(|kind| f1(confusion, kind)).iter().sum::<f64>() / 3.0
}

fn weighted_f1(confusion: &Confusion) -> f64 {
    let supports: [usize; 3] = array::from_fn(|kind| support(confusion, kind));
    let weighted = supports.iter().enumerate().map(|(kind, support)| *support as f64 * f1(confusion, kind));
    weighted.sum::<f64>() / supports.iter().sum::<usize>().max(1) as f64
}
