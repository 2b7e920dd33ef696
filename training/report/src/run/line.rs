//! Lines over steps or seconds, with bands.

use std::fmt::Write;

use crate::run::frame::{Frame, Unit, round_range};

/// Points beyond which a line is gathered into bins; a drawing has no more room.
const MAX_POINTS: usize = 150;

/// One measured value and how sure it is, or how far its neighbours lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub y: f64,
    pub band: Option<[f64; 2]>,
}

/// A line of a chart; at most three fit in one.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub label: String,
    pub points: Vec<Point>,
    /// Whether each point is shown, with its value when it is pointed at.
    pub dots: bool,
}

/// A chart of lines.
#[derive(Debug, Clone)]
pub(super) struct LineChart {
    pub title: &'static str,
    pub note: &'static str,
    pub x_label: String,
    /// A fixed vertical range, or the one of the data.
    pub y: Option<[f64; 2]>,
    pub unit: Unit,
    pub lines: Vec<Line>,
    /// Events on the horizontal axis.
    pub marks: Vec<(f64, String)>,
    /// A horizontal value that stands in the middle, each side having its own scale, if it lies between the others.
    pub knee: Option<f64>,
}

impl Line {
    /// A line without bands through `points`; many points are gathered into bins, whose band spans their values.
    pub(super) fn gathered(label: &str, points: &[(f64, f64)]) -> Self {
        let size = points.len().div_ceil(MAX_POINTS).max(1);
        let gather = |bin: &[(f64, f64)]| {
            let n = bin.len() as f64;
            let low = bin.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let high = bin.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            Point {
                x: bin.iter().map(|point| point.0).sum::<f64>() / n,
                y: bin.iter().map(|point| point.1).sum::<f64>() / n,
                band: (bin.len() > 1).then_some([low, high]),
            }
        };
        Self { label: label.into(), points: points.chunks(size).map(gather).collect(), dots: false }
    }
}

impl LineChart {
    /// The drawing, or `None` if no line has a point.
    pub(super) fn svg(&self) -> Option<String> {
        let lines: Vec<&Line> = self.lines.iter().filter(|line| !line.points.is_empty()).collect();
        let points = || lines.iter().flat_map(|line| &line.points);
        let span = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)])
        };
        points().next()?;
        let x = span(&mut points().map(|point| point.x).chain(self.marks.iter().map(|mark| mark.0)));
        let x = if x[0] < x[1] { x } else { [x[0] - 0.5, x[1] + 0.5] };
        let data =
            || points().flat_map(|point| [point.y].into_iter().chain(point.band.into_iter().flatten()));
        let frame = Frame {
            title: self.title.into(),
            note: self.note.into(),
            x_label: self.x_label.clone(),
            x,
            knee: self.knee.filter(|knee| x[0] < *knee && *knee < x[1]),
            y: self.y.unwrap_or_else(|| round_range(span(&mut data()))),
            unit: self.unit,
        };
        let mut content: String = self.marks.iter().map(|(x, label)| frame.mark(*x, label)).collect();
        for (number, line) in lines.iter().enumerate() {
            content.push_str(&band(&frame, number, line));
        }
        // The first line lies on top of those that accompany it.
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
    let mut path = String::new();
    let upper = edges.iter().map(|(x, [_, high])| (x, high));
    let lower = edges.iter().rev().map(|(x, [low, _])| (x, low));
    for (command, (x, y)) in std::iter::once('M').chain(std::iter::repeat('L')).zip(upper.chain(lower)) {
        let _ = write!(path, "{command}{x:.1} {:.1}", frame.at_y(*y));
    }
    format!("<path class=\"band f{number}\" d=\"{path}Z\"/>\n")
}

fn stroke(frame: &Frame, number: usize, line: &Line, unit: Unit) -> String {
    let mut svg = String::new();
    let mut path = String::new();
    for (command, point) in std::iter::once('M').chain(std::iter::repeat('L')).zip(&line.points) {
        let _ = write!(path, "{command}{:.1} {:.1}", frame.at_x(point.x), frame.at_y(point.y));
    }
    let _ = writeln!(svg, "<path class=\"line l{number}\" d=\"{path}\"/>");
    if line.dots || line.points.len() == 1 {
        for point in &line.points {
            let _ = writeln!(
                svg,
                "<circle class=\"f{number}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}</title></circle>",
                frame.at_x(point.x),
                frame.at_y(point.y),
                spoken(point, unit)
            );
        }
    }
    svg
}

/// A point in words, for whoever points at it.
fn spoken(point: &Point, unit: Unit) -> String {
    let number = |value: f64| match unit {
        Unit::Share => format!("{:.1} %", 100.0 * value),
        Unit::Plain => format!("{value:.3}"),
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
        assert_eq!(chart(vec![Line::gathered("x", &[])]).svg(), None);
    }

    #[test]
    fn points_lie_where_their_values_say() {
        let points = [0.0, 10.0].map(|x| Point { x, y: x / 10.0, band: Some([x / 20.0, x / 10.0]) });
        let svg =
            chart(vec![Line { label: "success".into(), points: points.to_vec(), dots: true }]).svg().unwrap();
        // The lower left and the upper right corner of the plot.
        assert!(svg.contains("<path class=\"line l0\" d=\"M58.0 278.0L582.0 62.0\"/>"), "{svg}");
        assert!(svg.contains("<title>10.0: 100.0 % (50.0 % to 100.0 %)</title>"), "{svg}");
        assert!(svg.contains("M320.0 62V278"), "the mark is in the middle: {svg}");
    }

    #[test]
    fn a_knee_stands_in_the_middle_with_ticks_on_both_sides() {
        let points = [(0.0, 0.0), (8.0, 0.5), (10.0, 1.0)];
        let svg = LineChart { knee: Some(8.0), ..chart(vec![Line::gathered("x", &points)]) }.svg().unwrap();
        assert!(svg.contains("<path class=\"line l0\" d=\"M58.0 278.0L320.0 170.0L582.0 62.0\"/>"), "{svg}");
        // Each half is 262 wide: 5 of 8 lies at 58 + 163.75, 9 halfway from 8 to 10.
        for (x, label) in [("58.0", "0"), ("221.8", "5"), ("451.0", "9"), ("582.0", "10")] {
            assert!(
                svg.contains(&format!("<text class=\"middle\" x=\"{x}\" y=\"295\">{label}</text>")),
                "{svg}"
            );
        }
    }

    #[test]
    fn many_points_are_gathered_with_their_extremes() {
        let points: Vec<(f64, f64)> = (0..300).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let line = Line::gathered("x", &points);
        assert_eq!(line.points.len(), 150);
        assert_eq!(line.points[0], Point { x: 0.5, y: 0.5, band: Some([0.0, 1.0]) });
    }
}
