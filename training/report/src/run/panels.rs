//! Small multiples: one panel a line, each with all the others in grey behind it.
//!
//! A dozen lines with bands in one chart hide each other. Here every line has a panel of its own, where it stands in
//! colour over its band; the panels share their axes, and the line that the others are measured against is dashed in all
//! of them.

use webshop_evaluation::table::escape;
use std::fmt::Write;

use crate::run::frame::{Unit, opening, round_range, ticks};

/// Panels beside each other.
const COLUMNS: usize = 4;
/// Width of the drawing, in its own units.
const WIDTH: f64 = 900.0;
/// Room at the left for the vertical axis, and at the right.
const LEFT: f64 = 50.0;
const RIGHT: f64 = 14.0;
/// Room above the first row, for title and note.
const TOP: f64 = 40.0;
/// Room below the last row, for the horizontal axis.
const BOTTOM: f64 = 44.0;
/// Between panels; the panel's name stands in the vertical one.
const GAP_X: f64 = 16.0;
const GAP_Y: f64 = 28.0;
/// Height of what a panel shows.
const HEIGHT: f64 = 112.0;

/// One value of a line and between which values the single runs lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Banded {
    pub x: f64,
    pub y: f64,
    pub band: [f64; 2],
}

/// What a panel shows.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// The line's name.
    pub name: String,
    /// Beside the name, smaller.
    pub figure: String,
    pub line: Vec<Banded>,
}

/// The whole drawing.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    pub title: String,
    pub note: String,
    pub x_label: String,
    pub unit: Unit,
    /// A fixed vertical range, or the one of the data.
    pub y: Option<[f64; 2]>,
    /// Position of the panel whose line is dashed in all others.
    pub baseline: usize,
    pub panels: Vec<Panel>,
}

/// Where values lie within a panel.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
    width: f64,
}

impl Axes {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let share = |value: f64, [low, high]: [f64; 2]| ((value - low) / (high - low)).clamp(0.0, 1.0);
        (self.width * share(x, self.x), HEIGHT * (1.0 - share(y, self.y)))
    }
}

impl Panels {
    /// The drawing, or `None` if no line has a point.
    pub(crate) fn svg(&self) -> Option<String> {
        let axes = self.axes()?;
        let n_columns = COLUMNS.min(self.panels.len());
        let n_rows = self.panels.len().div_ceil(n_columns);
        let height = TOP + n_rows as f64 * (GAP_Y + HEIGHT) + BOTTOM;
        let mut svg = opening([WIDTH, height], &self.title, &self.note);
        // Drawn once and shown in every panel, under a name that is this drawing's own on a page of several.
        let name: String = self.title.chars().filter(char::is_ascii_alphanumeric).collect();
        let _ = writeln!(svg, "<defs><g id=\"{name}\">\n{}</g></defs>", self.behind(&axes));
        for (number, panel) in self.panels.iter().enumerate() {
            let (row, column) = (number / n_columns, number % n_columns);
            let left = LEFT + column as f64 * (axes.width + GAP_X);
            let top = TOP + GAP_Y + row as f64 * (GAP_Y + HEIGHT);
            let is_lowest = number + n_columns >= self.panels.len();
            let _ = write!(
                svg,
                "<g transform=\"translate({left:.1} {top:.1})\">\n{}<use class=\"other\" href=\"#{name}\"/>\n{}</g>\n",
                self.scale(&axes, column == 0, is_lowest),
                self.panel(&axes, number, panel)
            );
        }
        let _ = write!(
            svg,
            "<text class=\"end\" x=\"{}\" y=\"{}\">{}</text>\n</svg>\n",
            WIDTH - RIGHT,
            height - 10.0,
            escape(&self.x_label)
        );
        Some(svg)
    }

