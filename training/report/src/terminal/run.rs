//! A run as text: its progress and its curves.

use std::path::{Path, PathBuf};

use webshop_evaluation::Judgement;
use webshop_training::config::Config;
use webshop_training::metrics::{Follower, Metric, Phase};
use webshop_training::{Result, RunFolder, read_json};

use crate::run::wide_span;
use crate::terminal::braille::plot;
use crate::terminal::{Paint, bar, fitted};

/// Width of the labels of the vertical axis, in characters.
const AXIS_WIDTH: usize = 8;
/// Least width of a chart beside another one.
const MIN_CHART_WIDTH: usize = 34;
/// Least height of a curve, in lines.
const MIN_CURVE_HEIGHT: usize = 3;
/// Greatest height of a curve, in lines.
const MAX_CURVE_HEIGHT: usize = 10;
/// Lines of a chart beside its curve: title, horizontal axis and an empty line.
const FRAME_HEIGHT: usize = 3;

/// The charts in order of importance; those that do not fit are left out.
const CHARTS: [(&str, Metric, Scale); 8] = [
    ("success, held out", Metric::EvalSuccessRate, Scale::Share),
    ("success, training", Metric::RolloutSuccessRate, Scale::Share),
    ("score, held out", Metric::EvalTaskScore, Scale::Share),
    ("loss", Metric::TrainLoss, Scale::Data),
    ("KL to the reference", Metric::TrainApproxKl, Scale::Data),
    ("entropy", Metric::TrainEntropy, Scale::Data),
    ("tokens per episode", Metric::RolloutTokens, Scale::Data),
    ("gradient norm", Metric::TrainGradNorm, Scale::Data),
];

/// Range and number format of the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// From 0 to 1, in percent.
    Share,
    /// From the least to the greatest value.
    Data,
}

/// The configuration and the records of a run folder.
#[derive(Debug)]
pub(super) struct RunView {
    root: PathBuf,
    config: Config,
    follower: Follower,
    run: RunFolder,
}

impl RunView {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let (run, config) = RunFolder::open(folder)?;
        let follower = Follower::new(folder, &config.evaluation.split.to_string());
        Ok(Self { root: folder.into(), config, follower, run })
    }

    pub(super) fn update(&mut self) -> Result<bool> {
        self.follower.update()?;
        Ok(self.run.summary().exists())
    }

    /// The tables of the judgement, if the run was judged.
    pub(super) fn judgement(&self) -> Result<Option<String>> {
        let path = self.run.judgement();
        if !path.exists() {
            return Ok(None);
        }
        let judgement: Judgement = read_json(&path)?;
        let tables = judgement.sets.iter();
        Ok(Some(tables.map(|set| format!("judgement, {}:\n{}", set.title(), set.table().text())).collect()))
    }

    /// Optimizer steps done in a phase, and its number of steps.
    pub(super) fn progress(&self, phase: Phase) -> (u64, u64) {
        let before = self.config.warm_start.all_steps();
        let step = self.follower.records().last().map_or(0, |record| record.step);
        match phase {
            Phase::WarmStart => (step.min(before), before),
            Phase::Learn => (step.saturating_sub(before), self.config.rl.steps),
        }
    }

    /// Step and value of each record of `metric`.
    pub(super) fn curve(&self, metric: Metric) -> Vec<(f64, f64)> {
        self.follower
            .records()
            .iter()
            .filter_map(|record| Some((record.step as f64, record.get(metric)?)))
            .collect()
    }

    /// The points of a chart: shares since the start of the run, other metrics since the start of the current
    /// phase, because their scales differ between phases.
    fn chart_points(&self, metric: Metric, scale: Scale) -> Vec<(f64, f64)> {
        let curve = self.curve(metric);
        let is_learning = self.follower.records().last().is_some_and(|record| record.phase == Phase::Learn);
        let before = self.config.warm_start.all_steps() as f64;
        let is_current = |(step, _): &(f64, f64)| scale == Scale::Share || !is_learning || *step > before;
        curve.into_iter().filter(is_current).collect()
    }

    /// The part of a curve after the warm start.
    pub(super) fn since_warm_start<'a>(&self, curve: &'a [(f64, f64)]) -> &'a [(f64, f64)] {
        let before = self.config.warm_start.all_steps() as f64;
        &curve[curve.partition_point(|point| point.0 < before)..]
    }

    pub(super) fn draw(&self, width: usize, height: usize, paint: Paint) -> String {
        let method = self.config.rl.method();
        let title = format!("{}: {method}, seed {}", self.root.display(), self.config.seed);
        let mut lines = vec![
            paint.strong(fitted(&title, width).trim_end()),
            self.progress_line(width, paint),
            String::new(),
        ];
        let charts: Vec<Chart> = CHARTS
            .iter()
            .map(|&(name, metric, scale)| Chart { name, curve: self.chart_points(metric, scale), scale })
            .filter(|chart| !chart.curve.is_empty())
            .collect();
        if charts.is_empty() {
            lines.push("no metrics recorded yet".into());
        }
        let n_columns = (width / MIN_CHART_WIDTH).clamp(1, 4);
        let room = height.saturating_sub(lines.len());
        let n_rows = charts.len().div_ceil(n_columns).min(room / (MIN_CURVE_HEIGHT + FRAME_HEIGHT)).max(1);
        let curve_height =
            (room / n_rows).saturating_sub(FRAME_HEIGHT).clamp(MIN_CURVE_HEIGHT, MAX_CURVE_HEIGHT);
        for row in charts.chunks(n_columns).take(n_rows) {
            let drawn: Vec<Vec<String>> = row
                .iter()
                .map(|chart| chart.draw((width / n_columns).saturating_sub(2), curve_height, paint))
                .collect();
            for line in 0..curve_height + FRAME_HEIGHT {
                let cells: Vec<&str> = drawn.iter().map(|chart| chart[line].as_str()).collect();
                lines.push(cells.join("  ").trim_end().to_owned());
            }
        }
        lines.truncate(height);
        lines.join("\n") + "\n"
    }

    /// The progress of both phases side by side.
    fn progress_line(&self, width: usize, paint: Paint) -> String {
        let half = width.saturating_sub(4) / 2;
        let progress = |name: &str, phase: Phase| {
            let (step, steps) = self.progress(phase);
            let counted = format!("{step}/{steps}");
            let room = half.saturating_sub(name.len() + counted.len() + 2);
            format!("{name} {} {counted}", paint.curve(&bar(step as f64 / steps.max(1) as f64, room)))
        };
        let method = self.config.rl.method();
        format!("{}    {}", progress("warm start", Phase::WarmStart), progress(&method, Phase::Learn))
    }
}

