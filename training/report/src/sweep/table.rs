//! Statistics of the arms of a comparison, and their tables.

use webshop_agent::FailureKind;
use webshop_evaluation::mean;
use webshop_evaluation::table::{Table, interval, percent};
use webshop_training::metrics::Metric;
use webshop_training::sweep::{ArmOutcome, Comparison, RunOutcome};

use crate::sweep::curve::{Cost, at, total};
use crate::sweep::over_seeds::{ArmDifference, differences, share_interval};

/// Kind and chart color of each failure of a held-out episode.
pub(super) const FAILURES: [(FailureKind, usize); 4] = [
    (FailureKind::OverPrice, 4),
    (FailureKind::MissingOption, 2),
    (FailureKind::WrongProduct, 1),
    (FailureKind::NeverBought, 5),
];

/// Statistics of an arm over all its runs. Rates are shares from 0 to 1.
pub(super) struct ArmFigures {
    /// Mean over runs and goals.
    pub(crate) success: f64,
    /// Its interval over seeds; `None` for a single seed.
    pub(crate) success_interval: Option<[f64; 2]>,
    /// Success rate of each run.
    pub(crate) success_by_run: Vec<f64>,
    pub(crate) score: f64,
    pub(crate) score_interval: Option<[f64; 2]>,
    /// Difference of the success rate to the baseline; `None` for the baseline.
    pub(crate) difference: Option<ArmDifference>,
    /// Share of episodes with each of [`FAILURES`].
    pub(crate) failures: Vec<f64>,
    /// Tokens generated for training, mean over runs.
    pub(crate) tokens: f64,
    /// KL to the warm start in held-out episodes; the following fields are of the same episodes.
    pub(crate) kl: Option<f64>,
    pub(crate) entropy: Option<f64>,
    pub(crate) episode_tokens: f64,
    pub(crate) turns: f64,
    pub(crate) inadmissible: f64,
}

/// The statistics of every arm, in order.
pub(super) fn figures(arms: &[ArmOutcome], baseline: usize) -> Vec<ArmFigures> {
    let rates: Vec<Vec<f64>> = arms.iter().map(success_by_run).collect();
    let differences = differences(&rates, baseline);
    arms.iter().zip(differences).map(|(arm, difference)| ArmFigures::of(arm, difference)).collect()
}

impl ArmFigures {
    fn of(arm: &ArmOutcome, difference: Option<ArmDifference>) -> Self {
        let success_by_run = success_by_run(arm);
        let score_by_run: Vec<f64> = arm.runs.iter().map(|run| run.summary.score).collect();
        let over_runs =
            |figure: fn(&RunOutcome) -> f64| mean(&arm.runs.iter().map(figure).collect::<Vec<_>>());
        let failures = FAILURES.map(|(kind, _)| {
            let episodes = arm.runs.iter().flat_map(|run| &run.episodes);
            let n = episodes.filter(|episode| episode.failure == Some(kind)).count();
            n as f64 / arm.runs.iter().map(|run| run.episodes.len()).sum::<usize>().max(1) as f64
        });
        Self {
            success: mean(&success_by_run),
            success_interval: share_interval(&success_by_run),
            success_by_run,
            score: mean(&score_by_run),
            score_interval: share_interval(&score_by_run),
            difference,
            failures: failures.into(),
            tokens: over_runs(|run| total(run, Cost::Tokens)),
            kl: last(arm, Metric::EvalKl),
            entropy: last(arm, Metric::EvalEntropy),
            episode_tokens: over_runs(|run| run.summary.mean_sampled_tokens),
            turns: over_runs(|run| run.summary.mean_turns),
            inadmissible: over_runs(|run| run.summary.inadmissible_rate),
        }
    }
}

/// The success rate of each run. All runs have the same goals.
fn success_by_run(arm: &ArmOutcome) -> Vec<f64> {
    arm.runs.iter().map(|run| run.summary.success_rate).collect()
}

/// The mean over runs of `metric` in the last record; `None` if a run does not have it.
fn last(arm: &ArmOutcome, metric: Metric) -> Option<f64> {
    let of_run = |run: &RunOutcome| run.records.last().and_then(|(record, _)| record.get(metric));
    let all: Option<Vec<f64>> = arm.runs.iter().map(of_run).collect();
    all.map(|all| mean(&all))
}

