//! Pieces of SVG that all charts share.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

/// Average width of a character of a legend entry, for placing entries side by side.
pub(super) const CHARACTER: f64 = 6.6;

/// The opening tag of a drawing of this width and height, its title, and a smaller note beside the title.
pub(super) fn opening([width, height]: [f64; 2], title: &str, note: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{0}\">\n<text class=\"title\" x=\"14\" y=\"24\">{0}<tspan dx=\"8\" font-size=\"12\" \
         font-weight=\"400\" fill=\"var(--soft)\">{1}</tspan></text>\n",
        escape_html(title),
        escape_html(note)
    )
}

/// Path data of the polyline through these points.
pub(super) fn polyline(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (command, (x, y)) in std::iter::once('M').chain(std::iter::repeat('L')).zip(points) {
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

/// Path data of the area between two lines, each given as points from left to right.
pub(super) fn area(
    upper: impl Iterator<Item = (f64, f64)>,
    lower: impl DoubleEndedIterator<Item = (f64, f64)>,
) -> String {
    polyline(upper.chain(lower.rev())) + "Z"
}
