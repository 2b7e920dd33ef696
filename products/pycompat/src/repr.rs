//! Values printed as Python prints them: `repr` and `json.dumps`.

use std::fmt::{Arguments, Write};
use std::sync::LazyLock;

use regex::Regex;

/// The Unicode version of a Python, which decides what `repr` prints as it is.
///
/// `str.isprintable` is false for unassigned code points, so an older Python escapes newer emoji.
/// Two programs are reproduced here, and they run on different Pythons: the original WebShop needs
/// Python 3.8, chat templates are rendered by the Python that `transformers` runs on today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnicodeAge {
    /// Unicode 12.1, of Python 3.8: the original WebShop.
    V12_1,
    /// The version of the `regex` crate (16): a current Python.
    Latest,
}

impl UnicodeAge {
    /// `c.isprintable()`: `c` is a space, or neither a control, a format, a separator nor an
    /// unassigned character.
    fn is_printable(self, c: char) -> bool {
        const VALID: &str = "the pattern is a constant and valid";
        static V12_1: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]|\P{age=12.1}").expect(VALID));
        static LATEST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").expect(VALID));
        let escaped = match self {
            Self::V12_1 => &V12_1,
            Self::Latest => &LATEST,
        };
        matches!(c, ' '..='~') || !escaped.is_match(c.encode_utf8(&mut [0; 4]))
    }
}

/// `repr(value)` of a float: the fewest digits that read back the same, with a power of ten from
/// 1e16 on and below 1e-4.
///
/// ```
/// use webshop_pycompat::float_repr;
/// assert_eq!([34.0, -5e-5, f64::INFINITY].map(float_repr), ["34.0", "-5e-05", "inf"]);
/// ```
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let size = value.abs();
    if size == 0.0 || value.is_infinite() || (1e-4..1e16).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, power) = text.split_once('e').expect("the format writes a power");
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{digits}e{sign}{power:0>2}")
}

/// `json.dumps(value)` of a float: [`float_repr`] but for `NaN`, `Infinity` and `-Infinity`.
pub fn json_float(value: f64) -> String {
    match value {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => float_repr(value),
    }
}

/// `repr(text)`.
pub fn repr_string(text: &str, age: UnicodeAge) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_repr(&mut out, text, age);
    out
}

/// Appends `repr(text)`: in single quotes, or in double quotes if only single ones occur inside.
pub fn push_repr(out: &mut String, text: &str, age: UnicodeAge) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if age.is_printable(c) => out.push(c),
            _ if code <= 0xff => push(out, format_args!("\\x{code:02x}")),
            _ if code <= 0xffff => push(out, format_args!("\\u{code:04x}")),
            _ => push(out, format_args!("\\U{code:08x}")),
        }
    }
    out.push(quote);
}

/// `repr(dict)` of texts by texts, in the order given.
pub fn repr_dict<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>, age: UnicodeAge) -> String {
    dict(entries, |out, text| push_repr(out, text, age))
}

/// `json.dumps(text)`: ASCII only, other characters as UTF-16 escapes.
pub fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_json_string(&mut out, text, true);
    out
}

/// Appends `json.dumps(text, ensure_ascii=ascii_only)`.
pub fn push_json_string(out: &mut String, text: &str, ascii_only: bool) {
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
            '\x7f'.. if !ascii_only => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    push(out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// `json.dumps(dict)` of texts by texts, in the order given; ASCII only.
pub fn json_dict<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    dict(entries, |out, text| push_json_string(out, text, true))
}

fn dict<'a>(
    entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    push_text: impl Fn(&mut String, &str),
) -> String {
    let mut out = String::from("{");
    for (i, (name, value)) in entries.into_iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        push_text(&mut out, name);
        out.push_str(": ");
        push_text(&mut out, value);
    }
    out.push('}');
    out
}

fn push(out: &mut String, arguments: Arguments<'_>) {
    out.write_fmt(arguments).expect("a String takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_ascii_if_asked() {
        assert_eq!(json_string("crème \"x\"\t🙂\x7f"), r#""cr\u00e8me \"x\"\t\ud83d\ude42\u007f""#);
        let mut out = String::new();
        push_json_string(&mut out, "crème\u{1}\x7f", false);
        assert_eq!(out, "\"crème\\u0001\x7f\"");
    }

    #[test]
    fn repr_chooses_its_quotes() {
        let repr = |text| repr_string(text, UnicodeAge::V12_1);
        assert_eq!(repr("a"), "'a'");
        assert_eq!(repr("men's"), "\"men's\"");
        assert_eq!(repr("6' 2\""), "'6\\' 2\"'");
        assert_eq!(repr("\u{200b}\u{a0}é"), "'\\u200b\\xa0é'");
    }

    #[test]
    fn an_older_python_escapes_newer_emoji() {
        // U+1F971 is of Unicode 12, U+1FAE0 of Unicode 14.
        assert_eq!(repr_string("🥱🫠", UnicodeAge::V12_1), "'🥱\\U0001fae0'");
        assert_eq!(repr_string("🥱🫠", UnicodeAge::Latest), "'🥱🫠'");
    }

    #[test]
    fn dictionaries_keep_the_order_given() {
        let entries = [("size", "6\""), ("color", "men's")];
        assert_eq!(repr_dict(entries, UnicodeAge::V12_1), r#"{'size': '6"', 'color': "men's"}"#);
        assert_eq!(json_dict(entries), r#"{"size": "6\"", "color": "men's"}"#);
        assert_eq!(json_dict([]), "{}");
    }

    #[test]
    fn floats_print_as_python_prints_them() {
        // Each right side is what CPython 3.11 prints.
        let cases = [
            (34.0, "34.0"),
            (877.8, "877.8"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (0.0001, "0.0001"),
            (0.00005, "5e-05"),
            (1e16, "1e+16"),
            (-1.5e22, "-1.5e+22"),
            (2721.34, "2721.34"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value), text);
        }
        assert_eq!([f64::NAN, f64::INFINITY, 0.5].map(json_float), ["NaN", "Infinity", "0.5"]);
    }
}
