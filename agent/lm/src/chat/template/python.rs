//! Template values printed as Python prints them: `str`, `repr` and `json.dumps` of minijinja values.
//!
//! The rules for texts and floats are those of `webshop-pycompat`.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ValueKind;
use webshop_pycompat::{UnicodeAge, float_repr, json_float, push_json_string, push_repr};

/// The most containers that are written inside each other. Python stops at some thousand.
const MAX_DEPTH: usize = 200;

/// The arguments of `json.dumps`.
pub(super) struct JsonStyle<'s> {
    pub(super) ascii_only: bool,
    pub(super) sort_keys: bool,
    /// Indentation of a level; one line without.
    pub(super) indent: Option<&'s str>,
    /// Separator of items.
    pub(super) item: &'s str,
    /// Separator of a key and its value.
    pub(super) key: &'s str,
}

/// `str(value)`; empty for an undefined value.
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

fn float(value: &Value) -> f64 {
    f64::try_from(value.clone()).unwrap_or(f64::NAN)
}

fn write_repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::String => push_repr(out, value.as_str().unwrap_or_default(), UnicodeAge::Latest),
        ValueKind::Number if !value.is_integer() => out.push_str(&float_repr(float(value))),
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
        // Integers, `True`, `None` and functions.
        _ => out.push_str(&value.to_string()),
    }
}

/// `json.dumps(value)` at a depth of `level` containers. The error names a type that JSON does not have.
pub(super) fn write_json(
    out: &mut String,
    value: &Value,
    style: &JsonStyle,
    level: usize,
) -> Result<(), String> {
    if level > MAX_DEPTH {
        return Err(format!(
            "a value of more than {MAX_DEPTH} nested lists or objects cannot be written as JSON"
        ));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => push(out, format_args!("{value}")),
        ValueKind::Number => out.push_str(&json_float(float(value))),
        ValueKind::String => push_json_string(out, value.as_str().unwrap_or_default(), style.ascii_only),
        ValueKind::Map => {
            let mut pairs = pairs(value);
            if style.sort_keys {
                pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            write_members(out, '{', '}', style, level, pairs, |out, (key, value)| {
                push_json_string(out, &json_key(&key)?, style.ascii_only);
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

/// The members of a container between brackets, on one line or one line each.
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

fn pairs(value: &Value) -> Vec<(Value, Value)> {
    value.as_object().and_then(|map| map.try_iter_pairs()).into_iter().flatten().collect()
}

fn items(value: &Value) -> Vec<Value> {
    value.try_iter().into_iter().flatten().collect()
}

fn push(out: &mut String, arguments: std::fmt::Arguments) {
    out.write_fmt(arguments).expect("a String takes every write");
}
