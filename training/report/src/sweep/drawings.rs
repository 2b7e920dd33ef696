//! What a report of a comparison shows.

use crate::sweep::curve::{Spent, banded};
use crate::sweep::next_action::NextActions;
use webshop_training::sweep::outcome::ArmOutcome;
use webshop_training::Comparison;
use crate::sweep::table::{FAILURES, Figures, decimals};
use webshop_training::Metric;
use crate::run::{Mark, Panel, Panels, Row, Rows, Unit, round_range};
use webshop_evaluation::table::{interval, percent};

/// A drawing and the name of its file.
pub(super) type Drawing = (&'static str, String);

/// The last evaluations, and curves over what was written; the same bytes for the same runs.
pub(super) fn of_tokens(
    comparison: &Comparison,
    arms: &[ArmOutcome],
    figures: &[Figures],
    said: &[NextActions],
) -> Vec<Drawing> {
    let over_tokens = [
        ("success-tokens.svg", "Success on held-out goals", Metric::EvalSuccessRate),
        ("score-tokens.svg", "Score on held-out goals", Metric::EvalTaskScore),
        ("exact-tokens.svg", "Exact actions at held-out steps", Metric::EvalExactAction),
        ("reward-tokens.svg", "Hierarchical reward at held-out steps", Metric::EvalReward),
        ("kl-tokens.svg", "KL to the warm start (k1, nats a held-out trip)", Metric::EvalKl),
        ("entropy-tokens.svg", "Entropy (nats a token of held-out trips)", Metric::EvalEntropy),
        ("length-tokens.svg", "Tokens in a training trip", Metric::RolloutTokens),
    ];
    let over_tokens = over_tokens.into_iter().filter_map(|(name, title, metric)| {
        Some((name, panels(comparison, arms, title, metric, Spent::Tokens)?))
    });
    let last = [
        ("success.svg", successes(comparison, arms, figures)),
        ("exact.svg", exact_actions(comparison, said)),
        ("failures.svg", failures(arms, figures)),
    ];
    last.into_iter().filter_map(|(name, svg)| Some((name, svg?))).chain(over_tokens).collect()
}

/// Curves over seconds.
pub(super) fn of_seconds(comparison: &Comparison, arms: &[ArmOutcome]) -> Vec<Drawing> {
    let over_seconds = [
        ("success-seconds.svg", "Success on held-out goals, by seconds", Metric::EvalSuccessRate),
        ("exact-seconds.svg", "Exact actions at held-out steps, by seconds", Metric::EvalExactAction),
    ];
    let drawn =
        |(name, title, metric)| Some((name, panels(comparison, arms, title, metric, Spent::Seconds)?));
    over_seconds.into_iter().filter_map(drawn).collect()
}

fn panels(
    comparison: &Comparison,
    arms: &[ArmOutcome],
    title: &str,
    metric: Metric,
    spent: Spent,
) -> Option<String> {
    let is_share =
        matches!(metric, Metric::EvalSuccessRate | Metric::EvalTaskScore | Metric::EvalExactAction);
    let panel = |arm: &ArmOutcome| {
        let line = banded(arm, metric, spent);
        let last = line.last().map(|point| match is_share {
            true => format!("{} %", percent(point.y)),
            false => decimals(point.y, 2),
        });
        Panel { name: arm.name.clone(), figure: last.unwrap_or_default(), line }
    };
    let baseline = &comparison.arms[comparison.baseline].name;
    let n_seeds = comparison.seeds.len();
    Panels {
        title: title.into(),
        note: format!("mean and range of {n_seeds} seeds; grey: the other arms; dashed: {baseline}"),
        x_label: match spent {
            Spent::Tokens => "tokens written since the warm start".into(),
            Spent::Seconds => "seconds since the warm start".into(),
        },
        unit: if is_share { Unit::Share } else { Unit::Plain },
        y: is_share.then_some([0.0, 1.0]),
        baseline: comparison.baseline,
        panels: arms.iter().map(panel).collect(),
    }
    .svg()
}

fn successes(comparison: &Comparison, arms: &[ArmOutcome], figures: &[Figures]) -> Option<String> {
    let row = |(arm, of): (&ArmOutcome, &Figures)| Row {
        name: arm.name.clone(),
        figure: format!("{} % {}", percent(of.success), interval(of.success_interval)),
        mark: Mark::Interval {
            mean: of.success,
            interval: of.success_interval,
            singles: of.success_by_run.clone(),
        },
    };
    let rows = arms.iter().zip(figures).map(row).collect();
    intervals("Success on held-out goals", "goals", comparison.baseline, rows)
}

/// Those of the arms, and of what needs no model.
fn exact_actions(comparison: &Comparison, said: &[NextActions]) -> Option<String> {
    let row = |of: &NextActions| Row {
        name: of.name.clone(),
        figure: format!("{} % {}", percent(of.exact), interval(of.exact_interval)),
        mark: Mark::Interval {
            mean: of.exact,
            interval: of.exact_interval,
            singles: of.exact_by_run.clone(),
        },
    };
    let rows = said.iter().map(row).collect();
    intervals("Exact actions at held-out steps", "steps", comparison.baseline, rows)
}

/// Shares with their intervals over seeds and `of`, one below the other, each beside that of row `baseline`.
fn intervals(title: &str, of: &str, baseline: usize, rows: Vec<Row>) -> Option<String> {
    let (mut low, mut high, mut mark) = (1.0_f64, 0.0_f64, None);
    for (number, row) in rows.iter().enumerate() {
        if let Mark::Interval { mean, interval, .. } = &row.mark {
            (low, high) = (low.min(interval[0]), high.max(interval[1]));
            mark = if number == baseline { Some(*mean) } else { mark };
        }
    }
    Rows {
        title: title.into(),
        note: format!("95 % intervals over seeds and {of}; rings: single seeds; dashed: the baseline"),
        x: round_range([low, high]),
        mark,
        parts: Vec::new(),
        rows,
    }
    .svg()
}

fn failures(arms: &[ArmOutcome], figures: &[Figures]) -> Option<String> {
    let row = |(arm, of): (&ArmOutcome, &Figures)| Row {
        name: arm.name.clone(),
        figure: format!("{} % fail", percent(1.0 - of.success)),
        mark: Mark::Parts([of.success].into_iter().chain(of.failures.iter().copied()).collect()),
    };
    Rows {
        title: "How held-out trips end".into(),
        note: "of all seeds".into(),
        x: [0.0, 1.0],
        mark: None,
        parts: [("success", 0)].into_iter().chain(FAILURES.map(|(name, _, colour)| (name, colour))).collect(),
        rows: arms.iter().zip(figures).map(row).collect(),
    }
    .svg()
}
