//! Charts of stacked columns: histograms and shares.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

use crate::run::axis::{Unit, round_range};
use crate::run::frame::Frame;

/// Greatest number of labels below the columns; with more columns, every n-th is labeled.
const MAX_LABELS: usize = 12;
/// Gap between columns as a share of a column's width.
const GAP: f64 = 0.18;

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Label below it; may be empty.
    pub(crate) label: String,
    /// Heights from the bottom up, one for each part of the chart.
    pub(crate) parts: Vec<f64>,
}

/// A chart of stacked columns.
#[derive(Debug, Clone)]
pub(super) struct BarChart {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) x_label: &'static str,
    pub(crate) unit: Unit,
    /// Names of the parts from the bottom up, each with the number of its color.
    pub(crate) parts: Vec<(&'static str, usize)>,
    pub(crate) columns: Vec<Column>,
}

impl BarChart {
    /// The drawing, or `None` without columns.
    pub(super) fn svg(&self) -> Option<String> {
        let tallest = self.columns.iter().map(|column| column.parts.iter().sum()).reduce(f64::max)?;
        let frame = Frame {
            title: self.title.into(),
            note: self.note.clone(),
            x_label: self.x_label.into(),
            x: [0.0, self.columns.len() as f64],
            knee: None,
            y: if self.unit == Unit::Share { [0.0, 1.0] } else { round_range([0.0, tallest]) },
            unit: self.unit,
        };
        let swatch = |color: &usize| {
            format!("<rect class=\"f{color}\" x=\"5\" y=\"-6\" width=\"12\" height=\"12\" rx=\"2\"/>")
        };
        let legend: Vec<(String, String)> = match self.parts.as_slice() {
            [_] => Vec::new(),
            parts => parts.iter().map(|(name, color)| (name.to_string(), swatch(color))).collect(),
        };
        let stride = self.columns.len().div_ceil(MAX_LABELS);
        let labels: Vec<(f64, String)> = (0..)
            .zip(&self.columns)
            .step_by(stride)
            .map(|(i, column)| (f64::from(i) + 0.5, column.label.clone()))
            .collect();
        let content: String =
            (0..).zip(&self.columns).map(|(i, column)| self.column(&frame, i, column)).collect();
        Some(frame.draw(&legend, &labels, &content))
    }

    fn column(&self, frame: &Frame, index: u32, column: &Column) -> String {
        let left = frame.at_x(f64::from(index) + GAP / 2.0);
        let width = frame.at_x(f64::from(index) + 1.0 - GAP / 2.0) - left;
        let mut svg = String::new();
        let mut below = 0.0;
        for ((name, color), part) in self.parts.iter().zip(&column.parts) {
            let (bottom, top) = (frame.at_y(below), frame.at_y(below + part));
            below += part;
            if bottom - top < 0.05 {
                continue;
            }
            let value = match self.unit {
                Unit::Share => format!("{:.1} %", 100.0 * part),
                Unit::Number => part.to_string(),
            };
            let _ = writeln!(
                svg,
                "<rect class=\"f{color}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{:.1}\"><title>{}: {value}</title></rect>",
                bottom - top,
                escape_html(name)
            );
        }
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_stacked() {
        let chart = BarChart {
            title: "Outcomes",
            note: String::new(),
            x_label: "step",
            unit: Unit::Share,
            parts: vec![("bought", 0), ("not", 1)],
            columns: vec![Column { label: "0".into(), parts: vec![0.25, 0.75] }],
        };
        let svg = chart.svg().unwrap();
        // The plot is 216 high from 284 upwards: a quarter is 54, the rest 162 and ends at the top.
        assert!(svg.contains("y=\"230.0\" width=\"429.7\" height=\"54.0\"><title>bought: 25.0 %"), "{svg}");
        assert!(svg.contains("y=\"68.0\" width=\"429.7\" height=\"162.0\"><title>not: 75.0 %"), "{svg}");
    }

    #[test]
    fn a_chart_without_columns_is_not_drawn() {
        let parts = vec![("x", 0)];
        let chart = BarChart {
            title: "",
            note: String::new(),
            x_label: "",
            unit: Unit::Number,
            parts,
            columns: Vec::new(),
        };
        assert_eq!(chart.svg(), None);
    }
}
