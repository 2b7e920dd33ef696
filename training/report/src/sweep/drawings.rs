//! The drawings of a comparison report.

use webshop_evaluation::table::{self, percent};
use webshop_training::metrics::Metric;
use webshop_training::sweep::{ArmOutcome, Comparison};

use crate::run::{Mark, Panel, Panels, Row, Rows, Unit, round_range};
use crate::sweep::curve::{Cost, banded, end};
use crate::sweep::next_action::NextActionRow;
use crate::sweep::table::{ArmFigures, FAILURES, decimals};

/// A drawing and the name of its file.
pub(super) struct Drawing {
    pub(crate) file: &'static str,
    pub(crate) svg: String,
}

/// Final results, and curves over generated tokens. They depend on no clock.
pub(super) fn reproducible(
    comparison: &Comparison,
    arms: &[ArmOutcome],
    figures: &[ArmFigures],
    next_actions: &[NextActionRow],
) -> Vec<Drawing> {
    let final_results = [
        ("success.svg", successes(comparison, arms, figures)),
        ("exact.svg", exact_actions(comparison, next_actions)),
        ("failures.svg", failures(arms, figures)),
    ];
    let over_tokens = [
        ("success-tokens.svg", "Success on held-out goals", Metric::EvalSuccessRate),
        ("score-tokens.svg", "Score on held-out goals", Metric::EvalTaskScore),
        ("rejected-tokens.svg", "Products rejected after a note that ends in no", Metric::EvalRejectsOthers),
        ("acting-tokens.svg", "Held-out episodes that act on their note", Metric::EvalActs),
        ("acting-success-tokens.svg", "Success of episodes that act on features", Metric::EvalActsSuccess),
        ("exact-tokens.svg", "Exact actions at held-out steps", Metric::EvalExactAction),
        ("reward-tokens.svg", "Hierarchical reward at held-out steps", Metric::EvalReward),
        ("kl-tokens.svg", "KL to the warm start (k1, nats per held-out episode)", Metric::EvalKl),
        ("entropy-tokens.svg", "Entropy (nats per token of held-out episodes)", Metric::EvalEntropy),
        ("length-tokens.svg", "Tokens per training episode", Metric::RolloutTokens),
    ];
    let curves = over_tokens
        .into_iter()
        .map(|(file, title, metric)| (file, panels(comparison, arms, title, metric, Cost::Tokens)));
    drawn(final_results.into_iter().chain(curves))
}

/// Curves over seconds. They depend on the machine.
pub(super) fn over_seconds(comparison: &Comparison, arms: &[ArmOutcome]) -> Vec<Drawing> {
    let over_seconds = [
        ("success-seconds.svg", "Success on held-out goals over seconds", Metric::EvalSuccessRate),
        ("exact-seconds.svg", "Exact actions at held-out steps over seconds", Metric::EvalExactAction),
    ];
    let curve = |(file, title, metric)| (file, panels(comparison, arms, title, metric, Cost::Seconds));
    drawn(over_seconds.into_iter().map(curve))
}

