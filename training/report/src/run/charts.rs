//! The charts of a run's report and their metrics.

use webshop_training::ValueTable;
use webshop_training::metrics::{Metric, Phase, Record};

use crate::run::axis::{Bins, Unit, span, wide_span};
use crate::run::bars::{BarChart, Column};
use crate::run::line::{Line, LineChart, Point};
use crate::run::results::Results;

/// About the number of bins of the histogram of V*.
const BINS: usize = 20;
/// Duration in seconds from which the time axis is in minutes.
const MINUTES_FROM: f64 = 180.0;
/// Note of charts with evaluations.
const INTERVAL_NOTE: &str = "held-out goals, bands: 95 % intervals";

/// The learning curve over steps.
fn learning_curve_over_steps(results: &Results) -> Option<String> {
    let at: Vec<f64> = results.records.iter().map(|record| record.step as f64).collect();
    let knee = results.rl_start().map(|record| record.step as f64);
    let chart = learning_curve(results, &at, "steps".into(), marks(results));
    LineChart { title: "Success and score over steps", knee, ..chart }.svg()
}

/// The learning curve over time.
pub(super) fn learning_curve_over_time(results: &Results) -> Option<String> {
    let longest = results.timings.last()?.seconds;
    let (scale, unit) = if longest >= MINUTES_FROM { (60.0, "minutes") } else { (1.0, "seconds") };
    let at: Vec<f64> = results.timings.iter().map(|timing| timing.seconds / scale).collect();
    let began = results.rl_start_seconds();
    let begins = if results.values.is_some() {
        format!("V*, then {}", results.method())
    } else {
        format!("{} begins", results.method())
    };
    let marks = began.map(|at| (at / scale, begins)).into_iter().collect();
    let x_label = format!("{unit} since the start of the run");
    learning_curve(results, &at, x_label, marks).svg()
}

/// Held-out success and score, and the success of training episodes. `at` is the horizontal value of each
/// record.
fn learning_curve(results: &Results, at: &[f64], x_label: String, marks: Vec<(f64, String)>) -> LineChart {
    let mut lines = held_out(results, at);
    let training = at.iter().zip(&results.records).filter(|(_, record)| record.phase == Phase::Learn);
    let training: Vec<(f64, f64)> =
        training.filter_map(|(x, record)| Some((*x, record.get(Metric::RolloutSuccessRate)?))).collect();
    lines.push(Line::binned("success in training episodes", &training));
    LineChart {
        title: "Success and score over time",
        note: INTERVAL_NOTE,
        x_label,
        y: Some([0.0, 1.0]),
        unit: Unit::Share,
        lines,
        marks,
        knee: None,
    }
}

/// All charts with data, in the order of the page.
pub(super) fn all(results: &Results) -> Vec<String> {
    let over_steps = |title, note, unit, lines| steps_chart(results, title, note, unit, lines);
    let rl = |label, metric| line(results, Phase::Learn, label, metric);
    let beside =
        |label, training, held_out| vec![rl(label, training), evaluated(results, "held out", held_out)];
    let episodes = |training, held_out| beside("training episodes", training, held_out);
    let steps = |training, held_out| beside("training steps", training, held_out);
    let advantage = if results.values.is_some() { "Advantages r − V*" } else { "Advantages" };
    let charts = [
        learning_curve_over_time(results),
        learning_curve_over_steps(results),
        outcomes(results),
        over_steps(
            "Exact actions",
            "at single steps",
            Unit::Share,
            steps(Metric::RolloutExactAction, Metric::EvalExactAction),
        ),
        over_steps(
            "Reward",
            "hierarchical, at single steps",
            Unit::Number,
            steps(Metric::RolloutReward, Metric::EvalReward),
        ),
        values(results),
        over_steps(
            advantage,
            "mean, band: ± one standard deviation",
            Unit::Number,
            vec![advantages(results)],
        ),
        over_steps(
            "Actions per episode",
            "mean",
            Unit::Number,
            episodes(Metric::RolloutEpisodeLen, Metric::EvalEpisodeLen),
        ),
        inadmissible(results),
        over_steps(
            "Episodes with a written thought",
            "",
            Unit::Share,
            episodes(Metric::RolloutThinkingRate, Metric::EvalThinkingRate),
        ),
    ];
    charts.into_iter().chain(reading(results)).chain(optimization(results)).flatten().collect()
}

