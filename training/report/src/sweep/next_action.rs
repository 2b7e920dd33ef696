//! What was said at held-out steps: the next-action figures of a comparison.

use webshop_training::sweep::outcome::{ArmOutcome, RunOutcome};
use crate::sweep::table::{BOOTSTRAP_SEED, by_goal, signed};
use webshop_evaluation::next_action::{NextActionScores, ScoredRow, Verdict, baselines, scores_of};
use webshop_evaluation::{crossed_bootstrap, mean, paired_bootstrap};
use webshop_evaluation::Table;
use webshop_evaluation::table::{interval, percent};

/// What was said by an arm, or by what needs no model. Rates are shares from 0 to 1.
pub(super) struct NextActions {
    pub name: String,
    /// How often the whole action was right: the mean over runs and steps.
    pub exact: f64,
    /// Of 95 %: over seeds and steps, or over steps where nothing is drawn from a seed.
    pub exact_interval: [f64; 2],
    /// Of each run; empty of what needs no model.
    pub exact_by_run: Vec<f64>,
    /// By how much it exceeds the baseline's, with the interval were other steps asked; empty of what needs no model.
    against: String,
    /// Means over runs: exact as string, type, macro F1, weighted F1, invalid.
    rest: [f64; 5],
}

/// Those of all arms in order, then those of what needs no model; empty where no steps were judged.
pub(super) fn next_actions(arms: &[ArmOutcome], baseline: usize) -> Vec<NextActions> {
    let Some(verdicts) = arms.first().and_then(|arm| arm.runs.first()).map(|run| &run.verdicts) else {
        return Vec::new();
    };
    if verdicts.is_empty() {
        return Vec::new();
    }
    let before = by_goal(&exact(&arms[baseline]));
    let of_arm = |(number, arm): (usize, &ArmOutcome)| {
        let exact = exact(arm);
        let rest: Vec<[f64; 5]> =
            arm.runs.iter().map(|run| rest(&scores_of(&run.verdicts, BOOTSTRAP_SEED))).collect();
        NextActions {
            name: arm.name.clone(),
            exact: mean(&exact.concat()),
            exact_interval: crossed_bootstrap(&exact, BOOTSTRAP_SEED),
            exact_by_run: exact.iter().map(|run| mean(run)).collect(),
            against: match number == baseline {
                true => "baseline".into(),
                false => difference(&before, &by_goal(&exact)),
            },
            rest: std::array::from_fn(|i| mean(&rest.iter().map(|run| run[i]).collect::<Vec<_>>())),
        }
    };
    let without_model = |row: ScoredRow| NextActions {
        name: row.name,
        exact: row.scores.exact_soft.value,
        exact_interval: row.scores.exact_soft.ci95,
        exact_by_run: Vec::new(),
        against: String::new(),
        rest: rest(&row.scores),
    };
    let steps = verdicts.iter().map(|verdict| (&verdict.ground_truth, verdict.instruction.as_deref()));
    let constant = baselines(steps, BOOTSTRAP_SEED).into_iter().map(without_model);
    arms.iter().enumerate().map(of_arm).chain(constant).collect()
}

/// The figures as a table; none where no steps were judged.
pub(super) fn table(said: &[NextActions], baseline: usize) -> Option<Table> {
    let head = [
        "arm",
        "exact action, %",
        "of each seed",
        &format!("against {}", said.get(baseline)?.name),
        "exact as string, %",
        "type, %",
        "macro F1, %",
        "weighted F1, %",
        "invalid, %",
    ];
    let row = |of: &NextActions| {
        let exact = format!("{} {}", percent(of.exact), interval(of.exact_interval));
        let by_run: Vec<String> = of.exact_by_run.iter().map(|run| percent(*run)).collect();
        [of.name.clone(), exact, by_run.join(", "), of.against.clone()]
            .into_iter()
            .chain(of.rest.map(percent))
            .collect()
    };
    Some(Table { head: head.map(String::from).into(), rows: said.iter().map(row).collect() })
}

fn rest(scores: &NextActionScores) -> [f64; 5] {
    let NextActionScores { exact_string, type_acc, macro_f1, weighted_f1, invalid_rate, .. } = scores;
    [exact_string, type_acc, macro_f1, weighted_f1, invalid_rate].map(|measured| measured.value)
}

/// A row a run, a column a step: 1 for the right action.
fn exact(arm: &ArmOutcome) -> Vec<Vec<f64>> {
    let of_verdict = |verdict: &Verdict| f64::from(u8::from(verdict.is_exact));
    let of_run = |run: &RunOutcome| run.verdicts.iter().map(of_verdict).collect();
    arm.runs.iter().map(of_run).collect()
}

fn difference(before: &[f64], after: &[f64]) -> String {
    let [low, high] = paired_bootstrap(before, after, BOOTSTRAP_SEED);
    let mark = if low > 0.0 || high < 0.0 { " *" } else { "" };
    format!("{} [{}, {}]{mark}", signed(mean(after) - mean(before)), signed(low), signed(high))
}
