//! Next-action scores of the arms of a comparison, and of the baselines without a model.

use webshop_evaluation::mean;
use webshop_evaluation::next_action::{NextActionScores, ScoredRow, baselines, scores_of};
use webshop_evaluation::table::{Table, percent};
use webshop_products::Seed;
use webshop_training::sweep::{ArmOutcome, RunOutcome};

use crate::sweep::over_seeds::{ArmDifference, differences, share_interval};
use crate::sweep::table::share_cell;

/// Seed of the bootstraps of the baselines.
const BOOTSTRAP_SEED: Seed = Seed(0);

/// Next-action scores of an arm or of a baseline without a model. Rates are shares from 0 to 1.
pub(super) struct NextActionRow {
    pub(crate) name: String,
    /// Share of exact actions: mean over runs and steps.
    pub(crate) exact: f64,
    /// 95 % interval over seeds, `None` for a single one; of a baseline over steps.
    pub(crate) exact_interval: Option<[f64; 2]>,
    /// Share of exact actions of each run; empty for a baseline.
    pub(crate) exact_by_run: Vec<f64>,
    /// Difference to the baseline arm, formatted; empty for a baseline without a model.
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
    let rates: Vec<Vec<f64>> = arms.iter().map(exact_by_run).collect();
    let of_arm = |(arm, (exact_by_run, difference)): (&ArmOutcome, (&Vec<f64>, Option<ArmDifference>))| {
        let scores = arm.runs.iter().map(|run| scores_of(&run.step_results, BOOTSTRAP_SEED));
        let by_run: Vec<[f64; 5]> = scores.map(|scores| other_scores(&scores)).collect();
        NextActionRow {
            name: arm.name.clone(),
            exact: mean(exact_by_run),
            exact_interval: share_interval(exact_by_run),
            exact_by_run: exact_by_run.clone(),
            difference: difference.as_ref().map_or("baseline".into(), ArmDifference::cell),
            other_scores: std::array::from_fn(|i| mean(&by_run.iter().map(|run| run[i]).collect::<Vec<_>>())),
        }
    };
    let without_model = |row: ScoredRow| NextActionRow {
        name: row.name,
        exact: row.scores.exact_soft.value,
        exact_interval: Some(row.scores.exact_soft.ci95),
        exact_by_run: Vec::new(),
        difference: String::new(),
        other_scores: other_scores(&row.scores),
    };
    let steps = results.iter().map(|result| (&result.ground_truth, result.instruction.as_deref()));
    let without_model = baselines(steps, BOOTSTRAP_SEED).into_iter().map(without_model);
    let compared = rates.iter().zip(differences(&rates, baseline));
    arms.iter().zip(compared).map(of_arm).chain(without_model).collect()
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
        let exact = share_cell(of.exact, of.exact_interval);
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

/// The share of exact actions of each run. All runs have the same steps.
fn exact_by_run(arm: &ArmOutcome) -> Vec<f64> {
    let share = |run: &RunOutcome| {
        let n_exact = run.step_results.iter().filter(|result| result.is_exact).count();
        n_exact as f64 / run.step_results.len().max(1) as f64
    };
    arm.runs.iter().map(share).collect()
}