/// Charts of what held-out episodes read, and whether they act on it.
fn reading(results: &Results) -> [Option<String>; 2] {
    let held_out = |label, metric| evaluated(results, label, metric);
    let decisions = vec![
        held_out("noted as fitting", Metric::EvalRejectsFitting),
        held_out("others", Metric::EvalRejectsOthers),
    ];
    let acting = vec![
        held_out("share of episodes", Metric::EvalActs),
        held_out("success of these", Metric::EvalActsSuccess),
        held_out("success of the others", Metric::EvalOthersSuccess),
    ];
    let over_steps = |title, note, lines| steps_chart(results, title, note, Unit::Share, lines);
    [
        over_steps("Rejected after reading features", "held-out episodes, by what the note says", decisions),
        over_steps("Acting on features", "held-out: kept if noted as fitting, else rejected", acting),
    ]
}

/// Charts of the optimizer's steps: KL, entropy, tokens, losses and gradient norms.
fn optimization(results: &Results) -> Vec<Option<String>> {
    let over_steps = |title, note, unit, lines| steps_chart(results, title, note, unit, lines);
    let rl = |metric| line(results, Phase::Learn, "", metric);
    let warm_start = |metric| line(results, Phase::WarmStart, "", metric);
    vec![
        over_steps(
            "KL to the reference",
            "k1, nats per episode",
            Unit::Number,
            vec![rl(Metric::TrainApproxKl)],
        ),
        over_steps("Entropy of the policy", "nats per token", Unit::Number, vec![rl(Metric::TrainEntropy)]),
        over_steps("Tokens generated per episode", "mean", Unit::Number, vec![rl(Metric::RolloutTokens)]),
        over_steps("Warm start loss", "nats per token", Unit::Number, vec![warm_start(Metric::TrainLoss)]),
        over_steps("RL loss", results.method(), Unit::Number, vec![rl(Metric::TrainLoss)]),
        over_steps(
            "Gradient norm in the warm start",
            "before clipping",
            Unit::Number,
            vec![warm_start(Metric::TrainGradNorm)],
        ),
        over_steps("Gradient norm in RL", "before clipping", Unit::Number, vec![rl(Metric::TrainGradNorm)]),
    ]
}

/// A chart over steps. Its range is that of the data, and the start of RL is marked if it is inside.
fn steps_chart(
    results: &Results,
    title: &'static str,
    note: &'static str,
    unit: Unit,
    lines: Vec<Line>,
) -> Option<String> {
    let first = lines.iter().flat_map(|line| &line.points).map(|point| point.x).reduce(f64::min)?;
    let last = lines.iter().flat_map(|line| &line.points).map(|point| point.x).reduce(f64::max)?;
    let marks: Vec<_> = marks(results).into_iter().filter(|(step, _)| (first..last).contains(step)).collect();
    let knee = marks.first().map(|(step, _)| *step);
    let y = (unit == Unit::Share).then_some([0.0, 1.0]);
    LineChart { title, note, x_label: "steps".into(), y, unit, lines, marks, knee }.svg()
}

/// The start of RL.
fn marks(results: &Results) -> Vec<(f64, String)> {
    results
        .rl_start()
        .map(|record| (record.step as f64, format!("{} begins", results.method())))
        .into_iter()
        .collect()
}

/// A metric at each step of a phase.
fn line(results: &Results, phase: Phase, label: &str, metric: Metric) -> Line {
    let of_phase = results.records.iter().filter(|record| record.phase == phase);
    let points: Vec<(f64, f64)> =
        of_phase.filter_map(|record| Some((record.step as f64, record.get(metric)?))).collect();
    Line::binned(label, &points)
}

/// A metric of the evaluations in all phases.
fn evaluated(results: &Results, label: &str, metric: Metric) -> Line {
    let point = |record: &Record| Some(Point { x: record.step as f64, y: record.get(metric)?, band: None });
    Line { label: label.into(), points: results.records.iter().filter_map(point).collect(), dots: true }
}

