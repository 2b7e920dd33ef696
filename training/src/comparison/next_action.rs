//! What was said at held-out steps: the next-action figures of a comparison.

use webshop_agent::shop_r1::{NextAction, SEARCH_INPUT, WrittenAction};

use super::outcome::{ArmOutcome, RunOutcome};
use super::table::{BOOTSTRAP_SEED, Table, by_goal, interval, percent, signed};
use crate::shop_r1::{
    Exactness, Measured, NextActionScores, StepAnswer, evaluate_answers, is_exact, most_frequent_action,
};
use crate::statistics::{crossed_bootstrap, mean, paired_bootstrap};

/// The table of all arms, and of what one and the same answer would come to; none where no steps were judged.
pub(super) fn table(arms: &[ArmOutcome], baseline: usize) -> Option<Table> {
    let first = &arms.first()?.runs.first()?.answers;
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
    let before = exact(&arms[baseline], Exactness::Soft);
    let arm_row = |(number, arm): (usize, &ArmOutcome)| {
        let soft = exact(arm, Exactness::Soft);
        let scores: Vec<NextActionScores> = arm.runs.iter().map(|run| scores(&run.answers)).collect();
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
    let rows = arms.iter().enumerate().map(arm_row).chain(constants(first)).collect();
    Some(Table::new(&head, rows))
}

/// Rows of answers that look at nothing, or at the instruction alone.
fn constants(steps: &[StepAnswer]) -> Vec<Vec<String>> {
    let golds: Vec<NextAction> = steps.iter().map(|step| step.gold.clone()).collect();
    let frequent = most_frequent_action(&golds).cloned();
    let named = |action: NextAction, name: String| {
        let written = WrittenAction::from(&action);
        (name, answered(steps, |_| written.clone()))
    };
    let copied = answered(steps, |step| {
        let text = step.instruction.clone();
        WrittenAction::from(&NextAction::TypeAndSubmit { name: SEARCH_INPUT.into(), text })
    });
    let all = [
        Some(named(NextAction::Terminate {}, "always `terminate`".into())),
        frequent.map(|action| {
            let name = format!("always `{action}`");
            named(action, name)
        }),
        Some(("always searching for the instruction".into(), copied)),
    ];
    let row = |(name, answers): (String, Vec<StepAnswer>)| {
        let scores = scores(&answers);
        let exact = scores.exact_soft;
        let cells =
            [scores.exact_string, scores.type_acc, scores.macro_f1, scores.weighted_f1, scores.invalid_rate];
        [name, format!("{} {}", percent(exact.value), interval(exact.ci95)), String::new(), String::new()]
            .into_iter()
            .chain(cells.map(|cell| percent(cell.value)))
            .collect()
    };
    all.into_iter().flatten().map(row).collect()
}

fn answered(steps: &[StepAnswer], with: impl Fn(&StepAnswer) -> WrittenAction) -> Vec<StepAnswer> {
    steps.iter().map(|step| StepAnswer { written: Some(with(step)), ..step.clone() }).collect()
}

fn scores(answers: &[StepAnswer]) -> NextActionScores {
    evaluate_answers(answers, BOOTSTRAP_SEED)
}

/// A row a run, a column a step: 1 for the right action.
fn exact(arm: &ArmOutcome, exactness: Exactness) -> Vec<Vec<f64>> {
    let of_answer =
        |answer: &StepAnswer| f64::from(u8::from(is_exact(answer.written.as_ref(), &answer.gold, exactness)));
    let of_run = |run: &RunOutcome| run.answers.iter().map(of_answer).collect();
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
