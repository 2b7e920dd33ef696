//! What all HTML pages and drawings share: escaping and style.

use std::fmt::{self, Write};

use askama::filters::Escaper;
use webshop_evaluation::table::escape_html;

/// Colors and strokes of the drawings in light and dark mode, for a page that contains them.
pub const DRAWING_STYLE: &str = include_str!("../templates/style.css");

/// Escapes the text of templates as [`escape_html`].
#[derive(Clone, Copy)]
pub(crate) struct Escaped;

impl Escaper for Escaped {
    fn write_escaped_str<W: Write>(&self, mut dest: W, string: &str) -> fmt::Result {
        dest.write_str(&escape_html(string))
    }
}

/// A drawing with its style and background, for a file of its own.
pub(crate) fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('\n').expect("the opening tag of a drawing has a line of its own");
    format!(
        "{open}\n<style>\n{DRAWING_STYLE}</style>\n<rect class=\"card\" width=\"100%\" height=\"100%\" rx=\"10\"/>\n{rest}"
    )
}
