//! Values written as Python writes them: `str`, `repr` and `json.dumps`.

use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::Value;
use minijinja::value::ValueKind;
use regex::Regex;

/// How JSON is laid out.
pub(super) struct JsonStyle<'s> {
    pub(super) ascii_only: bool,
    pub(super) sort_keys: bool,
    /// What a level is set in by; everything on one line without.
    pub(super) indent: Option<&'s str>,
    /// Between items.
    pub(super) item: &'s str,
    /// Between a key and its value.
    pub(super) key: &'s str,
}

/// `str(value)`; what is undefined has no text.
pub(super) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => {
            let mut out = String::new();
            write_repr(&mut out, value);
            out
        }
    }
}

fn write_repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::Number if !value.is_integer() => out.push_str(&float(value, "nan", "inf")),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Map => {
            out.push('{');
            for (i, (key, value)) in pairs(value).into_iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, &key);
                out.push_str(": ");
                write_repr(out, &value);
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let is_tuple = value.is_tuple();
            out.push(if is_tuple { '(' } else { '[' });
            let items = items(value);
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(out, item);
            }
            out.push_str(if is_tuple && items.len() == 1 { "," } else { "" });
            out.push(if is_tuple { ')' } else { ']' });
        }
        // Whole numbers, `True`, `None` and functions.
        _ => out.push_str(&value.to_string()),
    }
}

/// `repr(text)`: single quotes unless only these occur inside.
fn write_quoted(out: &mut String, text: &str) {
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
            c if is_printable(c) => out.push(c),
            _ if code <= 0xff => push(out, format_args!("\\x{code:02x}")),
            _ if code <= 0xffff => push(out, format_args!("\\u{code:04x}")),
            _ => push(out, format_args!("\\U{code:08x}")),
        }
    }
    out.push(quote);
}

/// `str.isprintable` of one character: no control, format, separator or unassigned one.
fn is_printable(c: char) -> bool {
    static HIDDEN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").expect("the pattern is a constant and valid"));
    matches!(c, ' '..='~') || !HIDDEN.is_match(c.encode_utf8(&mut [0; 4]))
}

/// `repr` of a float: the fewest digits that read back the same, a power of ten from 1e16 on and below 1e-4.
fn float(value: &Value, not_a_number: &str, infinity: &str) -> String {
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    let sign = if number.is_sign_negative() { "-" } else { "" };
    if number.is_nan() {
        return not_a_number.to_owned();
    }
    if number.is_infinite() {
        return format!("{sign}{infinity}");
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{size:e}");
        let (digits, power) = text.split_once('e').expect("the format writes a power");
        let (power_sign, power) = power.strip_prefix('-').map_or(("+", power), |power| ("-", power));
        return format!("{sign}{digits}e{power_sign}{power:0>2}");
    }
    let text = format!("{size}");
    let point = if text.contains('.') { "" } else { ".0" };
    format!("{sign}{text}{point}")
}

/// `json.dumps(value)`, at a depth of `level` containers. The error says what has no place in JSON.
pub(super) fn write_json(
    out: &mut String,
    value: &Value,
    style: &JsonStyle,
    level: usize,
) -> Result<(), String> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => push(out, format_args!("{value}")),
        ValueKind::Number => out.push_str(&float(value, "NaN", "Infinity")),
        ValueKind::String => write_json_text(out, value.as_str().unwrap_or_default(), style),
        ValueKind::Map => {
            let mut pairs = pairs(value);
            if style.sort_keys {
                pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            write_members(out, '{', '}', style, level, pairs, |out, (key, value)| {
                write_json_text(out, &json_key(&key)?, style);
                out.push_str(style.key);
                write_json(out, &value, style, level + 1)
            })?;
        }
        ValueKind::Seq => {
            write_members(out, '[', ']', style, level, items(value), |out, item| {
                write_json(out, &item, style, level + 1)
            })?;
        }
        other => return Err(format!("a value of type {other} cannot be written as JSON")),
    }
    Ok(())
}

/// What stands between brackets, on one line or on a line each.
fn write_members<T>(
    out: &mut String,
    open: char,
    close: char,
    style: &JsonStyle,
    level: usize,
    members: Vec<T>,
    mut write_member: impl FnMut(&mut String, T) -> Result<(), String>,
) -> Result<(), String> {
    let line = |out: &mut String, level: usize| {
        if let Some(indent) = style.indent {
            out.push('\n');
            out.push_str(&indent.repeat(level));
        }
    };
    out.push(open);
    let is_empty = members.is_empty();
    for (i, member) in members.into_iter().enumerate() {
        out.push_str(if i > 0 { style.item } else { "" });
        line(out, level + 1);
        write_member(out, member)?;
    }
    if !is_empty {
        line(out, level);
    }
    out.push(close);
    Ok(())
}

fn json_key(key: &Value) -> Result<String, String> {
    match key.kind() {
        ValueKind::String | ValueKind::Number => Ok(text(key)),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        other => Err(format!("a key of type {other} cannot be written as JSON")),
    }
}

fn write_json_text(out: &mut String, text: &str, style: &JsonStyle) {
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
            '\0'..='\x1f' => push(out, format_args!("\\u{:04x}", u32::from(c))),
            '\x7f'.. if style.ascii_only && !c.is_ascii() => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    push(out, format_args!("\\u{unit:04x}"));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn pairs(value: &Value) -> Vec<(Value, Value)> {
    value.as_object().and_then(|map| map.try_iter_pairs()).into_iter().flatten().collect()
}

fn items(value: &Value) -> Vec<Value> {
    value.try_iter().into_iter().flatten().collect()
}

fn push(out: &mut String, arguments: std::fmt::Arguments) {
    out.write_fmt(arguments).expect("a String takes every write");
}
