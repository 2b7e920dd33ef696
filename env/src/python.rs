//! The few habits of Python that show on the original's pages.
//!
//! White space as `str.strip` means it, and a [`Selection`] written as `json.dumps` and as `repr`
//! write a dictionary. Nothing else of Python is imitated here.

use std::fmt::Write;
use webshop_products::Selection;

/// Whether Python counts `c` as white space: Unicode's, and four separators below it.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `text.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `json.dumps(text)`: quoted, ASCII only, as UTF-16 escapes where needed.
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    push_hex(&mut out, "\\u", u32::from(*unit), 4);
                }
            }
        }
    }
    out.push('"');
    out
}

/// `json.dumps(dict)`.
pub fn json_dict<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let parts: Vec<String> =
        entries.map(|(name, value)| format!("{}: {}", json_string(name), json_string(value))).collect();
    format!("{{{}}}", parts.join(", "))
}

/// `repr(dict)` of a selection.
pub fn repr_dict(selection: &Selection) -> String {
    let parts: Vec<String> = selection
        .iter()
        .map(|(name, value)| format!("{}: {}", repr_string(name), repr_string(value)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// `repr(text)`: single quotes unless only these occur inside.
pub fn repr_string(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xff => push_hex(&mut out, "\\x", u32::from(c), 2),
            c if u32::from(c) <= 0xffff => push_hex(&mut out, "\\u", u32::from(c), 4),
            c => push_hex(&mut out, "\\U", u32::from(c), 8),
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable` of one character: no control, format, separator or unassigned one. The original's Python
/// knows Unicode 12.1, so that later emoji are unassigned.
fn is_printable(c: char) -> bool {
    static HIDDEN: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
        regex::Regex::new(r"[\p{C}\p{Z}]|\P{age=12.1}").expect("the pattern is a constant and valid")
    });
    match c {
        ' '..='~' => true,
        _ => !HIDDEN.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

fn push_hex(out: &mut String, prefix: &str, number: u32, digits: usize) {
    write!(out, "{prefix}{number:0digits$x}").expect("a String takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_ascii() {
        assert_eq!(json_string("crème \"x\"\t🙂"), r#""cr\u00e8me \"x\"\t\ud83d\ude42""#);
    }

    #[test]
    fn repr_chooses_its_quotes() {
        assert_eq!(repr_string("a"), "'a'");
        assert_eq!(repr_string("men's"), "\"men's\"");
        assert_eq!(repr_string("6' 2\""), "'6\\' 2\"'");
        assert_eq!(repr_string("\u{200b}\u{a0}é"), "'\\u200b\\xa0é'");
        // An emoji of Unicode 12 and one of 14.
        assert_eq!(repr_string("🥱🫠"), "'🥱\\U0001fae0'");
    }

    #[test]
    fn strip_takes_pythons_spaces() {
        assert_eq!(strip("\x1c\u{3000} a b\u{a0}"), "a b");
    }
}