/// The drawings that have something to show.
fn drawn(drawings: impl Iterator<Item = (&'static str, Option<String>)>) -> Vec<Drawing> {
    drawings.filter_map(|(file, svg)| Some(Drawing { file, svg: svg? })).collect()
}

fn panels(
    comparison: &Comparison,
    arms: &[ArmOutcome],
    title: &str,
    metric: Metric,
    cost: Cost,
) -> Option<String> {
    let is_share = matches!(
        metric,
        Metric::EvalSuccessRate
            | Metric::EvalTaskScore
            | Metric::EvalExactAction
            | Metric::EvalRejectsOthers
            | Metric::EvalActs
            | Metric::EvalActsSuccess
    );
    let panel = |arm: &ArmOutcome| {
        let last = end(arm, metric)
            .map(|value| if is_share { format!("{} %", percent(value)) } else { decimals(value, 2) });
        let (name, figure) = (arm.name.clone(), last.unwrap_or_default());
        Panel { name, figure, line: banded(arm, metric, cost) }
    };
    let baseline = &comparison.arms[comparison.baseline].name;
    let shown = match comparison.seeds.len() {
        1 => "one seed".into(),
        n => format!("mean and range of {n} seeds"),
    };
    Panels {
        title: title.into(),
        note: format!("{shown}; gray: the other arms; dashed: {baseline}"),
        x_label: match cost {
            Cost::Tokens => "completion tokens since the warm start".into(),
            Cost::Seconds => "seconds since the warm start".into(),
        },
        unit: if is_share { Unit::Share } else { Unit::Number },
        baseline: comparison.baseline,
        panels: arms.iter().map(panel).collect(),
    }
    .svg()
}

fn successes(comparison: &Comparison, arms: &[ArmOutcome], figures: &[ArmFigures]) -> Option<String> {
    let row = |(arm, of): (&ArmOutcome, &ArmFigures)| {
        interval_row(&arm.name, of.success, of.success_interval, &of.success_by_run)
    };
    let rows = arms.iter().zip(figures).map(row).collect();
    intervals("Success on held-out goals", "", comparison.baseline, rows)
}

/// Exact actions of the arms and of the baselines without a model.
fn exact_actions(comparison: &Comparison, next_actions: &[NextActionRow]) -> Option<String> {
    let row = |of: &NextActionRow| interval_row(&of.name, of.exact, of.exact_interval, &of.exact_by_run);
    let rows = next_actions.iter().map(row).collect();
    let without_model = " (rules: over steps)";
    intervals("Exact actions at held-out steps", without_model, comparison.baseline, rows)
}

/// A share with its interval and the shares of single runs.
fn interval_row(name: &str, mean: f64, bounds: Option<[f64; 2]>, singles: &[f64]) -> Row {
    let interval = bounds.unwrap_or([mean, mean]);
    let bounds = bounds.map_or_else(String::new, |bounds| format!(" {}", table::interval(bounds)));
    Row {
        name: name.into(),
        figure: format!("{} %{bounds}", percent(mean)),
        mark: Mark::Interval { mean, interval, singles: singles.to_vec() },
    }
}

/// Shares with their intervals over seeds, one row each; the value of row `baseline` is a dashed line.
/// `exception` says which rows have other intervals.
fn intervals(title: &str, exception: &str, baseline: usize, rows: Vec<Row>) -> Option<String> {
    let (mut low, mut high, mut mark) = (1.0_f64, 0.0_f64, None);
    for (number, row) in rows.iter().enumerate() {
        if let Mark::Interval { mean, interval, singles } = &row.mark {
            // With five seeds or more one can be outside the interval of their mean.
            (low, high) =
                interval.iter().chain(singles).fold((low, high), |(l, h), x| (l.min(*x), h.max(*x)));
            mark = if number == baseline { Some(*mean) } else { mark };
        }
    }
    Rows {
        title: title.into(),
        note: format!("95 % intervals over seeds{exception}; circles: seeds; dashed: baseline"),
        x: round_range([low, high]),
        mark,
        parts: Vec::new(),
        rows,
    }
    .svg()
}

fn failures(arms: &[ArmOutcome], figures: &[ArmFigures]) -> Option<String> {
    let row = |(arm, of): (&ArmOutcome, &ArmFigures)| Row {
        name: arm.name.clone(),
        figure: format!("{} % fail", percent(1.0 - of.success)),
        mark: Mark::Parts([of.success].into_iter().chain(of.failures.iter().copied()).collect()),
    };
    Rows {
        title: "Outcomes of held-out episodes".into(),
        note: "all seeds".into(),
        x: [0.0, 1.0],
        mark: None,
        parts: [("success", 0)]
            .into_iter()
            .chain(FAILURES.map(|(kind, color)| (kind.title(), color)))
            .collect(),
        rows: arms.iter().zip(figures).map(row).collect(),
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that follow `before` in `svg`.
    fn numbers_after(svg: &str, before: &str) -> Vec<f64> {
        let ends_number = |c: char| c != '.' && !c.is_ascii_digit();
        let parts = svg.split(before).skip(1);
        parts.map(|part| part.split(ends_number).next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn seeds_outside_the_interval_of_their_mean_are_within_the_axis() {
        let row = interval_row("apo", 0.5, Some([0.48, 0.52]), &[0.41, 0.5, 0.59]);
        let svg = intervals("Success", "", 0, vec![row]).unwrap();
        let interval = numbers_after(&svg, "<path class=\"line l0\" d=\"M")[0];
        let seeds = numbers_after(&svg, "<circle class=\"single\" cx=\"");
        let ends = numbers_after(&svg, "<path class=\"grid\" d=\"M");
        assert_eq!(seeds.len(), 3);
        assert!(seeds[0] < interval && interval < seeds[1] && seeds[1] < seeds[2], "{svg}");
        assert!(ends[0] <= seeds[0] && seeds[2] <= ends[ends.len() - 1], "{svg}");
    }
}
