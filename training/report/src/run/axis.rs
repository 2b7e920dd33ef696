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

/// The bins of a histogram: intervals of equal width with round bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bins {
    width: f64,
    /// Lower bound of the first bin, in widths.
    first: i64,
    /// Number of bins, at least 1.
    pub(super) n: usize,
}

impl Bins {
    /// Fewer than `n` + 3 bins that cover a range which is not empty.
    pub(super) fn over([low, high]: [f64; 2], n: usize) -> Self {
        let width = round_step((high - low) / n as f64);
        let first = (low / width + 1e-9).floor() as i64;
        let end = (high / width - 1e-9).ceil() as i64;
        Self { width, first, n: (end - first).max(1) as usize }
    }

    /// The bin of a value; a value outside is in the nearest bin, an upper bound in the bin above it.
    pub(super) fn of(self, value: f64) -> usize {
        let bin = (value / self.width + 1e-9).floor() as i64 - self.first;
        bin.clamp(0, self.n as i64 - 1) as usize
    }

    /// The lower bound of a bin.
    pub(super) fn label(self, bin: usize) -> String {
        label((self.first + bin as i64) as f64 * self.width, self.width, Unit::Number)
    }
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
    fn bins_cover_the_range_and_have_round_bounds() {
        let bins = Bins::over([0.0, 1.0], 20);
        assert_eq!((bins.n, bins.of(0.0), bins.of(0.15), bins.of(0.149), bins.of(1.0)), (20, 0, 3, 2, 19));
        assert_eq!((bins.label(0), bins.label(2)), ("0".into(), "0.10".into()));
        // Rewards of up to 1,001 and penalties: the width is 100, from −100 on.
        let bins = Bins::over([-30.0, 1001.0], 20);
        assert_eq!((bins.n, bins.of(-30.0), bins.of(0.0), bins.of(1001.0)), (12, 0, 1, 11));
        assert_eq!((bins.label(0), bins.label(10)), ("−100".into(), "900".into()));
        let bins = Bins::over([0.1, 0.1001], 20);
        assert_eq!((bins.n, bins.of(0.1), bins.of(0.1001)), (20, 0, 19));
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
