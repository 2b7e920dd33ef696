//! Next-action scores of the arms of a comparison, and of the baselines without a model.

use webshop_evaluation::next_action::{NextActionScores, ScoredRow, StepResult, baselines, scores_of};
use webshop_evaluation::table::{Table, interval, percent};
use webshop_evaluation::{crossed_bootstrap, mean};
use webshop_training::sweep::{ArmOutcome, RunOutcome};

use crate::sweep::table::{BOOTSTRAP_SEED, by_goal, difference_cell, paired_difference};

/// Next-action scores of an arm or of a baseline without a model. Rates are shares from 0 to 1.
pub(super) struct NextActionRow {
    pub(crate) name: String,
    /// Share of exact actions: mean over runs and steps.
    pub(crate) exact: f64,
    /// 95 % interval over seeds and steps; of a baseline over steps.
    pub(crate) exact_interval: [f64; 2],
    /// Share of exact actions of each run; empty for a baseline.
    pub(crate) exact_by_run: Vec<f64>,
    /// Difference to the baseline arm with its interval over steps, formatted; empty for a baseline without a
    /// model.
    difference: String,
    /// Means over runs of exact string, type accuracy, macro F1, weighted F1, invalid rate.
    other_scores: [f64; 5],
}

/// The rows of all arms in order, then those of the baselines without a model; empty if the runs have no step
/// results.
pub(super) fn next_action_rows(arms: &[ArmOutcome], baseline: usize) -> Vec<NextActionRow> {
    let Some(results) = arms.first().and_then(|arm| arm.runs.first()).map(|run| &run.step_results) else {
        return Vec::new();
    };
    if results.is_empty() {
        return Vec::new();
    }
    let before = by_goal(&exact(&arms[baseline]));
    let of_arm = |(number, arm): (usize, &ArmOutcome)| {
        let exact = exact(arm);
        let scores = arm.runs.iter().map(|run| scores_of(&run.step_results, BOOTSTRAP_SEED));
        let by_run: Vec<[f64; 5]> = scores.map(|scores| other_scores(&scores)).collect();
        NextActionRow {
            name: arm.name.clone(),
            exact: mean(&exact.concat()),
            exact_interval: crossed_bootstrap(&exact, BOOTSTRAP_SEED),
            exact_by_run: exact.iter().map(|run| mean(run)).collect(),
            difference: if number == baseline {
                "baseline".into()
            } else {
                difference_cell(paired_difference(&before, &by_goal(&exact)))
            },
            other_scores: std::array::from_fn(|i| mean(&by_run.iter().map(|run| run[i]).collect::<Vec<_>>())),
        }
    };
    let without_model = |row: ScoredRow| NextActionRow {
        name: row.name,
        exact: row.scores.exact_soft.value,
        exact_interval: row.scores.exact_soft.ci95,
        exact_by_run: Vec::new(),
        difference: String::new(),
        other_scores: other_scores(&row.scores),
    };
    let steps = results.iter().map(|result| (&result.ground_truth, result.instruction.as_deref()));
    let without_model = baselines(steps, BOOTSTRAP_SEED).into_iter().map(without_model);
    arms.iter().enumerate().map(of_arm).chain(without_model).collect()
}

/// The rows as a table; `None` without rows.
pub(super) fn table(rows: &[NextActionRow], baseline: usize) -> Option<Table> {
    let head = [
        "arm",
        "exact action, %",
        "by seed",
        &format!("against {}", rows.get(baseline)?.name),
        "exact string, %",
        "type, %",
        "macro F1, %",
        "weighted F1, %",
        "invalid, %",
    ];
    let row = |of: &NextActionRow| {
        let exact = format!("{} {}", percent(of.exact), interval(of.exact_interval));
        let by_run: Vec<String> = of.exact_by_run.iter().map(|run| percent(*run)).collect();
        [of.name.clone(), exact, by_run.join(", "), of.difference.clone()]
            .into_iter()
            .chain(of.other_scores.map(percent))
            .collect()
    };
    Some(Table { head: head.map(String::from).into(), rows: rows.iter().map(row).collect() })
}

fn other_scores(scores: &NextActionScores) -> [f64; 5] {
    let NextActionScores { exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, .. } = scores;
    [exact_string, type_acc, macro_f1, weighted_f1, invalid_rate].map(|estimate| estimate.value)
}

/// 1 for each exact action, else 0, `[runs, steps]`.
fn exact(arm: &ArmOutcome) -> Vec<Vec<f64>> {
    let of_step = |result: &StepResult| f64::from(u8::from(result.is_exact));
    let of_run = |run: &RunOutcome| run.step_results.iter().map(of_step).collect();
    arm.runs.iter().map(of_run).collect()
}