    fn axes(&self) -> Option<Axes> {
        let points = || self.panels.iter().flat_map(|panel| &panel.line);
        let span = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)])
        };
        points().next()?;
        let x = span(&mut points().map(|point| point.x));
        let x = if x[0] < x[1] { x } else { [x[0] - 0.5, x[1] + 0.5] };
        let y = self.y.unwrap_or_else(|| {
            round_range(span(&mut points().flat_map(|point| [point.y, point.band[0], point.band[1]])))
        });
        let n_columns = COLUMNS.min(self.panels.len()) as f64;
        Some(Axes { x, y, width: (WIDTH - LEFT - RIGHT - (n_columns - 1.0) * GAP_X) / n_columns })
    }

    /// Grid and ticks, labelled at the left and at the bottom of the whole drawing.
    fn scale(&self, axes: &Axes, is_leftmost: bool, is_lowest: bool) -> String {
        let mut svg = String::new();
        for (value, label) in ticks(axes.y, 4, self.unit) {
            let (_, y) = axes.at(axes.x[0], value);
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M0 {y:.1}H{:.1}\"/>", axes.width);
            if is_leftmost {
                let _ = writeln!(svg, "<text class=\"end\" x=\"-6\" y=\"{:.1}\">{label}</text>", y + 4.0);
            }
        }
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M0 {HEIGHT}H{:.1}\"/>", axes.width);
        if is_lowest {
            for (value, label) in ticks(axes.x, 4, Unit::Plain) {
                let (x, _) = axes.at(value, axes.y[0]);
                let _ = writeln!(
                    svg,
                    "<text class=\"middle\" x=\"{x:.1}\" y=\"{}\">{label}</text>",
                    HEIGHT + 16.0
                );
            }
        }
        svg
    }

    /// All lines in grey.
    fn behind(&self, axes: &Axes) -> String {
        let drawn = self.panels.iter().filter(|panel| !panel.line.is_empty());
        drawn.map(|panel| format!("<path d=\"{}\"/>\n", path(axes, &panel.line))).collect()
    }

    fn panel(&self, axes: &Axes, number: usize, panel: &Panel) -> String {
        let mut svg = format!(
            "<text class=\"name\" x=\"0\" y=\"-7\">{}<tspan dx=\"7\" font-weight=\"400\" \
             fill=\"var(--soft)\">{}</tspan></text>\n",
            escape(&panel.name),
            escape(&panel.figure)
        );
        if number != self.baseline
            && let Some(baseline) = self.panels.get(self.baseline)
        {
            let _ = writeln!(svg, "<path class=\"baseline\" d=\"{}\"/>", path(axes, &baseline.line));
        }
        if panel.line.len() > 1 {
            let _ = writeln!(svg, "<path class=\"band f0\" d=\"{}\"/>", band(axes, &panel.line));
        }
        let _ = writeln!(svg, "<path class=\"line l0\" d=\"{}\"/>", path(axes, &panel.line));
        svg
    }
}

fn path(axes: &Axes, line: &[Banded]) -> String {
    let mut path = String::new();
    for (command, point) in std::iter::once('M').chain(std::iter::repeat('L')).zip(line) {
        let (x, y) = axes.at(point.x, point.y);
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

fn band(axes: &Axes, line: &[Banded]) -> String {
    let upper = line.iter().map(|point| (point.x, point.band[1]));
    let lower = line.iter().rev().map(|point| (point.x, point.band[0]));
    let mut path = String::new();
    for (command, (x, y)) in std::iter::once('M').chain(std::iter::repeat('L')).zip(upper.chain(lower)) {
        let (x, y) = axes.at(x, y);
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels(n: usize) -> Panels {
        let line = |slope: f64| {
            [0.0, 10.0].map(|x| Banded { x, y: slope * x, band: [slope * x / 2.0, slope * x] }).to_vec()
        };
        let panel = |number: usize| Panel {
            name: format!("arm {number}"),
            figure: String::new(),
            line: line(0.1 / (number + 1) as f64),
        };
        Panels {
            title: "Success".into(),
            note: String::new(),
            x_label: "tokens".into(),
            unit: Unit::Share,
            y: Some([0.0, 1.0]),
            baseline: 0,
            panels: (0..n).map(panel).collect(),
        }
    }

    #[test]
    fn every_line_has_a_panel_and_stands_behind_all_others() {
        let svg = panels(5).svg().unwrap();
        // Four in a row: (900 − 50 − 14 − 3 · 16) / 4 = 197 wide, 112 high.
        assert!(svg.contains("<path class=\"line l0\" d=\"M0.0 112.0L197.0 0.0\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"line l0\" d=\"M0.0 112.0L197.0 56.0\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"band f0\" d=\"M0.0 112.0L197.0 0.0L197.0 56.0L0.0 112.0Z\"/>"));
        assert_eq!(svg.matches("<use class=\"other\" href=\"#Success\"/>").count(), 5);
        assert_eq!(svg.matches("class=\"baseline\"").count(), 4, "in all panels but its own");
        assert!(svg.contains("viewBox=\"0 0 900 364\""), "two rows: 40 + 2 · 140 + 44");
    }

    #[test]
    fn nothing_measured_is_not_drawn() {
        let mut empty = panels(2);
        empty.panels.iter_mut().for_each(|panel| panel.line.clear());
        assert_eq!(empty.svg(), None);
    }
}
