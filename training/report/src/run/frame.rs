//! The frame of a chart of one run: title, legend, grid, ticks, and the coordinates of values.
//!
//! A [`Frame`] maps values to a drawing of fixed size; `line` and `bars` draw into it. Colors are classes
//! (`f0` to `f5` for fills, `l0` to `l2` for strokes) that `style.css` defines for light and dark mode.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

use crate::run::axis::{Unit, position, ticks};
use crate::run::svg::{CHARACTER, opening};

/// Size of a drawing in its own units; the page scales it.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 326.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 68.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Least distance of a tick label of the right half from the knee; nearer ones would overlap a label of the
/// left half.
const MIN_TICK_GAP: f64 = 40.0;

/// Titles, axes and coordinates of a chart.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Title of the chart.
    pub(crate) title: String,
    /// Unit or condition of the values; smaller, beside the title.
    pub(crate) note: String,
    /// Label of the horizontal axis.
    pub(crate) x_label: String,
    /// Range of the horizontal axis.
    pub(crate) x: [f64; 2],
    /// A value of `x` that is drawn in the middle; the scale differs between the two halves.
    pub(crate) knee: Option<f64>,
    /// Range of the vertical axis.
    pub(crate) y: [f64; 2],
    /// Number format of the vertical axis.
    pub(crate) unit: Unit,
}

impl Frame {
    /// Coordinate of a horizontal value.
    pub(super) fn at_x(&self, value: f64) -> f64 {
        let [low, high] = self.x;
        let share = match self.knee {
            None => position(value, self.x),
            Some(knee) if value <= knee => 0.5 * position(value, [low, knee]),
            Some(knee) => 0.5 + 0.5 * position(value, [knee, high]),
        };
        LEFT + (RIGHT - LEFT) * share
    }

    /// Ticks of the horizontal axis with their labels.
    pub(super) fn x_ticks(&self) -> Vec<(f64, String)> {
        let [low, high] = self.x;
        match self.knee {
            None => ticks(self.x, 6, Unit::Number),
            Some(knee) => {
                let mut both = ticks([low, knee], 3, Unit::Number);
                let right = ticks([knee, high], 3, Unit::Number).into_iter();
                both.extend(right.filter(|(value, _)| self.at_x(*value) - self.at_x(knee) > MIN_TICK_GAP));
                both
            }
        }
    }

    /// Coordinate of a vertical value.
    pub(super) fn at_y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * position(value, self.y)
    }

    /// The drawing with `content` in it. `legend` holds the label of each entry and the SVG of its swatch,
    /// drawn around the origin.
    pub(super) fn draw(
        &self,
        legend: &[(String, String)],
        x_ticks: &[(f64, String)],
        content: &str,
    ) -> String {
        let mut svg = opening([WIDTH, HEIGHT], &self.title, &self.note);
        let mut x = 16.0;
        for (label, swatch) in legend {
            let _ = writeln!(
                svg,
                "<g transform=\"translate({x:.1} 43)\">{swatch}<text x=\"24\" y=\"4\">{}</text></g>",
                escape_html(label)
            );
            x += 24.0 + CHARACTER * label.chars().count() as f64 + 18.0;
        }
        for (value, label) in ticks(self.y, 5, self.unit) {
            let y = self.at_y(value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"end\" x=\"{}\" y=\"{:.1}\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        for (value, label) in x_ticks {
            let x = self.at_x(*value);
            let _ = writeln!(
                svg,
                "<text class=\"middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                BOTTOM + 17.0,
                escape_html(label)
            );
        }
        let _ = write!(
            svg,
            "<text class=\"end\" x=\"{RIGHT}\" y=\"{}\">{}</text>\n{content}<path class=\"axis\" d=\"M{LEFT} \
             {BOTTOM}H{RIGHT}\"/>\n</svg>\n",
            BOTTOM + 34.0,
            escape_html(&self.x_label)
        );
        svg
    }

    /// A dashed vertical line over the whole height with a label above it.
    pub(super) fn mark(&self, value: f64, label: &str) -> String {
        let x = self.at_x(value);
        // A label in the right third is on the left of its line, so that it stays inside the drawing.
        let (class, dx) = if x > LEFT + (RIGHT - LEFT) * 0.66 { ("end", -5.0) } else { ("", 5.0) };
        format!(
            "<path class=\"mark\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text class=\"{class}\" x=\"{:.1}\" y=\"{}\" \
             font-size=\"11\">{}</text>\n",
            x + dx,
            TOP - 4.0,
            escape_html(label)
        )
    }
}
