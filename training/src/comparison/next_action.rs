//! What was said at held-out steps: the next-action figures of a comparison.

use super::outcome::{ArmOutcome, RunOutcome};
use super::table::{BOOTSTRAP_SEED, by_goal, signed};
use crate::shop_r1::{Measured, NextActionScores, ScoredRow, Verdict, baselines, scores_of};
use crate::statistics::{crossed_bootstrap, mean, paired_bootstrap};
use crate::table::{Table, interval, percent};

/// The table of all arms, and of what needs no model; none where no steps were judged.
pub(super) fn table(arms: &[ArmOutcome], baseline: usize) -> Option<Table> {
    let first = &arms.first()?.runs.first()?.verdicts;
    if first.is_empty() {
        return None;
    }
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
    let arm_row = |(number, arm): (usize, &ArmOutcome)| {
        let soft = exact(arm);
        let scores: Vec<NextActionScores> =
            arm.runs.iter().map(|run| scores_of(&run.verdicts, BOOTSTRAP_SEED)).collect();
        let over_runs =
            |figure: fn(&NextActionScores) -> Measured| mean_of(&scores, |scores| figure(scores).value);
        let against = match number == baseline {
            true => "baseline".into(),
            false => difference(&by_goal(&before), &by_goal(&soft)),
        };
        vec![
            arm.name.clone(),
            format!(
                "{} {}",
                percent(mean(&soft.concat())),
                interval(crossed_bootstrap(&soft, BOOTSTRAP_SEED))
            ),
            soft.iter().map(|run| percent(mean(run))).collect::<Vec<_>>().join(", "),
            against,
            over_runs(|scores| scores.exact_string),
            over_runs(|scores| scores.type_acc),
            over_runs(|scores| scores.macro_f1),
            over_runs(|scores| scores.weighted_f1),
            over_runs(|scores| scores.invalid_rate),
        ]
    };
    let rows = arms.iter().enumerate().map(arm_row).chain(without_model(first)).collect();
    Some(Table { head: head.map(String::from).into(), rows })
}

/// Rows of what needs no model.
fn without_model(verdicts: &[Verdict]) -> Vec<Vec<String>> {
    let steps = verdicts.iter().map(|verdict| (&verdict.ground_truth, verdict.instruction.as_deref()));
    let row = |row: ScoredRow| {
        let NextActionScores {
            exact_soft, exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, ..
        } = row.scores;
        let exact = format!("{} {}", percent(exact_soft.value), interval(exact_soft.ci95));
        let cells =
            [exact_string, type_acc, macro_f1, weighted_f1, invalid_rate].map(|cell| percent(cell.value));
        [row.name, exact, String::new(), String::new()].into_iter().chain(cells).collect()
    };
    baselines(steps, BOOTSTRAP_SEED).into_iter().map(row).collect()
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
