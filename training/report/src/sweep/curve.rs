//! Lines over what was spent: one of each run, and the band of an arm's runs.
//!
//! What an arm spends is counted from the end of the warm start, which all arms share. Between two measurements a line is
//! straight; the runs of an arm are averaged over the range that all of them reach.

use webshop_training::sweep::outcome::{ArmOutcome, RunOutcome};
use webshop_training::{Metric, Phase};
use crate::run::Banded;

/// Points of an arm's line at most; more measurements than that are averaged with their neighbours.
const MAX_POINTS: usize = 40;

/// What is counted along the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// Tokens that the learner's model wrote, V* included.
    Tokens,
    /// Seconds, evaluations included.
    Seconds,
}

/// The mean of the arm's runs with the lowest and the highest of them. Empty if a run has no such measurement.
pub(super) fn banded(arm: &ArmOutcome, metric: Metric, spent: Spent) -> Vec<Banded> {
    let lines: Vec<Vec<(f64, f64)>> =
        arm.runs.iter().map(|run| gathered(&measured(run, metric, spent))).collect();
    average(&lines)
}

/// What the arm's runs measured when they had spent so much, in order; `None` beyond a run's end. A run that learns
/// nothing stays where it began.
pub(super) fn at(arm: &ArmOutcome, metric: Metric, spent: Spent, x: f64) -> Vec<Option<f64>> {
    let value = |run: &RunOutcome| {
        let line = measured(run, metric, spent);
        let stays = total(run, Spent::Tokens) == 0.0;
        line.last().filter(|last| stays || x <= last.0).and_then(|_| between(&line, x))
    };
    arm.runs.iter().map(value).collect()
}

/// What the run had spent when it ended.
pub(super) fn total(run: &RunOutcome, spent: Spent) -> f64 {
    spent_after(run, spent).last().copied().unwrap_or_default()
}

/// The measurements since the end of the warm start.
fn measured(run: &RunOutcome, metric: Metric, spent: Spent) -> Vec<(f64, f64)> {
    let learning = run.records.iter().filter(|(record, _)| record.phase == Phase::Learn);
    let learning = learning.zip(spent_after(run, spent));
    let before = run.records.iter().rev().find(|(record, _)| record.phase == Phase::WarmStart);
    before
        .and_then(|(record, _)| Some((0.0, record.get(metric)?)))
        .into_iter()
        .chain(learning.filter_map(|((record, _), spent)| Some((spent, record.get(metric)?))))
        .collect()
}

/// What had been spent after each record of the learner.
fn spent_after(run: &RunOutcome, spent: Spent) -> Vec<f64> {
    let learning = run.records.iter().filter(|(record, _)| record.phase == Phase::Learn);
    match spent {
        Spent::Seconds => {
            let before = run.records.iter().rev().find(|(record, _)| record.phase == Phase::WarmStart);
            let began = before.map_or(0.0, |(_, timing)| timing.seconds);
            learning.map(|(_, timing)| timing.seconds - began).collect()
        }
        Spent::Tokens => {
            // An evaluation writes tokens too, but teaches nothing: it stands where the step before it stood.
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

/// At most [`MAX_POINTS`] points, each the mean of neighbouring ones.
fn gathered(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = line.len().div_ceil(MAX_POINTS).max(1);
    let mean = |bin: &[(f64, f64)]| {
        let n = bin.len() as f64;
        (bin.iter().map(|point| point.0).sum::<f64>() / n, bin.iter().map(|point| point.1).sum::<f64>() / n)
    };
    line.chunks(size).map(mean).collect()
}

/// The mean of several lines with their lowest and highest values, at evenly spaced places of the range that all reach.
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
        let values: Vec<f64> = lines.iter().filter_map(|line| between(line, x)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Banded { x, y: values.iter().sum::<f64>() / values.len() as f64, band: [low, high] }
    };
    (0..n).map(point).collect()
}

/// The value of a line at `x`, that of its nearer end outside; `None` of an empty one.
fn between(line: &[(f64, f64)], x: f64) -> Option<f64> {
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
    fn a_line_is_straight_between_its_points() {
        let line = [(0.0, 1.0), (10.0, 2.0), (10.0, 3.0), (30.0, 5.0)];
        let values = [-1.0, 0.0, 5.0, 10.0, 20.0, 31.0].map(|x| between(&line, x).unwrap());
        assert_eq!(values, [1.0, 1.0, 1.5, 2.0, 4.0, 5.0]);
        assert_eq!(between(&[], 0.0), None);
    }

    #[test]
    fn lines_are_averaged_where_all_of_them_are() {
        let lines = [vec![(0.0, 0.0), (5.0, 5.0), (10.0, 10.0)], vec![(2.0, 4.0), (6.0, 4.0)]];
        let points = average(&lines);
        let expected = [(2.0, 3.0, [2.0, 4.0]), (4.0, 4.0, [4.0, 4.0]), (6.0, 5.0, [4.0, 6.0])];
        assert_eq!(points, expected.map(|(x, y, band)| Banded { x, y, band }));
        assert_eq!(average(&[vec![(0.0, 1.0), (1.0, 1.0)], Vec::new()]), []);
    }

    #[test]
    fn many_points_become_means_of_neighbours() {
        let line: Vec<(f64, f64)> = (0..80).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let gathered = gathered(&line);
        assert_eq!((gathered.len(), gathered[0]), (40, (0.5, 0.5)));
    }
}
