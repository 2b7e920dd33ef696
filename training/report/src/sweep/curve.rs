//! Curves of a metric over generated tokens or seconds, averaged over the runs of an arm.
//!
//! The horizontal axis starts at the end of the warm start, which the arms share. Values between two records
//! are interpolated linearly; the average covers the range that all runs of the arm reach.

use webshop_training::metrics::{Metric, Phase};
use webshop_training::sweep::{ArmOutcome, RunOutcome};

use crate::run::Banded;

/// Greatest number of points of a curve; more records are averaged with their neighbors.
const MAX_POINTS: usize = 40;

/// The quantity of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Tokens generated for training, V* estimation included.
    Tokens,
    /// Wall-clock seconds, evaluations included.
    Seconds,
}

/// The mean of the arm's runs, with the lowest and the highest run as band. Empty if a run has no record of
/// `metric`.
pub(super) fn banded(arm: &ArmOutcome, metric: Metric, cost: Cost) -> Vec<Banded> {
    let lines: Vec<Vec<(f64, f64)>> =
        arm.runs.iter().map(|run| binned(&measured(run, metric, cost))).collect();
    average(&lines)
}

/// The value of `metric` at `x` in each run of the arm; `None` beyond the end of a run. A run without
/// training steps keeps its value after the warm start.
pub(super) fn at(arm: &ArmOutcome, metric: Metric, cost: Cost, x: f64) -> Vec<Option<f64>> {
    let value = |run: &RunOutcome| {
        let line = measured(run, metric, cost);
        let is_constant = total(run, Cost::Tokens) == 0.0;
        line.last().filter(|last| is_constant || x <= last.0).and_then(|_| interpolated(&line, x))
    };
    arm.runs.iter().map(value).collect()
}

/// The mean of the last values of the arm's runs; `None` if a run has no record of `metric`.
pub(super) fn end(arm: &ArmOutcome, metric: Metric) -> Option<f64> {
    let last = |run: &RunOutcome| Some(measured(run, metric, Cost::Tokens).last()?.1);
    let values: Vec<f64> = arm.runs.iter().map(last).collect::<Option<_>>()?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// The quantity at the end of the run.
pub(super) fn total(run: &RunOutcome, cost: Cost) -> f64 {
    cost_at_records(run, cost).last().copied().unwrap_or_default()
}

/// The values since the end of the warm start, as points.
fn measured(run: &RunOutcome, metric: Metric, cost: Cost) -> Vec<(f64, f64)> {
    let learning = run.records.iter().filter(|(record, _)| record.phase == Phase::Learn);
    let learning = learning.zip(cost_at_records(run, cost));
    let before = run.records.iter().rev().find(|(record, _)| record.phase == Phase::WarmStart);
    before
        .and_then(|(record, _)| Some((0.0, record.get(metric)?)))
        .into_iter()
        .chain(learning.filter_map(|((record, _), cost)| Some((cost, record.get(metric)?))))
        .collect()
}

/// The quantity at each record after the warm start.
fn cost_at_records(run: &RunOutcome, cost: Cost) -> Vec<f64> {
    let learning = run.records.iter().filter(|(record, _)| record.phase == Phase::Learn);
    match cost {
        Cost::Seconds => {
            let before = run.records.iter().rev().find(|(record, _)| record.phase == Phase::WarmStart);
            let began = before.map_or(0.0, |(_, timing)| timing.seconds);
            learning.map(|(_, timing)| timing.seconds - began).collect()
        }
        Cost::Tokens => {
            // Tokens of an evaluation are not counted: it has the total of the training step before it.
            let mut total = 0.0;
            learning
                .map(|(record, _)| {
                    total = record.get(Metric::RolloutTokensTotal).unwrap_or(total);
                    total
                })
                .collect()
        }
    }
}

/// Averages neighboring points so that at most [`MAX_POINTS`] are left.
fn binned(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = line.len().div_ceil(MAX_POINTS).max(1);
    let mean = |bin: &[(f64, f64)]| {
        let n = bin.len() as f64;
        (bin.iter().map(|point| point.0).sum::<f64>() / n, bin.iter().map(|point| point.1).sum::<f64>() / n)
    };
    line.chunks(size).map(mean).collect()
}

/// The mean of several lines with their lowest and highest values, at evenly spaced `x` in the range that all
/// cover.
fn average(lines: &[Vec<(f64, f64)>]) -> Vec<Banded> {
    let ends = |line: &Vec<(f64, f64)>| Some((line.first()?.0, line.last()?.0));
    let Some(ends) = lines.iter().map(ends).collect::<Option<Vec<_>>>().filter(|ends| !ends.is_empty())
    else {
        return Vec::new();
    };
    let from = ends.iter().map(|end| end.0).fold(f64::NEG_INFINITY, f64::max);
    let to = ends.iter().map(|end| end.1).fold(f64::INFINITY, f64::min);
    let n = lines.iter().map(Vec::len).max().unwrap_or_default();
    if to < from || n < 2 {
        return Vec::new();
    }
    let point = |number: usize| {
        let x = from + (to - from) * number as f64 / (n - 1) as f64;
        let values: Vec<f64> = lines.iter().filter_map(|line| interpolated(line, x)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Banded { x, y: values.iter().sum::<f64>() / values.len() as f64, band: [low, high] }
    };
    (0..n).map(point).collect()
}

/// The linear interpolation of a line at `x`, constant outside its range; `None` for an empty line.
fn interpolated(line: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = line.partition_point(|point| point.0 < x);
    let (Some(before), Some(next)) = (line.get(after.wrapping_sub(1)), line.get(after)) else {
        return line.get(after).or(line.last()).map(|end| end.1);
    };
    let share = (x - before.0) / (next.0 - before.0);
    Some(before.1 + share * (next.1 - before.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_interpolated_between_points() {
        let line = [(0.0, 1.0), (10.0, 2.0), (10.0, 3.0), (30.0, 5.0)];
        let values = [-1.0, 0.0, 5.0, 10.0, 20.0, 31.0].map(|x| interpolated(&line, x).unwrap());
        assert_eq!(values, [1.0, 1.0, 1.5, 2.0, 4.0, 5.0]);
        assert_eq!(interpolated(&[], 0.0), None);
    }

    #[test]
    fn lines_are_averaged_over_their_common_range() {
        let lines = [vec![(0.0, 0.0), (5.0, 5.0), (10.0, 10.0)], vec![(2.0, 4.0), (6.0, 4.0)]];
        let points = average(&lines);
        let expected = [(2.0, 3.0, [2.0, 4.0]), (4.0, 4.0, [4.0, 4.0]), (6.0, 5.0, [4.0, 6.0])];
        assert_eq!(points, expected.map(|(x, y, band)| Banded { x, y, band }));
        assert_eq!(average(&[vec![(0.0, 1.0), (1.0, 1.0)], Vec::new()]), []);
    }

    #[test]
    fn many_points_are_averaged_with_their_neighbors() {
        let line: Vec<(f64, f64)> = (0..80).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let binned = binned(&line);
        assert_eq!((binned.len(), binned[0]), (40, (0.5, 0.5)));
    }
}
