//! Line plots in text: each character is a braille pattern of 2 × 4 dots.

/// Bit of each dot, by row from the top and column from the left (Unicode block "Braille Patterns").
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
/// The pattern without dots.
const BLANK: u32 = 0x2800;

/// The polyline through `points` as `height` rows of `width` characters. `x` and `y` are the ranges of the
/// axes, with low < high; a point outside is drawn at the edge.
pub(super) fn plot(
    points: &[(f64, f64)],
    x: [f64; 2],
    y: [f64; 2],
    width: usize,
    height: usize,
) -> Vec<String> {
    let mut cells = vec![vec![BLANK; width]; height];
    let mut dot = |column: i64, row: i64| {
        let (column, row) = (column as usize, row as usize);
        cells[row / 4][column / 2] |= DOTS[row % 4][column % 2];
    };
    let share = |value: f64, [low, high]: [f64; 2]| ((value - low) / (high - low)).clamp(0.0, 1.0);
    let place = |&(at, value): &(f64, f64)| {
        let column = share(at, x) * (2 * width - 1) as f64;
        let row = (1.0 - share(value, y)) * (4 * height - 1) as f64;
        (column.round() as i64, row.round() as i64)
    };
    let places: Vec<(i64, i64)> = points.iter().map(place).collect();
    if let [only] = places.as_slice() {
        dot(only.0, only.1);
    }
    for pair in places.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let n = (x1 - x0).abs().max((y1 - y0).abs()).max(1);
        for step in 0..=n {
            let between = |from: i64, to: i64| from + ((to - from) * step + (to - from).signum() * n / 2) / n;
            dot(between(x0, x1), between(y0, y1));
        }
    }
    let text = |row: Vec<u32>| row.into_iter().filter_map(char::from_u32).collect();
    cells.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagonal_reaches_both_corners() {
        // Four by four dots: the dot of each row is one further to the right.
        assert_eq!(plot(&[(0.0, 0.0), (1.0, 1.0)], [0.0, 1.0], [0.0, 1.0], 2, 1), ["⡠⠊"]);
        assert_eq!(plot(&[(0.0, 1.0), (1.0, 0.0)], [0.0, 1.0], [0.0, 1.0], 2, 1), ["⠑⢄"]);
    }

    #[test]
    fn one_point_is_one_dot_and_no_points_are_blank() {
        assert_eq!(plot(&[(0.0, 0.0)], [0.0, 1.0], [0.0, 1.0], 1, 2), ["⠀", "⡀"]);
        assert_eq!(plot(&[], [0.0, 1.0], [0.0, 1.0], 2, 1), ["⠀⠀"]);
    }
}
