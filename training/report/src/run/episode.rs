//! A drawing of one episode as text: instruction, pages, thoughts and actions, line by line.

use std::fmt::Write;

use webshop_evaluation::table::escape_html;

/// Width of the drawing, in pixels.
const WIDTH: usize = 760;
/// Height of a line of text, in pixels.
const LINE: usize = 19;
/// Margin around the text, in pixels.
const MARGIN: usize = 18;
/// Characters on a line in the monospaced font.
const COLUMNS: usize = 92;

/// The drawing of an episode under a title. `episode` is the text that
/// `EpisodeExt::to_text` formats.
pub(super) fn svg(title: &str, episode: &str) -> String {
    let mut rows = vec![(title.to_string(), "title")];
    for line in episode.lines() {
        let class = match line.trim_start().chars().next() {
            Some('>') => "action",
            Some('(') => "thought",
            _ => "page",
        };
        rows.extend(wrap(line).into_iter().map(|row| (row, class)));
    }
    let height = rows.len() * LINE + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">\n\
         <title>{}</title>\n",
        escape_html(title)
    );
    for (row, (text, class)) in rows.iter().enumerate() {
        let y = MARGIN + (row + 1) * LINE - 5;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" class=\"{class}\" xml:space=\"preserve\">{}</text>",
            escape_html(text)
        );
    }
    svg + "</svg>\n"
}

/// Breaks a long line between words; the continuation is indented.
fn wrap(line: &str) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    for word in line.split_inclusive(' ') {
        if row.chars().count() + word.trim_end().chars().count() > COLUMNS && !row.trim().is_empty() {
            rows.push(std::mem::replace(&mut row, "    ".into()));
        }
        row.push_str(word);
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let line = "word ".repeat(30);
        let rows = wrap(line.trim_end());
        assert_eq!(rows.len(), 2);
        assert!(rows.iter().all(|row| row.trim_end().chars().count() <= COLUMNS));
        let words: Vec<&str> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
        assert_eq!(words.len(), 30);
    }

    #[test]
    fn every_kind_of_line_has_its_own_class() {
        let drawing = svg("an episode", "“a <lamp>”\n  (the first)\n> click[x]\n1.0000 = …");
        for (class, text) in
            [("page", "“a &lt;lamp&gt;”"), ("thought", "  (the first)"), ("action", "&gt; click[x]")]
        {
            assert!(
                drawing.contains(&format!("class=\"{class}\" xml:space=\"preserve\">{text}<")),
                "{drawing}"
            );
        }
    }
}
