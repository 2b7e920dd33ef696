//! Tables of next-action scores.
//!
//! [`overview`] has a row for each policy or baseline, [`by_type`] a row for each gold action type,
//! [`confusion`] the number of predictions of each type by gold type. Shares are in percent with 95 %
//! intervals; in the JSON of a [`ScoredRow`] they are from 0 to 1.

use serde::Serialize;
use webshop_agent::next_action::{ActionType, NextAction};

use crate::next_action::scores::{Estimate, NextActionScores, PREDICTED};
use crate::table::{Table, interval, percent};

/// The scores of a policy or baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredRow {
    /// Name of the policy or baseline.
    pub name: String,
    /// The predicted action, if it is the same at every step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<NextAction>,
    /// The scores.
    #[serde(flatten)]
    pub scores: NextActionScores,
}

/// A table line for each row.
pub fn overview(rows: &[ScoredRow]) -> Table {
    let head = ["policy", "exact", "exact string", "type", "macro F1", "weighted F1", "invalid"];
    let line = |row: &ScoredRow| {
        let NextActionScores {
            exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, ..
        } = row.scores;
        let figures = [exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate];
        [row.name.clone()].into_iter().chain(figures.map(with_interval)).collect()
    };
    Table { head: head.map(String::from).into(), rows: rows.iter().map(line).collect() }
}

/// A table line for each gold action type.
pub fn by_type(scores: &NextActionScores) -> Table {
    let head = ["gold action", "steps", "exact", "exact string", "type", "precision", "F1"];
    let line = |kind: ActionType| {
        let of = &scores.per_type[&kind];
        let rates = [of.exact_soft, of.exact_string, of.type_acc].map(with_interval);
        let counted = [kind.to_string(), of.support.to_string()];
        counted.into_iter().chain(rates).chain([of.precision, of.f1].map(percent)).collect()
    };
    Table { head: head.map(String::from).into(), rows: ActionType::ALL.map(line).into() }
}

/// The confusion matrix: rows are gold types, columns predicted types.
pub fn confusion(scores: &NextActionScores) -> Table {
    let head = ["gold action, predicted as"].into_iter().chain(PREDICTED).map(String::from);
    let line = |(kind, counts): (ActionType, &[usize; 5])| {
        [kind.to_string()].into_iter().chain(counts.iter().map(usize::to_string)).collect()
    };
    let rows = ActionType::ALL.into_iter().zip(&scores.confusion).map(line);
    Table { head: head.collect(), rows: rows.collect() }
}

/// The estimate in percent with its interval.
fn with_interval(estimate: Estimate) -> String {
    format!("{} {}", percent(estimate.value), interval(estimate.ci95))
}