/// The results of every arm.
pub(super) fn results_table(comparison: &Comparison, arms: &[ArmOutcome], figures: &[ArmFigures]) -> Table {
    let against = format!("against {}", comparison.arms[comparison.baseline].name);
    let head = [
        "arm",
        "success, %",
        "by seed",
        &against,
        "score",
        "tokens generated",
        "KL",
        "entropy",
        "tokens per episode",
        "actions per episode",
        "inadmissible, %",
    ];
    let row = |(arm, of): (&ArmOutcome, &ArmFigures)| {
        let runs: Vec<String> = of.success_by_run.iter().map(|share| percent(*share)).collect();
        let score_interval =
            of.score_interval.map_or_else(String::new, |[low, high]| format!(" [{low:.3}, {high:.3}]"));
        vec![
            arm.name.clone(),
            share_cell(of.success, of.success_interval),
            runs.join(", "),
            of.difference.as_ref().map_or("baseline".into(), ArmDifference::cell),
            format!("{:.3}{score_interval}", of.score),
            thousands(of.tokens),
            of.kl.map_or_else(String::new, |kl| decimals(kl, 2)),
            of.entropy.map_or_else(String::new, |entropy| decimals(entropy, 3)),
            format!("{:.1}", of.episode_tokens),
            format!("{:.2}", of.turns),
            percent(of.inadmissible),
        ]
    };
    Table { head: head.map(String::from).into(), rows: arms.iter().zip(figures).map(row).collect() }
}

/// The outcomes of held-out episodes.
pub(super) fn failures_table(arms: &[ArmOutcome], figures: &[ArmFigures]) -> Table {
    let head = ["arm", "success, %"].into_iter().map(String::from);
    let row = |(arm, of): (&ArmOutcome, &ArmFigures)| {
        let shares = [of.success].into_iter().chain(of.failures.iter().copied());
        [arm.name.clone()].into_iter().chain(shares.map(percent)).collect()
    };
    Table {
        head: head.chain(FAILURES.map(|(kind, _)| format!("{}, %", kind.title()))).collect(),
        rows: arms.iter().zip(figures).map(row).collect(),
    }
}

/// The duration of every arm, and its results at the time when the shortest training run ended.
pub(super) fn seconds_table(arms: &[ArmOutcome]) -> Table {
    let seconds =
        |arm: &ArmOutcome| arm.runs.iter().map(|run| total(run, Cost::Seconds)).collect::<Vec<f64>>();
    let training = arms.iter().filter(|arm| arm.runs.iter().any(|run| total(run, Cost::Tokens) > 0.0));
    let shortest = training.flat_map(&seconds).fold(f64::INFINITY, f64::min);
    let results_at_end = |(name, metric)| -> (&str, Vec<Vec<f64>>) {
        let of_arm = |arm| at(arm, metric, Cost::Seconds, shortest).into_iter().flatten().collect();
        (name, arms.iter().map(of_arm).collect())
    };
    let then =
        [("success", Metric::EvalSuccessRate), ("exact action", Metric::EvalExactAction)].map(results_at_end);
    // Arms of cloning alone have no training run, and so no time when the shortest ended.
    let is_reached =
        |of_arms: &[Vec<f64>]| shortest.is_finite() && of_arms.iter().any(|runs| !runs.is_empty());
    let then: Vec<_> = then.into_iter().filter(|(_, of_arms)| is_reached(of_arms)).collect();
    let head = ["arm".into(), "seconds".into()]
        .into_iter()
        .chain(then.iter().map(|(name, _)| format!("{name} after {shortest:.0} s, %")));
    let row = |(number, arm): (usize, &ArmOutcome)| {
        let seconds = seconds(arm);
        let (low, high) =
            seconds.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), s| (low.min(*s), high.max(*s)));
        let duration = format!("{:.0} [{low:.0}, {high:.0}]", mean(&seconds));
        let reached = |(_, of_arms): &(&str, Vec<Vec<f64>>)| match &of_arms[number][..] {
            [] => String::new(),
            runs => percent(mean(runs)),
        };
        [arm.name.clone(), duration].into_iter().chain(then.iter().map(reached)).collect()
    };
    Table { head: head.collect(), rows: arms.iter().enumerate().map(row).collect() }
}

/// A share in percent with its interval, if it has one.
pub(super) fn share_cell(share: f64, bounds: Option<[f64; 2]>) -> String {
    let bounds = bounds.map_or_else(String::new, |bounds| format!(" {}", interval(bounds)));
    percent(share) + &bounds
}

/// With `n` digits after the point; what rounds to 0 has no sign.
pub(super) fn decimals(value: f64, n: usize) -> String {
    let digits = format!("{value:.n$}");
    match digits.strip_prefix('-') {
        Some(digits) if digits.contains(|digit| ('1'..='9').contains(&digit)) => format!("−{digits}"),
        Some(digits) => digits.into(),
        None => digits,
    }
}

/// A count with commas between thousands.
fn thousands(count: f64) -> String {
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_tables() {
        assert_eq!([0.0, 999.6, 1234.0, 1_234_567.0].map(thousands), ["0", "1,000", "1,234", "1,234,567"]);
        assert_eq!([share_cell(0.5, None), share_cell(0.5, Some([0.0, 1.0]))], ["50.0", "50.0 [0.0, 100.0]"]);
        assert_eq!([decimals(-1.25, 1), decimals(-0.004, 2), decimals(-0.006, 2)], ["−1.2", "0.00", "−0.01"]);
    }
}
