//! The next-action table: ways to answer, side by side on the same steps.
//!
//! A [`ScoredRow`] is a way to answer with its figures. [`overview`] sets rows one below the other, [`by_type`] parts one of
//! them by the type of the gold action, [`confusion`] counts what was answered in place of what. Shares are in percent, with
//! their 95 % intervals where there are such. As JSON a row has the same figures, as shares from 0 to 1.

use serde::Serialize;
use webshop_agent::next_action::{ActionType, NextAction};

use crate::next_action::evaluation::{Measured, NextActionScores, WRITTEN_AS};
use crate::table::{Table, interval, percent};

/// A way to answer, and what its answers amount to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredRow {
    /// What it is called.
    pub name: String,
    /// What is always answered, where it is one and the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<NextAction>,
    /// The figures.
    #[serde(flatten)]
    pub scores: NextActionScores,
}

/// A line for each row.
pub fn overview(rows: &[ScoredRow]) -> Table {
    let head = ["answers", "exact", "exact string", "type", "macro F1", "weighted F1", "invalid"];
    let line = |row: &ScoredRow| {
        let NextActionScores {
            exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, ..
        } = row.scores;
        let figures = [exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate];
        [row.name.clone()].into_iter().chain(figures.map(measured)).collect()
    };
    Table { head: head.map(String::from).into(), rows: rows.iter().map(line).collect() }
}

/// A line for each type of the gold action.
pub fn by_type(scores: &NextActionScores) -> Table {
    let head = ["gold action", "steps", "exact", "exact string", "type", "precision", "F1"];
    let line = |kind: ActionType| {
        let of = &scores.per_type[&kind];
        let rates = [of.exact_soft, of.exact_string, of.type_acc].map(measured);
        let counted = [kind.to_string(), of.support.to_string()];
        counted.into_iter().chain(rates).chain([of.precision, of.f1].map(percent)).collect()
    };
    Table { head: head.map(String::from).into(), rows: ActionType::ALL.map(line).into() }
}

/// How many steps of each type were answered with what.
pub fn confusion(scores: &NextActionScores) -> Table {
    let head = ["gold action, answered with"].into_iter().chain(WRITTEN_AS).map(String::from);
    let line = |(kind, counts): (ActionType, &[usize; 5])| {
        [kind.to_string()].into_iter().chain(counts.iter().map(usize::to_string)).collect()
    };
    let rows = ActionType::ALL.into_iter().zip(&scores.confusion).map(line);
    Table { head: head.collect(), rows: rows.collect() }
}

/// In percent, with the interval.
fn measured(of: Measured) -> String {
    format!("{} {}", percent(of.value), interval(of.ci95))
}
