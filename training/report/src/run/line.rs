//! Line charts over steps or seconds, with bands.

use std::fmt::Write;

use crate::run::axis::{Unit, round_range, span, wide_span};
use crate::run::frame::Frame;
use crate::run::svg::{area, polyline};

/// Greatest number of points of a line; more points are averaged in bins.
const MAX_POINTS: usize = 150;

/// A value with its interval, or with the range of the values averaged in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) band: Option<[f64; 2]>,
}

/// A line of a chart; the style has colors for three lines.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(crate) label: String,
    pub(crate) points: Vec<Point>,
    /// Whether each point is drawn as a dot with a tooltip.
    pub(crate) dots: bool,
}

/// A line chart.
#[derive(Debug, Clone)]
pub(super) struct LineChart {
    pub(crate) title: &'static str,
    pub(crate) note: &'static str,
    pub(crate) x_label: String,
    /// The vertical range; `None` for the range of the data.
    pub(crate) y: Option<[f64; 2]>,
    pub(crate) unit: Unit,
    pub(crate) lines: Vec<Line>,
    /// Labeled events on the horizontal axis.
    pub(crate) marks: Vec<(f64, String)>,
    /// A horizontal value that is drawn in the middle, with one scale on each side, if it is inside the
    /// range.
    pub(crate) knee: Option<f64>,
}

impl Line {
    /// A line through `points`. More than [`MAX_POINTS`] points are averaged in bins, with the range of a bin
    /// as band.
    pub(super) fn binned(label: &str, points: &[(f64, f64)]) -> Self {
        let size = points.len().div_ceil(MAX_POINTS).max(1);
        let average = |bin: &[(f64, f64)]| {
            let n = bin.len() as f64;
            let low = bin.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let high = bin.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            Point {
                x: bin.iter().map(|point| point.0).sum::<f64>() / n,
                y: bin.iter().map(|point| point.1).sum::<f64>() / n,
                band: (bin.len() > 1).then_some([low, high]),
            }
        };
        Self { label: label.into(), points: points.chunks(size).map(average).collect(), dots: false }
    }
}

impl LineChart {
    /// The drawing, or `None` if no line has a point.
    pub(super) fn svg(&self) -> Option<String> {
        let lines: Vec<&Line> = self.lines.iter().filter(|line| !line.points.is_empty()).collect();
        let points = || lines.iter().flat_map(|line| &line.points);
        points().next()?;
        let x = wide_span(points().map(|point| point.x).chain(self.marks.iter().map(|mark| mark.0)));
        let data =
            || points().flat_map(|point| [point.y].into_iter().chain(point.band.into_iter().flatten()));
        let frame = Frame {
            title: self.title.into(),
            note: self.note.into(),
            x_label: self.x_label.clone(),
            x,
            knee: self.knee.filter(|knee| x[0] < *knee && *knee < x[1]),
            y: self.y.unwrap_or_else(|| round_range(span(data()))),
            unit: self.unit,
        };
        let mut content: String = self.marks.iter().map(|(x, label)| frame.mark(*x, label)).collect();
        for (number, line) in lines.iter().enumerate() {
            content.push_str(&band(&frame, number, line));
        }
        // The first line is drawn last, so that it is on top.
        for (number, line) in lines.iter().enumerate().rev() {
            content.push_str(&stroke(&frame, number, line, self.unit));
        }
        let swatch = |number: usize| format!("<path class=\"line l{number}\" d=\"M0 0H18\"/>");
        let legend: Vec<(String, String)> = match lines.as_slice() {
            [only] if only.label.is_empty() => Vec::new(),
            _ => {
                lines.iter().enumerate().map(|(number, line)| (line.label.clone(), swatch(number))).collect()
            }
        };
        Some(frame.draw(&legend, &frame.x_ticks(), &content))
    }
}

