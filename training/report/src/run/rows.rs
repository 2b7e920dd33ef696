//! Charts with one row for each arm: means with intervals, or shares.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

use crate::run::axis::{Unit, position, ticks};
use crate::run::svg::{CHARACTER, opening};

/// Width of the drawing, in its own units.
const WIDTH: f64 = 760.0;
/// Left end of the axis; names are on its left.
const LEFT: f64 = 180.0;
/// Right end of the axis; values are on its right.
const RIGHT: f64 = 590.0;
/// Height of a row.
const ROW: f64 = 24.0;
/// Space above the rows for title and legend, and below them for the axis.
const TOP: f64 = 58.0;
const BOTTOM: f64 = 34.0;

/// The mark of a row.
#[derive(Debug, Clone)]
pub(crate) enum Mark {
    /// A mean with its interval and the values of single runs.
    Interval { mean: f64, interval: [f64; 2], singles: Vec<f64> },
    /// Shares from left to right, in the order of [`Rows::parts`].
    Parts(Vec<f64>),
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Name on the left.
    pub(crate) name: String,
    /// Value on the right, formatted.
    pub(crate) figure: String,
    pub(crate) mark: Mark,
}

/// Rows over a common axis in percent.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) title: String,
    pub(crate) note: String,
    /// Range of the axis.
    pub(crate) x: [f64; 2],
    /// A reference value, drawn as a dashed line.
    pub(crate) mark: Option<f64>,
    /// Names of the parts, each with the number of its color; empty for intervals.
    pub(crate) parts: Vec<(&'static str, usize)>,
    pub(crate) rows: Vec<Row>,
}

impl Rows {
    /// The drawing, or `None` without rows.
    pub(crate) fn svg(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let below = TOP + self.rows.len() as f64 * ROW;
        let height = below + BOTTOM;
        let mut svg = opening([WIDTH, height], &self.title, &self.note);
        let mut x = 16.0;
        for (name, color) in &self.parts {
            let _ = writeln!(
                svg,
                "<rect class=\"f{color}\" x=\"{x:.1}\" y=\"36\" width=\"12\" height=\"12\" rx=\"2\"/><text x=\"{:.1}\" \
                 y=\"46\">{name}</text>",
                x + 18.0
            );
            x += 18.0 + CHARACTER * name.chars().count() as f64 + 18.0;
        }
        for (value, label) in ticks(self.x, 5, Unit::Share) {
            let x = self.at(value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{below}\"/><text class=\"middle\" x=\"{x:.1}\" \
                 y=\"{}\">{label}</text>",
                below + 18.0
            );
        }
        if let Some(value) = self.mark {
            let _ = writeln!(svg, "<path class=\"mark\" d=\"M{:.1} {TOP}V{below}\"/>", self.at(value));
        }
        for (number, row) in self.rows.iter().enumerate() {
            svg.push_str(&self.row(TOP + (number as f64 + 0.5) * ROW, row));
        }
        Some(svg + "</svg>\n")
    }

    fn at(&self, value: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * position(value, self.x)
    }

    fn row(&self, y: f64, row: &Row) -> String {
        let mut svg = format!(
            "<text class=\"end name\" x=\"{}\" y=\"{below}\">{}</text><text x=\"{}\" y=\"{below}\">{}</text>\n",
            LEFT - 12.0,
            escape_html(&row.name),
            RIGHT + 14.0,
            escape_html(&row.figure),
            below = y + 4.0
        );
        match &row.mark {
            Mark::Interval { mean, interval: [low, high], singles } => {
                let _ = writeln!(
                    svg,
                    "<path class=\"line l0\" d=\"M{:.1} {y}H{:.1}\"/>",
                    self.at(*low),
                    self.at(*high)
                );
                for single in singles {
                    let _ = writeln!(
                        svg,
                        "<circle class=\"single\" cx=\"{:.1}\" cy=\"{y}\" r=\"3\"/>",
                        self.at(*single)
                    );
                }
                let _ =
                    writeln!(svg, "<circle class=\"f0\" cx=\"{:.1}\" cy=\"{y}\" r=\"4.5\"/>", self.at(*mean));
            }
            Mark::Parts(parts) => {
                let mut before = 0.0;
                for ((name, color), part) in self.parts.iter().zip(parts) {
                    let (from, to) = (self.at(before), self.at(before + part));
                    before += part;
                    if to - from >= 0.05 {
                        let _ = writeln!(
                            svg,
                            "<rect class=\"f{color}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                             height=\"{}\"><title>{name}: {:.1} %</title></rect>",
                            y - ROW / 2.0 + 3.0,
                            to - from,
                            ROW - 6.0,
                            100.0 * part
                        );
                    }
                }
            }
        }
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(parts: Vec<(&'static str, usize)>, mark: Mark) -> String {
        let row = Row { name: "grpo".into(), figure: "50.0 %".into(), mark };
        let rows = Rows {
            title: "t".into(),
            note: String::new(),
            x: [0.0, 1.0],
            mark: Some(0.5),
            parts,
            rows: vec![row],
        };
        rows.svg().unwrap()
    }

    #[test]
    fn an_interval_is_at_the_coordinates_of_its_values() {
        let interval = Mark::Interval { mean: 0.5, interval: [0.4, 0.7], singles: vec![0.6] };
        let svg = rows(Vec::new(), interval);
        // The axis is 410 wide from 180; the first row's middle is 58 + 12.
        assert!(
            svg.contains("d=\"M344.0 70H467.0\"") && svg.contains("cx=\"385.0\" cy=\"70\" r=\"4.5\""),
            "{svg}"
        );
        assert!(svg.contains("<text x=\"604\" y=\"74\">50.0 %</text>"), "{svg}");
        assert!(svg.contains("class=\"single\" cx=\"426.0\"") && svg.contains("d=\"M385.0 58V82\""), "{svg}");
    }

    #[test]
    fn parts_are_side_by_side() {
        let svg = rows(vec![("won", 0), ("lost", 1)], Mark::Parts(vec![0.25, 0.75]));
        assert!(
            svg.contains("x=\"180.0\" y=\"61.0\" width=\"102.5\" height=\"18\"><title>won: 25.0 %"),
            "{svg}"
        );
        assert!(svg.contains("x=\"282.5\" y=\"61.0\" width=\"307.5\""), "{svg}");
    }
}