/// A titled curve.
struct Chart {
    name: &'static str,
    curve: Vec<(f64, f64)>,
    scale: Scale,
}

impl Chart {
    /// A chart as lines of `width` characters: title with the last value, curve with vertical axis, first and
    /// last step, an empty line.
    fn draw(&self, width: usize, height: usize, paint: Paint) -> Vec<String> {
        let Self { name, curve, scale } = self;
        let (x, data) =
            (wide_span(curve.iter().map(|point| point.0)), wide_span(curve.iter().map(|point| point.1)));
        let y = if *scale == Scale::Share { [0.0, 1.0] } else { data };
        let format_value = |value: f64| match scale {
            Scale::Share => format!("{:.0} %", 100.0 * value),
            Scale::Data if value.abs() >= 100.0 => format!("{value:.0}"),
            Scale::Data => format!("{value:.3}"),
        };
        let last = curve.last().map(|point| match scale {
            Scale::Share => format!("{:.1} %", 100.0 * point.1),
            Scale::Data => format_value(point.1),
        });
        let last = last.unwrap_or_default();
        let title = fitted(name, width.saturating_sub(AXIS_WIDTH + last.len() + 2));
        let mut lines = vec![format!("{}{title}  {}", " ".repeat(AXIS_WIDTH), paint.strong(&last))];
        for (row, curve) in
            plot(curve, x, y, width.saturating_sub(AXIS_WIDTH).max(1), height).iter().enumerate()
        {
            let label = match row {
                0 => format_value(y[1]),
                _ if row + 1 == height => format_value(y[0]),
                _ => String::new(),
            };
            lines.push(format!(
                "{}{}",
                paint.faint(&format!("{label:>w$}┤", w = AXIS_WIDTH - 1)),
                paint.curve(curve)
            ));
        }
        let (first, last) =
            (format!("{:.0}", x[0].max(curve[0].0)), format!("{:.0}", curve[curve.len() - 1].0));
        let between = " ".repeat((width - AXIS_WIDTH).saturating_sub(first.len() + last.len()));
        lines.push(paint.faint(&format!("{}{first}{between}{last}", " ".repeat(AXIS_WIDTH))));
        lines.push(" ".repeat(width));
        lines
    }
}
