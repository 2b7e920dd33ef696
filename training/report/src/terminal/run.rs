//! One run: how far it is, and its curves.

use std::path::{Path, PathBuf};

use crate::terminal::braille::plot;
use crate::terminal::{Paint, bar, fitted};
use webshop_training::run::folder::RunFolder;
use webshop_training::Config;
use webshop_training::Result;
use webshop_training::{Follower, Metric, Phase};

/// Characters before a curve, for the values of its axis.
const AXIS: usize = 8;
/// A chart no narrower than this stands beside another.
const NARROWEST: usize = 34;
/// Lines of the smallest curve.
const LOWEST: usize = 3;
/// Lines of the largest.
const HIGHEST: usize = 10;
/// Lines of a chart beside its curve: its title, the axis and a space.
const AROUND: usize = 3;

/// The charts by importance; those that find no room are left out.
const CHARTS: [(&str, Metric, Scale); 8] = [
    ("success, held out", Metric::EvalSuccessRate, Scale::Share),
    ("success, own trips", Metric::RolloutSuccessRate, Scale::Share),
    ("score, held out", Metric::EvalTaskScore, Scale::Share),
    ("loss", Metric::TrainLoss, Scale::Data),
    ("KL to the reference", Metric::TrainKl, Scale::Data),
    ("entropy", Metric::TrainEntropy, Scale::Data),
    ("tokens a trip", Metric::RolloutTokens, Scale::Data),
    ("gradient norm", Metric::TrainGradNorm, Scale::Data),
];

/// How the vertical axis of a chart ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// At 0 and 100 %.
    Share,
    /// At the least and the greatest value.
    Data,
}

/// A run folder as it grows.
#[derive(Debug)]
pub(super) struct RunView {
    root: PathBuf,
    config: Config,
    follower: Follower,
    summary: PathBuf,
}

impl RunView {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let (run, config) = RunFolder::look(folder)?;
        let follower = Follower::new(folder, &config.evaluation.split.to_string());
        Ok(Self { root: folder.into(), config, follower, summary: run.summary() })
    }

    pub(super) fn update(&mut self) -> Result<bool> {
        self.follower.update()?;
        Ok(self.summary.exists())
    }

    /// Optimizer steps taken in a phase, and how many it has.
    pub(super) fn progress(&self, phase: Phase) -> (u64, u64) {
        let before = self.config.warm_start.all_steps();
        let step = self.follower.records().last().map_or(0, |record| record.step);
        match phase {
            Phase::WarmStart => (step.min(before), before),
            Phase::Learn => (step.saturating_sub(before), self.config.learner.steps),
        }
    }

    /// What was measured under `metric`, by step.
    pub(super) fn curve(&self, metric: Metric) -> Vec<(f64, f64)> {
        self.follower
            .records()
            .iter()
            .filter_map(|record| Some((record.step as f64, record.get(metric)?)))
            .collect()
    }

    /// What a chart shows: shares since the run began, all else since its present phase did, as phases have scales of
    /// their own.
    fn shown(&self, metric: Metric, scale: Scale) -> Vec<(f64, f64)> {
        let curve = self.curve(metric);
        let is_learning = self.follower.records().last().is_some_and(|record| record.phase == Phase::Learn);
        let before = self.config.warm_start.all_steps() as f64;
        let is_present = |(step, _): &(f64, f64)| scale == Scale::Share || !is_learning || *step > before;
        curve.into_iter().filter(is_present).collect()
    }

    /// The part of a curve that is the learner's.
    pub(super) fn since_warm_start<'a>(&self, curve: &'a [(f64, f64)]) -> &'a [(f64, f64)] {
        let before = self.config.warm_start.all_steps() as f64;
        &curve[curve.partition_point(|point| point.0 < before)..]
    }

    pub(super) fn draw(&self, width: usize, height: usize, paint: Paint) -> String {
        let loss = self.config.learner.loss;
        let title = format!("{}: {loss}, seed {}", self.root.display(), self.config.seed);
        let mut lines = vec![paint.strong(fitted(&title, width).trim_end())];
        let half = width.saturating_sub(4) / 2;
        let stage = |name: &str, phase: Phase| {
            let (step, steps) = self.progress(phase);
            let counted = format!("{step}/{steps}");
            let room = half.saturating_sub(name.len() + counted.len() + 2);
            format!("{name} {} {counted}", paint.curve(&bar(step as f64 / steps.max(1) as f64, room)))
        };
        let learner = loss.to_string();
        lines.push(format!("{}    {}", stage("warm start", Phase::WarmStart), stage(&learner, Phase::Learn)));
        lines.push(String::new());
        let charts: Vec<_> = CHARTS
            .iter()
            .map(|(name, metric, scale)| (*name, self.shown(*metric, *scale), *scale))
            .filter(|(_, curve, _)| !curve.is_empty())
            .collect();
        if charts.is_empty() {
            lines.push("nothing has been measured yet".into());
        }
        let n_columns = (width / NARROWEST).clamp(1, 4);
        let room = height.saturating_sub(lines.len());
        let n_rows = charts.len().div_ceil(n_columns).min(room / (LOWEST + AROUND)).max(1);
        let high = (room / n_rows).saturating_sub(AROUND).clamp(LOWEST, HIGHEST);
        for row in charts.chunks(n_columns).take(n_rows) {
            let drawn: Vec<Vec<String>> = row
                .iter()
                .map(|(name, curve, scale)| chart(name, curve, *scale, width / n_columns - 2, high, paint))
                .collect();
            for line in 0..high + AROUND {
                let cells: Vec<&str> = drawn.iter().map(|chart| chart[line].as_str()).collect();
                lines.push(cells.join("  ").trim_end().to_owned());
            }
        }
        lines.truncate(height);
        lines.join("\n") + "\n"
    }
}

