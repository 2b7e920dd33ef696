//! The frame every chart is drawn in: title, legend, grid, ticks, and where a value lies on the paper.
//!
//! A [`Frame`] maps values to a drawing of fixed size; lines and bars are drawn into it by their own files. Colours are
//! classes (`f0` to `f5` fill, `l0` to `l2` stroke) that `style.css` gives a light and a dark meaning.

use webshop_evaluation::table::escape;
use std::fmt::Write;

/// Size of a drawing in its own units; it is scaled to the page.
pub(super) const WIDTH: f64 = 600.0;
pub(super) const HEIGHT: f64 = 320.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = HEIGHT - 42.0;
/// Average width of a character of a legend entry, for laying entries side by side.
pub(super) const CHARACTER: f64 = 6.6;

/// Distance from the knee below which a tick of the right half would be written over one of the left half.
const MIN_TICK_GAP: f64 = 40.0;

/// How numbers of an axis are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// As they are.
    Plain,
    /// As percentages: 0.5 is written 50 %.
    Share,
}

/// The beginning of a drawing of this width and height: its title, and a note beside it, smaller.
pub(super) fn opening([width, height]: [f64; 2], title: &str, note: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{0}\">\n<text class=\"title\" x=\"14\" y=\"24\">{0}<tspan dx=\"8\" font-size=\"12\" \
         font-weight=\"400\" fill=\"var(--soft)\">{1}</tspan></text>\n",
        escape(title),
        escape(note)
    )
}

/// The empty drawing and its coordinates.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// What is shown.
    pub title: String,
    /// In which unit, or with which reservation; smaller, beside the title.
    pub note: String,
    /// What the horizontal axis counts.
    pub x_label: String,
    /// Values at the left and right edge.
    pub x: [f64; 2],
    /// A value between them that stands in the middle, the scale being another on either side of it.
    pub knee: Option<f64>,
    /// Values at the bottom and the top.
    pub y: [f64; 2],
    /// How vertical values are written.
    pub unit: Unit,
}

impl Frame {
    /// Where a horizontal value lies.
    pub(super) fn at_x(&self, value: f64) -> f64 {
        let [low, high] = self.x;
        let share = match self.knee {
            None => position(value, self.x),
            Some(knee) if value <= knee => 0.5 * position(value, [low, knee]),
            Some(knee) => 0.5 + 0.5 * position(value, [knee, high]),
        };
        LEFT + (RIGHT - LEFT) * share
    }

    /// Round values on the horizontal axis, with how they are written.
    pub(super) fn x_ticks(&self) -> Vec<(f64, String)> {
        let [low, high] = self.x;
        match self.knee {
            None => ticks(self.x, 6, Unit::Plain),
            Some(knee) => {
                let mut both = ticks([low, knee], 3, Unit::Plain);
                let right = ticks([knee, high], 3, Unit::Plain).into_iter();
                both.extend(right.filter(|(value, _)| self.at_x(*value) - self.at_x(knee) > MIN_TICK_GAP));
                both
            }
        }
    }

    /// Where a vertical value lies.
    pub(super) fn at_y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * position(value, self.y)
    }

    /// The drawing with `content` in it. `legend` holds the label of each entry and the swatch that stands before it,
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
                escape(label)
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
                escape(label)
            );
        }
        let _ = write!(
            svg,
            "<text class=\"end\" x=\"{RIGHT}\" y=\"{}\">{}</text>\n{content}<path class=\"axis\" d=\"M{LEFT} \
             {BOTTOM}H{RIGHT}\"/>\n</svg>\n",
            BOTTOM + 34.0,
            escape(&self.x_label)
        );
        svg
    }

    /// A dashed vertical line over the whole height with a label at its head.
    pub(super) fn mark(&self, value: f64, label: &str) -> String {
        let x = self.at_x(value);
        // A label in the right third is written to the left of its line, so that it stays on the paper.
        let (class, dx) = if x > LEFT + (RIGHT - LEFT) * 0.66 { ("end", -5.0) } else { ("", 5.0) };
        format!(
            "<path class=\"mark\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text class=\"{class}\" x=\"{:.1}\" y=\"{}\" \
             font-size=\"11\">{}</text>\n",
            x + dx,
            TOP - 4.0,
            escape(label)
        )
    }
}

fn position(value: f64, [low, high]: [f64; 2]) -> f64 {
    ((value - low) / (high - low)).clamp(0.0, 1.0)
}

/// Round values within `range`, about `n` of them, with how they are written: multiples of 1, 2 or 5 times a power of
/// ten.
pub(super) fn ticks(range: [f64; 2], n: usize, unit: Unit) -> Vec<(f64, String)> {
    let step = round_step((range[1] - range[0]) / n as f64);
    let first = (range[0] / step - 1e-9).ceil() as i64;
    let last = (range[1] / step + 1e-9).floor() as i64;
    (first..=last).map(|k| (k as f64 * step, written(k as f64 * step, step, unit))).collect()
}

/// The range widened to round bounds, and to a width that can be drawn.
pub(crate) fn round_range([low, high]: [f64; 2]) -> [f64; 2] {
    // Equal values, or ones that differ only by rounding, are drawn in the middle of a neighbourhood of their size.
    let size = low.abs().max(high.abs());
    let half = if size == 0.0 { 1.0 } else { size / 10.0 };
    let (low, high) = if high - low <= size * 1e-6 { (low - half, high + half) } else { (low, high) };
    let step = round_step((high - low) / 5.0);
    [(low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step]
}

fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power)
}

fn written(value: f64, step: f64, unit: Unit) -> String {
    let (value, step, end) = match unit {
        Unit::Share => (value * 100.0, step * 100.0, " %"),
        Unit::Plain => (value, step, ""),
    };
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let text = match step {
        _ if value == 0.0 => "0".into(),
        _ if decimals > 5 => format!("{value:.1e}"),
        _ if step >= 1000.0 => format!("{}k", value / 1000.0),
        _ => format!("{value:.decimals$}"),
    };
    // A minus sign, not a hyphen.
    format!("{}{end}", text.replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: [f64; 2], unit: Unit) -> Vec<String> {
        ticks(range, 5, unit).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(labels([0.0, 1.0], Unit::Share), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        assert_eq!(labels([-0.3, 0.21], Unit::Plain), ["−0.2", "0", "0.2"]);
        assert_eq!(labels([3.0, 9.0], Unit::Plain), ["4", "6", "8"]);
        assert_eq!(labels([0.0, 12_000.0], Unit::Plain), ["0", "5k", "10k"]);
    }

    #[test]
    fn ranges_become_round_and_never_empty() {
        assert_eq!(round_range([0.13, 0.87]), [0.0, 1.0]);
        let near = |given: [f64; 2], [low, high]: [f64; 2]| {
            let [a, b] = round_range(given);
            assert!((a - low).abs() < 1e-12 && (b - high).abs() < 1e-12, "{a} {b}");
        };
        near([2.0, 2.0], [1.8, 2.2]);
        near([-0.5, -0.5 + 1e-9], [-0.56, -0.44]);
        near([0.0, 0.0], [-1.0, 1.0]);
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
    }
}