fn band(frame: &Frame, number: usize, line: &Line) -> String {
    let edges: Vec<(f64, [f64; 2])> =
        line.points.iter().filter_map(|point| Some((frame.at_x(point.x), point.band?))).collect();
    if edges.len() < 2 {
        return String::new();
    }
    let upper = edges.iter().map(|(x, [_, high])| (*x, frame.at_y(*high)));
    let lower = edges.iter().map(|(x, [low, _])| (*x, frame.at_y(*low)));
    format!("<path class=\"band f{number}\" d=\"{}\"/>\n", area(upper, lower))
}

fn stroke(frame: &Frame, number: usize, line: &Line, unit: Unit) -> String {
    let path = polyline(line.points.iter().map(|point| (frame.at_x(point.x), frame.at_y(point.y))));
    let mut svg = format!("<path class=\"line l{number}\" d=\"{path}\"/>\n");
    if line.dots || line.points.len() == 1 {
        for point in &line.points {
            let _ = writeln!(
                svg,
                "<circle class=\"f{number}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
                frame.at_x(point.x),
                frame.at_y(point.y),
                tooltip(point, unit)
            );
        }
    }
    svg
}

/// The text of a tooltip: x, y and the band.
fn tooltip(point: &Point, unit: Unit) -> String {
    let number = |value: f64| match unit {
        Unit::Share => format!("{:.1} %", 100.0 * value),
        Unit::Number => format!("{value:.3}"),
    };
    let band = point.band.map(|[low, high]| format!(" ({} to {})", number(low), number(high)));
    format!("{:.1}: {}{}", point.x, number(point.y), band.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(lines: Vec<Line>) -> LineChart {
        LineChart {
            title: "Success",
            note: "held out",
            x_label: "steps".into(),
            y: Some([0.0, 1.0]),
            unit: Unit::Share,
            lines,
            marks: vec![(5.0, "A*-PO".into())],
            knee: None,
        }
    }

    #[test]
    fn a_chart_without_points_is_not_drawn() {
        assert_eq!(chart(vec![Line::binned("x", &[])]).svg(), None);
    }

    #[test]
    fn points_are_at_the_coordinates_of_their_values() {
        let points = [0.0, 10.0].map(|x| Point { x, y: x / 10.0, band: Some([x / 20.0, x / 10.0]) });
        let svg =
            chart(vec![Line { label: "success".into(), points: points.to_vec(), dots: true }]).svg().unwrap();
        // The lower left and the upper right corner of the plot.
        assert!(svg.contains("<path class=\"line l0\" d=\"M58.0 284.0L582.0 68.0\"/>"), "{svg}");
        assert!(svg.contains("<title>10.0: 100.0 % (50.0 % to 100.0 %)</title>"), "{svg}");
        assert!(svg.contains("M320.0 68V284"), "the mark is in the middle: {svg}");
    }

    #[test]
    fn a_knee_is_in_the_middle_with_ticks_on_both_sides() {
        let points = [(0.0, 0.0), (8.0, 0.5), (10.0, 1.0)];
        let svg = LineChart { knee: Some(8.0), ..chart(vec![Line::binned("x", &points)]) }.svg().unwrap();
        assert!(svg.contains("<path class=\"line l0\" d=\"M58.0 284.0L320.0 176.0L582.0 68.0\"/>"), "{svg}");
        // Each half is 262 wide: 5 of 8 lies at 58 + 163.75, 9 halfway from 8 to 10.
        for (x, label) in [("58.0", "0"), ("221.8", "5"), ("451.0", "9"), ("582.0", "10")] {
            assert!(
                svg.contains(&format!("<text class=\"middle\" x=\"{x}\" y=\"301\">{label}</text>")),
                "{svg}"
            );
        }
    }

    #[test]
    fn many_points_are_averaged_with_their_range() {
        let points: Vec<(f64, f64)> = (0..300).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let line = Line::binned("x", &points);
        assert_eq!(line.points.len(), 150);
        assert_eq!(line.points[0], Point { x: 0.5, y: 0.5, band: Some([0.0, 1.0]) });
    }
}