/// One chart as lines of `width` characters: title and last value, the curve with its axis, the steps, a space.
fn chart(
    name: &str,
    curve: &[(f64, f64)],
    scale: Scale,
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<String> {
    let (x, data) = (ends(curve.iter().map(|point| point.0)), ends(curve.iter().map(|point| point.1)));
    let y = if scale == Scale::Share { [0.0, 1.0] } else { data };
    let written = |value: f64| match scale {
        Scale::Share => format!("{:.0} %", 100.0 * value),
        Scale::Data if value.abs() >= 100.0 => format!("{value:.0}"),
        Scale::Data => format!("{value:.3}"),
    };
    let last = curve.last().map(|point| match scale {
        Scale::Share => format!("{:.1} %", 100.0 * point.1),
        Scale::Data => written(point.1),
    });
    let last = last.unwrap_or_default();
    let title = fitted(name, width.saturating_sub(AXIS + last.len() + 2));
    let mut lines = vec![format!("{}{title}  {}", " ".repeat(AXIS), paint.strong(&last))];
    for (row, curve) in plot(curve, x, y, width - AXIS, height).iter().enumerate() {
        let label = match row {
            0 => written(y[1]),
            _ if row + 1 == height => written(y[0]),
            _ => String::new(),
        };
        lines.push(format!("{}{}", paint.faint(&format!("{label:>w$}┤", w = AXIS - 1)), paint.curve(curve)));
    }
    let (first, last) = (format!("{:.0}", x[0].max(curve[0].0)), format!("{:.0}", curve[curve.len() - 1].0));
    let between = " ".repeat((width - AXIS).saturating_sub(first.len() + last.len()));
    lines.push(paint.faint(&format!("{}{first}{between}{last}", " ".repeat(AXIS))));
    lines.push(" ".repeat(width));
    lines
}

/// The least and the greatest value, apart from each other.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] =
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)]);
    if low < high { [low, high] } else { [low - 0.5, high + 0.5] }
}
