//! Which curves a report shows, from which metrics.

use crate::run::Results;
use crate::run::bars::{BarChart, Column};
use crate::run::frame::Unit;
use crate::run::line::{Line, LineChart, Point};
use webshop_training::{Metric, Phase, Record};

/// Columns of the histogram of V*.
const BINS: usize = 20;
/// Seconds from which a time axis counts minutes.
const MINUTES_FROM: f64 = 180.0;
/// What the bands of evaluations are.
const INTERVALS: &str = "held-out goals, bands: 95 % intervals";

/// The learning curve against steps.
fn against_steps(results: &Results) -> Option<String> {
    let at: Vec<f64> = results.records.iter().map(|record| record.step as f64).collect();
    let knee = results.learning_began().map(|record| record.step as f64);
    let chart = learning_curve(results, &at, "optimizer steps".into(), marks(results));
    LineChart { title: "Success and score against steps", knee, ..chart }.svg()
}

/// The learning curve against time.
pub(super) fn against_time(results: &Results) -> Option<String> {
    let longest = results.timings.last()?.seconds;
    let (scale, unit) = if longest >= MINUTES_FROM { (60.0, "minutes") } else { (1.0, "seconds") };
    let at: Vec<f64> = results.timings.iter().map(|timing| timing.seconds / scale).collect();
    let began = results.learning_began_at();
    let begins = match results.values {
        Some(_) => format!("V*, then {}", results.loss()),
        None => format!("{} begins", results.loss()),
    };
    let marks = began.map(|at| (at / scale, begins)).into_iter().collect();
    let x_label = format!("{unit} since the run began");
    learning_curve(results, &at, x_label, marks).svg()
}

/// Held-out success and score with the training trips' success beneath, each record standing at its place in `at`.
fn learning_curve(results: &Results, at: &[f64], x_label: String, marks: Vec<(f64, String)>) -> LineChart {
    let mut lines = held_out(results, at);
    let own = at.iter().zip(&results.records).filter(|(_, record)| record.phase == Phase::Learn);
    let own: Vec<(f64, f64)> =
        own.filter_map(|(x, record)| Some((*x, record.get(Metric::RolloutSuccessRate)?))).collect();
    lines.push(Line::gathered("success on training trips", &own));
    LineChart {
        title: "Success and score against time",
        note: INTERVALS,
        x_label,
        y: Some([0.0, 1.0]),
        unit: Unit::Share,
        lines,
        marks,
        knee: None,
    }
}

/// All line charts and columns that have something to show, in reading order.
pub(super) fn all(results: &Results) -> Vec<String> {
    let own = |title, note, unit, lines| steps_chart(results, title, note, unit, lines);
    let learn = |label, metric| line(results, Phase::Learn, label, metric);
    let cloned = |metric| line(results, Phase::WarmStart, "", metric);
    let both = |trips, held| vec![learn("training trips", trips), evaluated(results, held)];
    let at_steps = |steps, held| vec![learn("training steps", steps), evaluated(results, held)];
    let advantage = if results.values.is_some() { "Advantages r − V*" } else { "Advantages" };
    let charts = [
        against_time(results),
        against_steps(results),
        ends_of_trips(results),
        own(
            "Exact actions",
            "at single steps",
            Unit::Share,
            at_steps(Metric::RolloutExactAction, Metric::EvalExactAction),
        ),
        own(
            "Reward",
            "hierarchical, at single steps",
            Unit::Plain,
            at_steps(Metric::RolloutReward, Metric::EvalReward),
        ),
        values(results),
        own(advantage, "mean, band: ± one deviation", Unit::Plain, vec![advantages(results)]),
        own("KL to the reference", "k1, nats a trip", Unit::Plain, vec![learn("", Metric::TrainKl)]),
        own("Entropy of what is written", "nats a token", Unit::Plain, vec![learn("", Metric::TrainEntropy)]),
        own(
            "Actions in a trip",
            "mean",
            Unit::Plain,
            both(Metric::RolloutEpisodeLen, Metric::EvalEpisodeLen),
        ),
        inadmissible(results),
        own(
            "Trips with a written thought",
            "",
            Unit::Share,
            both(Metric::RolloutThinkingRate, Metric::EvalThinkingRate),
        ),
        own("Tokens written in a trip", "mean", Unit::Plain, vec![learn("", Metric::RolloutTokens)]),
        own("Cloning loss", "nats a token", Unit::Plain, vec![cloned(Metric::TrainLoss)]),
        own("Loss on own trips", results.loss(), Unit::Plain, vec![learn("", Metric::TrainLoss)]),
        own("Gradient norm in cloning", "before clipping", Unit::Plain, vec![cloned(Metric::TrainGradNorm)]),
        own(
            "Gradient norm on own trips",
            "before clipping",
            Unit::Plain,
            vec![learn("", Metric::TrainGradNorm)],
        ),
    ];
    charts.into_iter().flatten().collect()
}

