//! Small multiples: one panel for each line, with all other lines in gray behind it.
//!
//! A dozen lines with bands in one chart would hide each other. The panels share their axes, and the baseline
//! is dashed in all of them.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

use crate::run::axis::{Unit, position, round_range, span, ticks, wide_span};
use crate::run::svg::{area, opening, polyline};

/// Panels in a row.
const COLUMNS: usize = 4;
/// Width of the drawing, in its own units.
const WIDTH: f64 = 900.0;
/// Space on the left for the vertical axis, and on the right.
const LEFT: f64 = 50.0;
const RIGHT: f64 = 14.0;
/// Space above the first row for title and note.
const TOP: f64 = 40.0;
/// Space below the last row for the horizontal axis.
const BOTTOM: f64 = 44.0;
/// Space between panels; the vertical one holds the panel's name.
const GAP_X: f64 = 16.0;
const GAP_Y: f64 = 28.0;
/// Height of the plot of a panel.
const HEIGHT: f64 = 112.0;

/// A point of a line with the range of the single runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Banded {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) band: [f64; 2],
}

/// One panel.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// Name of the line.
    pub(crate) name: String,
    /// Value beside the name, formatted; smaller.
    pub(crate) figure: String,
    pub(crate) line: Vec<Banded>,
}

/// All panels of a drawing.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) x_label: String,
    pub(crate) unit: Unit,
    /// Index of the panel whose line is dashed in all others.
    pub(crate) baseline: usize,
    pub(crate) panels: Vec<Panel>,
}

/// Ranges and width of a panel.
struct Axes {
    x: [f64; 2],
    y: [f64; 2],
    width: f64,
}

impl Axes {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.width * position(x, self.x), HEIGHT * (1.0 - position(y, self.y)))
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
        // All lines are defined once and used in every panel. The id must be unique on a page of several
        // drawings.
        let name: String = self.title.chars().filter(char::is_ascii_alphanumeric).collect();
        let _ = writeln!(svg, "<defs><g id=\"{name}\">\n{}</g></defs>", self.background(&axes));
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
            escape_html(&self.x_label)
        );
        Some(svg)
    }

    fn axes(&self) -> Option<Axes> {
        let points = || self.panels.iter().flat_map(|panel| &panel.line);
        points().next()?;
        let x = wide_span(points().map(|point| point.x));
        let y = round_range(span(points().flat_map(|point| [point.y, point.band[0], point.band[1]])));
        let n_columns = COLUMNS.min(self.panels.len()) as f64;
        Some(Axes { x, y, width: (WIDTH - LEFT - RIGHT - (n_columns - 1.0) * GAP_X) / n_columns })
    }

    /// Grid and ticks; labels only at the left and at the bottom of the whole drawing.
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
            for (value, label) in ticks(axes.x, 4, Unit::Number) {
                let (x, _) = axes.at(value, axes.y[0]);
                // A label in the middle of the right end would run into the next panel.
                let anchor = if x > axes.width - GAP_X { "end" } else { "middle" };
                let _ = writeln!(
                    svg,
                    "<text class=\"{anchor}\" x=\"{x:.1}\" y=\"{}\">{label}</text>",
                    HEIGHT + 16.0
                );
            }
        }
        svg
    }

    /// All lines, for the gray background.
    fn background(&self, axes: &Axes) -> String {
        let drawn = self.panels.iter().filter(|panel| !panel.line.is_empty());
        drawn.map(|panel| format!("<path d=\"{}\"/>\n", path(axes, &panel.line))).collect()
    }

    fn panel(&self, axes: &Axes, number: usize, panel: &Panel) -> String {
        let mut svg = format!(
            "<text class=\"name\" x=\"0\" y=\"-7\">{}<tspan dx=\"7\" font-weight=\"400\" \
             fill=\"var(--soft)\">{}</tspan></text>\n",
            escape_html(&panel.name),
            escape_html(&panel.figure)
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
    polyline(line.iter().map(|point| axes.at(point.x, point.y)))
}

fn band(axes: &Axes, line: &[Banded]) -> String {
    let upper = line.iter().map(|point| axes.at(point.x, point.band[1]));
    let lower = line.iter().map(|point| axes.at(point.x, point.band[0]));
    area(upper, lower)
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
            baseline: 0,
            panels: (0..n).map(panel).collect(),
        }
    }

    #[test]
    fn every_line_has_a_panel_and_is_in_the_background_of_all_panels() {
        let svg = panels(5).svg().unwrap();
        // Four in a row: (900 − 50 − 14 − 3 · 16) / 4 = 197 wide, 112 high.
        assert!(svg.contains("<path class=\"line l0\" d=\"M0.0 112.0L197.0 0.0\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"line l0\" d=\"M0.0 112.0L197.0 56.0\"/>"), "{svg}");
        assert!(svg.contains("<path class=\"band f0\" d=\"M0.0 112.0L197.0 0.0L197.0 56.0L0.0 112.0Z\"/>"));
        assert_eq!(svg.matches("<use class=\"other\" href=\"#Success\"/>").count(), 5);
        assert_eq!(svg.matches("class=\"baseline\"").count(), 4, "in all panels but its own");
        assert!(svg.contains("viewBox=\"0 0 900 364\""), "two rows: 40 + 2 · 140 + 44");
        assert!(svg.contains("<text class=\"middle\" x=\"98.5\" y=\"128\">5</text>"), "{svg}");
        assert!(svg.contains("<text class=\"end\" x=\"197.0\" y=\"128\">10</text>"), "not in the next panel");
    }

    #[test]
    fn panels_without_points_are_not_drawn() {
        let mut empty = panels(2);
        empty.panels.iter_mut().for_each(|panel| panel.line.clear());
        assert_eq!(empty.svg(), None);
    }
}
