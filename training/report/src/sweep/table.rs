//! Statistics of the arms of a comparison, and their tables.

use webshop_evaluation::table::{Table, interval, percent};
use webshop_evaluation::{FailureKind, crossed_bootstrap, mean, paired_bootstrap};
use webshop_products::Seed;
use webshop_training::metrics::Metric;
use webshop_training::sweep::{ArmOutcome, Comparison, RunOutcome};

use crate::sweep::curve::{Cost, at, total};

/// Seed of all bootstraps of a report.
pub(super) const BOOTSTRAP_SEED: Seed = Seed(0);

/// Name, kind and chart color of each failure of a held-out episode.
pub(super) const FAILURES: [(&str, FailureKind, usize); 4] = [
    ("over price", FailureKind::OverPrice, 4),
    ("missing option", FailureKind::MissingOption, 2),
    ("wrong product", FailureKind::WrongProduct, 1),
    ("never bought", FailureKind::NeverBought, 5),
];

/// Statistics of an arm over all its runs. Rates are shares from 0 to 1.
pub(super) struct ArmFigures {
    /// Mean over runs and goals.
    pub(crate) success: f64,
    /// Its bootstrap interval over seeds and goals.
    pub(crate) success_interval: [f64; 2],
    /// Success rate of each run.
    pub(crate) success_by_run: Vec<f64>,
    pub(crate) score: f64,
    pub(crate) score_interval: [f64; 2],
    /// Difference of the success rate to the baseline with its interval over goals; `None` for the baseline.
    pub(crate) difference: Option<(f64, [f64; 2])>,
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
    let of = |(number, arm): (usize, &ArmOutcome)| {
        let baseline = (number != baseline).then(|| &arms[baseline]);
        ArmFigures::of(arm, baseline)
    };
    arms.iter().enumerate().map(of).collect()
}

impl ArmFigures {
    fn of(arm: &ArmOutcome, baseline: Option<&ArmOutcome>) -> Self {
        let (successes, scores) = (successes(arm), scores(arm));
        let over_runs =
            |figure: fn(&RunOutcome) -> f64| mean(&arm.runs.iter().map(figure).collect::<Vec<_>>());
        let failures = FAILURES.map(|(_, kind, _)| {
            let episodes = arm.runs.iter().flat_map(|run| &run.episodes);
            let n = episodes.filter(|episode| episode.failure == Some(kind)).count();
            n as f64 / arm.runs.iter().map(|run| run.episodes.len()).sum::<usize>().max(1) as f64
        });
        Self {
            success: mean(&successes.concat()),
            success_interval: crossed_bootstrap(&successes, BOOTSTRAP_SEED),
            success_by_run: successes.iter().map(|run| mean(run)).collect(),
            score: mean(&scores.concat()),
            score_interval: crossed_bootstrap(&scores, BOOTSTRAP_SEED),
            difference: baseline.map(|baseline| {
                let (before, after) = (by_goal(&self::successes(baseline)), by_goal(&successes));
                paired_difference(&before, &after)
            }),
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

/// Success of each episode, `[runs, goals]`.
fn successes(arm: &ArmOutcome) -> Vec<Vec<f64>> {
    arm.runs.iter().map(|run| run.episodes.iter().map(|episode| episode.success()).collect()).collect()
}

/// Reward of each episode, `[runs, goals]`.
fn scores(arm: &ArmOutcome) -> Vec<Vec<f64>> {
    arm.runs.iter().map(|run| run.episodes.iter().map(|episode| episode.reward).collect()).collect()
}

/// The mean over runs of each goal, from `[runs, goals]`.
pub(super) fn by_goal(rows: &[Vec<f64>]) -> Vec<f64> {
    let n_goals = rows.first().map_or(0, Vec::len);
    (0..n_goals).map(|goal| mean(&rows.iter().map(|row| row[goal]).collect::<Vec<_>>())).collect()
}

/// The mean over runs of `metric` in the last record; `None` if a run does not have it.
fn last(arm: &ArmOutcome, metric: Metric) -> Option<f64> {
    let of_run = |run: &RunOutcome| run.records.last().and_then(|(record, _)| record.get(metric));
    let all: Option<Vec<f64>> = arm.runs.iter().map(of_run).collect();
    all.map(|all| mean(&all))
}

/// The mean of paired differences with its interval.
pub(super) fn paired_difference(before: &[f64], after: &[f64]) -> (f64, [f64; 2]) {
    (mean(after) - mean(before), paired_bootstrap(before, after, BOOTSTRAP_SEED))
}

/// A difference in points with its interval; a star if the interval excludes 0.
pub(super) fn difference_cell((difference, [low, high]): (f64, [f64; 2])) -> String {
    let mark = if low > 0.0 || high < 0.0 { " *" } else { "" };
    format!("{} [{}, {}]{mark}", signed(difference), signed(low), signed(high))
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
        let [score_low, score_high] = of.score_interval;
        vec![
            arm.name.clone(),
            format!("{} {}", percent(of.success), interval(of.success_interval)),
            runs.join(", "),
            of.difference.map_or("baseline".into(), difference_cell),
            format!("{:.3} [{score_low:.3}, {score_high:.3}]", of.score),
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
        head: head.chain(FAILURES.map(|(name, ..)| format!("{name}, %"))).collect(),
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
    let then: Vec<_> =
        then.into_iter().filter(|(_, of_arms)| of_arms.iter().any(|runs| !runs.is_empty())).collect();
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

/// A difference of shares in percentage points, with its sign.
pub(super) fn signed(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference).replace('-', "−")
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
        assert_eq!([signed(-0.012), signed(0.2), percent(0.5)], ["−1.2", "+20.0", "50.0"]);
        assert_eq!([decimals(-1.25, 1), decimals(-0.004, 2), decimals(-0.006, 2)], ["−1.2", "0.00", "−0.01"]);
    }

    #[test]
    fn goals_are_averaged_over_runs() {
        assert_eq!(by_goal(&[vec![0.0, 1.0, 1.0], vec![0.0, 0.0, 1.0]]), [0.0, 0.5, 1.0]);
        assert_eq!(by_goal(&[]), Vec::<f64>::new());
    }
}