impl Results {
    /// The loss's name as the page writes it.
    pub(super) fn loss(&self) -> &'static str {
        self.config.learner.loss.title()
    }
}

/// A chart against steps whose range is the data's, with the beginning of learning marked if it lies within.
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
    LineChart { title, note, x_label: "optimizer steps".into(), y, unit, lines, marks, knee }.svg()
}

fn marks(results: &Results) -> Vec<(f64, String)> {
    results
        .learning_began()
        .map(|record| (record.step as f64, format!("{} begins", results.loss())))
        .into_iter()
        .collect()
}

/// A metric of each step of a phase.
fn line(results: &Results, phase: Phase, label: &str, metric: Metric) -> Line {
    let of_phase = results.records.iter().filter(|record| record.phase == phase);
    let points: Vec<(f64, f64)> =
        of_phase.filter_map(|record| Some((record.step as f64, record.get(metric)?))).collect();
    Line::gathered(label, &points)
}

/// A metric of evaluations, in all phases.
fn evaluated(results: &Results, metric: Metric) -> Line {
    let point = |record: &Record| Some(Point { x: record.step as f64, y: record.get(metric)?, band: None });
    Line { label: "held out".into(), points: results.records.iter().filter_map(point).collect(), dots: true }
}

/// Held-out success and score, each record standing at its place in `at`.
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

fn ends_of_trips(results: &Results) -> Option<String> {
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
        title: "How held-out trips end",
        note: String::new(),
        x_label: "optimizer steps",
        unit: Unit::Share,
        parts: parts.iter().map(|(name, _, colour)| (*name, *colour)).collect(),
        columns: results.records.iter().filter_map(column).collect(),
    };
    chart.svg()
}

fn values(results: &Results) -> Option<String> {
    let table = results.values.as_ref()?;
    let mut bins = vec![[0.0; 2]; BINS];
    for value in table.goals() {
        let bin = (value.v_star.clamp(0.0, 1.0) * BINS as f64) as usize;
        bins[bin.min(BINS - 1)][usize::from(value.has_success())] += 1.0;
    }
    let label = |i: usize| {
        if i.is_multiple_of(2) { format!("{:.1}", i as f64 / BINS as f64) } else { String::new() }
    };
    let columns = bins.iter().enumerate().map(|(i, bin)| Column { label: label(i), parts: bin.to_vec() });
    let chart = BarChart {
        title: "V* of the training goals",
        note: format!("goals, {} trips of the reference each", results.config.value.samples),
        x_label: "V*",
        unit: Unit::Plain,
        parts: vec![("no trip succeeded", 5), ("at least one did", 0)],
        columns: columns.collect(),
    };
    (!table.goals().is_empty()).then(|| chart.svg()).flatten()
}

fn advantages(results: &Results) -> Line {
    let point = |record: &Record| {
        let (mean, std) = (record.get(Metric::TrainAdvMean)?, record.get(Metric::TrainAdvStd)?);
        Some((record.step as f64, mean, std))
    };
    let points: Vec<(f64, f64, f64)> = results.records.iter().filter_map(point).collect();
    let means: Vec<(f64, f64)> = points.iter().map(|&(step, mean, _)| (step, mean)).collect();
    let deviations: Vec<(f64, f64)> = points.iter().map(|&(step, _, std)| (step, std)).collect();
    let mut line = Line::gathered("", &means);
    for (point, deviation) in line.points.iter_mut().zip(Line::gathered("", &deviations).points) {
        point.band = Some([point.y - deviation.y, point.y + deviation.y]);
    }
    line
}

fn inadmissible(results: &Results) -> Option<String> {
    let mut lines = vec![
        line(results, Phase::Learn, "training trips", Metric::RolloutValidActionRate),
        evaluated(results, Metric::EvalValidActionRate),
    ];
    for point in lines.iter_mut().flat_map(|line| &mut line.points) {
        point.y = 1.0 - point.y;
        point.band = point.band.map(|[low, high]| [1.0 - high, 1.0 - low]);
    }
    steps_chart(results, "Inadmissible actions", "share of all actions", Unit::Share, lines)
}
