//! Ranges, ticks and labels of an axis.

/// Number format of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The number itself.
    Number,
    /// In percent: 0.5 is `50 %`.
    Share,
}

/// The position of `value` in a range as a share, 0 to 1; values outside are at the edge.
pub(super) fn position(value: f64, [low, high]: [f64; 2]) -> f64 {
    ((value - low) / (high - low)).clamp(0.0, 1.0)
}

/// The least and the greatest value.
pub(super) fn span(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], v| [low.min(v), high.max(v)])
}

/// Like [`span`], with equal bounds moved apart by 1.
pub(crate) fn wide_span(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let [low, high] = span(values);
    if low < high { [low, high] } else { [low - 0.5, high + 0.5] }
}

/// About `n` round values in `range` with their labels: multiples of 1, 2 or 5 times a power of ten.
pub(super) fn ticks(range: [f64; 2], n: usize, unit: Unit) -> Vec<(f64, String)> {
    let step = round_step((range[1] - range[0]) / n as f64);
    let first = (range[0] / step - 1e-9).ceil() as i64;
    let last = (range[1] / step + 1e-9).floor() as i64;
    (first..=last).map(|k| (k as f64 * step, label(k as f64 * step, step, unit))).collect()
}

/// The range extended to round bounds; never empty.
pub(crate) fn round_range([low, high]: [f64; 2]) -> [f64; 2] {
    // Values that are equal up to rounding are in the middle of a range of a tenth of their size on each
    // side.
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

fn label(value: f64, step: f64, unit: Unit) -> String {
    let (value, step, end) = match unit {
        Unit::Share => (value * 100.0, step * 100.0, " %"),
        Unit::Number => (value, step, ""),
    };
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let text = match step {
        _ if value == 0.0 => "0".into(),
        _ if decimals > 5 => format!("{value:.1e}"),
        _ if step >= 1e6 => format!("{}M", value / 1e6),
        _ if step >= 1000.0 => format!("{}k", value / 1000.0),
        _ => format!("{value:.decimals$}"),
    };
    // The minus sign U+2212 instead of the hyphen.
    format!("{}{end}", text.replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(range: [f64; 2], unit: Unit) -> Vec<String> {
        ticks(range, 5, unit).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_in_range() {
        assert_eq!(labels([0.0, 1.0], Unit::Share), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        assert_eq!(labels([-0.3, 0.21], Unit::Number), ["−0.2", "0", "0.2"]);
        assert_eq!(labels([3.0, 9.0], Unit::Number), ["4", "6", "8"]);
        assert_eq!(labels([0.0, 12_000.0], Unit::Number), ["0", "5k", "10k"]);
        assert_eq!(labels([0.0, 6e6], Unit::Number), ["0", "2M", "4M", "6M"]);
    }

    #[test]
    fn ranges_get_round_bounds_and_are_never_empty() {
        assert_eq!(round_range([0.13, 0.87]), [0.0, 1.0]);
        let near = |given: [f64; 2], [low, high]: [f64; 2]| {
            let [a, b] = round_range(given);
            assert!((a - low).abs() < 1e-12 && (b - high).abs() < 1e-12, "{a} {b}");
        };
        near([2.0, 2.0], [1.8, 2.2]);
        near([-0.5, -0.5 + 1e-9], [-0.56, -0.44]);
        near([0.0, 0.0], [-1.0, 1.0]);
    }
}
