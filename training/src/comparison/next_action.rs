//! What was said at held-out steps: the next-action figures of a comparison.

use super::outcome::{ArmOutcome, RunOutcome};
use super::table::{BOOTSTRAP_SEED, by_goal, signed};
use crate::shop_r1::{Measured, NextActionScores, ScoredRow, Verdict, baselines, scores_of};
use crate::statistics::{crossed_bootstrap, mean, paired_bootstrap};
use crate::table::{Table, interval, percent};

/// How often the whole action was right, as a share.
pub(super) struct ExactActions {
    pub name: String,
    /// Mean over runs and steps.
    pub rate: f64,
    /// Of 95 %: over seeds and steps, or over steps where nothing is drawn from a seed.
    pub interval: [f64; 2],
    /// Of each run; empty of what needs no model.
    pub by_run: Vec<f64>,
}

/// Those of all arms in order, then those of what needs no model; none where no steps were judged.
pub(super) fn exact_rates(arms: &[ArmOutcome]) -> Option<Vec<ExactActions>> {
    let of_arm = |arm: &ArmOutcome| {
        let exact = exact(arm);
        ExactActions {
            name: arm.name.clone(),
            rate: mean(&exact.concat()),
            interval: crossed_bootstrap(&exact, BOOTSTRAP_SEED),
            by_run: exact.iter().map(|run| mean(run)).collect(),
        }
    };
    let of_row = |row: ScoredRow| ExactActions {
        name: row.name,
        rate: row.scores.exact_soft.value,
        interval: row.scores.exact_soft.ci95,
        by_run: Vec::new(),
    };
    Some(arms.iter().map(of_arm).chain(without_model(judged(arms)?).into_iter().map(of_row)).collect())
}

/// The table of all arms, and of what needs no model; none where no steps were judged.
pub(super) fn table(arms: &[ArmOutcome], baseline: usize) -> Option<Table> {
    let exact_rates = exact_rates(arms)?;
    let name = &arms[baseline].name;
    let head = [
        "arm",
        "exact action, %",
        "of each seed",
        &format!("against {name}"),
        "exact as string, %",
        "type, %",
        "macro F1, %",
        "weighted F1, %",
        "invalid, %",
    ];
    let before = exact(&arms[baseline]);
    let arm_row = |(number, (arm, rate)): (usize, (&ArmOutcome, &ExactActions))| {
        let scores: Vec<NextActionScores> =
            arm.runs.iter().map(|run| scores_of(&run.verdicts, BOOTSTRAP_SEED)).collect();
        let over_runs =
            |figure: fn(&NextActionScores) -> Measured| mean_of(&scores, |scores| figure(scores).value);
        let against = match number == baseline {
            true => "baseline".into(),
            false => difference(&by_goal(&before), &by_goal(&exact(arm))),
        };
        vec![
            rate.name.clone(),
            format!("{} {}", percent(rate.rate), interval(rate.interval)),
            rate.by_run.iter().map(|run| percent(*run)).collect::<Vec<_>>().join(", "),
            against,
            over_runs(|scores| scores.exact_string),
            over_runs(|scores| scores.type_acc),
            over_runs(|scores| scores.macro_f1),
            over_runs(|scores| scores.weighted_f1),
            over_runs(|scores| scores.invalid_rate),
        ]
    };
    let constant_row = |row: ScoredRow| {
        let NextActionScores {
            exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, ..
        } = row.scores;
        let exact = format!("{} {}", percent(exact_soft.value), interval(exact_soft.ci95));
        let cells =
            [exact_string, type_acc, macro_f1, weighted_f1, invalid_rate].map(|cell| percent(cell.value));
        [row.name, exact, String::new(), String::new()].into_iter().chain(cells).collect()
    };
    let arm_rows = arms.iter().zip(&exact_rates).enumerate().map(arm_row);
    let rows = arm_rows.chain(without_model(judged(arms)?).into_iter().map(constant_row)).collect();
    Some(Table { head: head.map(String::from).into(), rows })
}

/// The verdicts of the first run, whose steps are those of all; none where no steps were judged.
fn judged(arms: &[ArmOutcome]) -> Option<&[Verdict]> {
    let first = &arms.first()?.runs.first()?.verdicts;
    (!first.is_empty()).then_some(first)
}

/// What needs no model, at the same steps.
fn without_model(verdicts: &[Verdict]) -> Vec<ScoredRow> {
    let steps = verdicts.iter().map(|verdict| (&verdict.ground_truth, verdict.instruction.as_deref()));
    baselines(steps, BOOTSTRAP_SEED)
}

/// A row a run, a column a step: 1 for the right action.
fn exact(arm: &ArmOutcome) -> Vec<Vec<f64>> {
    let of_verdict = |verdict: &Verdict| f64::from(u8::from(verdict.is_exact));
    let of_run = |run: &RunOutcome| run.verdicts.iter().map(of_verdict).collect();
    arm.runs.iter().map(of_run).collect()
}

fn mean_of(all: &[NextActionScores], figure: impl Fn(&NextActionScores) -> f64) -> String {
    percent(mean(&all.iter().map(figure).collect::<Vec<_>>()))
}

fn difference(before: &[f64], after: &[f64]) -> String {
    let [low, high] = paired_bootstrap(before, after, BOOTSTRAP_SEED);
    let mark = if low > 0.0 || high < 0.0 { " *" } else { "" };
    format!("{} [{}, {}]{mark}", signed(mean(after) - mean(before)), signed(low), signed(high))
}