/// Held-out success and score with their intervals. `at` is the horizontal value of each record.
fn held_out(results: &Results, at: &[f64]) -> Vec<Line> {
    let with_band = |label: &str, [middle, low, high]: [Metric; 3]| {
        let point = |(&x, record): (&f64, &Record)| {
            let band = record.get(low).zip(record.get(high)).map(|(low, high)| [low, high]);
            Some(Point { x, y: record.get(middle)?, band })
        };
        Line {
            label: label.into(),
            points: at.iter().zip(&results.records).filter_map(point).collect(),
            dots: true,
        }
    };
    vec![
        with_band("success", [Metric::EvalSuccessRate, Metric::EvalSuccessLow, Metric::EvalSuccessHigh]),
        with_band("score", [Metric::EvalTaskScore, Metric::EvalScoreLow, Metric::EvalScoreHigh]),
    ]
}

/// The share of each outcome of the held-out episodes in each evaluation.
fn outcomes(results: &Results) -> Option<String> {
    let parts = [
        ("success", Metric::EvalSuccessRate, 0),
        ("over price", Metric::EvalOverPrice, 4),
        ("missing option", Metric::EvalMissingOption, 2),
        ("wrong product", Metric::EvalWrongProduct, 1),
        ("never bought", Metric::EvalNeverBought, 5),
    ];
    let column = |record: &Record| {
        record.get(Metric::EvalSuccessRate)?;
        let shares = parts.iter().map(|(_, metric, _)| record.get(*metric).unwrap_or_default());
        Some(Column { label: record.step.to_string(), parts: shares.collect() })
    };
    let chart = BarChart {
        title: "Outcomes of held-out episodes",
        note: String::new(),
        x_label: "steps",
        unit: Unit::Share,
        parts: parts.iter().map(|(name, _, color)| (*name, *color)).collect(),
        columns: results.records.iter().filter_map(column).collect(),
    };
    chart.svg()
}

/// Histogram of V*, with goals without a success in a color of their own.
fn values(results: &Results) -> Option<String> {
    let goals = results.values.as_ref().map(ValueTable::goals).filter(|goals| !goals.is_empty())?;
    let bins = Bins::over(wide_span(goals.iter().map(|value| value.v_star)), BINS);
    let mut counts = vec![[0.0; 2]; bins.n];
    for value in goals {
        counts[bins.of(value.v_star)][usize::from(value.has_success())] += 1.0;
    }
    let label = |i: usize| if i.is_multiple_of(2) { bins.label(i) } else { String::new() };
    let columns = counts.iter().enumerate().map(|(i, bin)| Column { label: label(i), parts: bin.to_vec() });
    // With `value.adaptive` goals have different numbers of rollouts.
    let n_rollouts = match span(goals.iter().map(|value| value.rewards.len() as f64)) {
        [fewest, most] if fewest == most => fewest.to_string(),
        [fewest, most] => format!("{fewest} to {most}"),
    };
    let chart = BarChart {
        title: "V* of the training goals",
        note: format!("goals, {n_rollouts} rollouts of the reference policy each"),
        x_label: "V*",
        unit: Unit::Number,
        parts: vec![("no success", 5), ("at least one success", 0)],
        columns: columns.collect(),
    };
    chart.svg()
}

/// The mean advantage with its standard deviation as band.
fn advantages(results: &Results) -> Line {
    let point = |record: &Record| {
        let (mean, std) = (record.get(Metric::TrainAdvMean)?, record.get(Metric::TrainAdvStd)?);
        Some((record.step as f64, mean, std))
    };
    let points: Vec<(f64, f64, f64)> = results.records.iter().filter_map(point).collect();
    let means: Vec<(f64, f64)> = points.iter().map(|&(step, mean, _)| (step, mean)).collect();
    let deviations: Vec<(f64, f64)> = points.iter().map(|&(step, _, std)| (step, std)).collect();
    let mut line = Line::binned("", &means);
    for (point, deviation) in line.points.iter_mut().zip(Line::binned("", &deviations).points) {
        point.band = Some([point.y - deviation.y, point.y + deviation.y]);
    }
    line
}

fn inadmissible(results: &Results) -> Option<String> {
    let mut lines = vec![
        line(results, Phase::Learn, "training episodes", Metric::RolloutValidActionRate),
        evaluated(results, "held out", Metric::EvalValidActionRate),
    ];
    for point in lines.iter_mut().flat_map(|line| &mut line.points) {
        point.y = 1.0 - point.y;
        point.band = point.band.map(|[low, high]| [1.0 - high, 1.0 - low]);
    }
    steps_chart(results, "Inadmissible actions", "share of all actions", Unit::Share, lines)
}
