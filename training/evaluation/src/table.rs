//! Tables of text cells, formatted for a terminal, as Markdown and as HTML.
//!
//! [`percent`] and [`interval`] format shares for the cells. Nothing is computed here.

use std::fmt::Write;

/// A header row and data rows; every row has the header's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Column titles.
    pub head: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Aligned columns for a terminal: the first column to the left, all others to the right.
    pub fn text(&self) -> String {
        let lines = || [&self.head].into_iter().chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for row in lines() {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") }
            });
            let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
        }
        text
    }

    /// A Markdown table.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|{}\n", "---|".repeat(self.head.len()));
        line(&self.head) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// An HTML table in a `div` that scrolls sideways. Cells are escaped.
    pub fn html(&self) -> String {
        let mut html = "<div class=\"wide\"><table>\n<tr>".to_string();
        for cell in &self.head {
            let _ = write!(html, "<th>{}</th>", escape_html(cell));
        }
        html.push_str("</tr>\n");
        for row in &self.rows {
            let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape_html(cell))).collect();
            let _ = writeln!(html, "<tr>{cells}</tr>");
        }
        html + "</table></div>\n"
    }
}

/// A share from 0 to 1 in percent with one decimal and without a sign: 0.125 is `12.5`.
pub fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// An interval of shares in percent: `[0.0, 100.0]`.
pub fn interval([low, high]: [f64; 2]) -> String {
    format!("[{}, {}]", percent(low), percent(high))
}

/// `text` escaped for HTML text nodes and attribute values.
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_formatted_as_text_markdown_and_html() {
        let table = Table {
            head: vec!["arm".into(), "a<b".into()],
            rows: vec![vec!["x".into(), "1".into()], vec!["é, long".into(), "1 − 2".into()]],
        };
        assert_eq!(table.text(), "arm        a<b\nx            1\né, long  1 − 2\n");
        assert_eq!(table.markdown(), "| arm | a<b |\n|---|---|\n| x | 1 |\n| é, long | 1 − 2 |\n");
        assert!(table.html().contains("<th>a&lt;b</th></tr>\n<tr><td>x</td><td>1</td></tr>"));
        assert_eq!(percent(0.125) + " " + &interval([0.0, 1.0]), "12.5 [0.0, 100.0]");
    }
}
