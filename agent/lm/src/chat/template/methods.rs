//! Methods of Python's strings that minijinja-contrib lacks or implements differently.
//!
//! Python's white space includes four separators that Unicode's does not; `title` capitalizes after every
//! character that is not a letter; `splitlines` knows eleven line endings. All other methods are
//! minijinja-contrib's.

use minijinja::value::{Kwargs, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use webshop_pycompat::is_space;

/// Calls a method that minijinja does not know.
pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return unknown_method_callback(state, value, method, args);
    };
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<Value>,) = from_args(args)?;
            let chars: Option<Vec<char>> =
                chars.as_ref().and_then(Value::as_str).map(|chars| chars.chars().collect());
            let is_stripped = |c: char| chars.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
            Ok(match method {
                "strip" => text.trim_matches(is_stripped),
                "lstrip" => text.trim_start_matches(is_stripped),
                _ => text.trim_end_matches(is_stripped),
            }
            .into())
        }
        "split" | "rsplit" => {
            let (sep, limit, named): (Option<Value>, Option<i64>, Kwargs) = from_args(args)?;
            let sep = match sep {
                Some(sep) => Some(sep),
                None => named.get("sep")?,
            };
            let limit = match limit {
                Some(limit) => Some(limit),
                None => named.get("maxsplit")?,
            };
            named.assert_all_used()?;
            // A negative limit means no limit.
            let n_cuts = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let sep = sep.filter(|sep| !sep.is_none());
            split(text, sep.as_ref().and_then(Value::as_str), n_cuts, method == "rsplit")
        }
        "removeprefix" | "removesuffix" => {
            let (part,): (&str,) = from_args(args)?;
            let rest =
                if method == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Ok(rest.unwrap_or(text).into())
        }
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            Ok(split_lines(text, keep_ends.unwrap_or(false)).into())
        }
        "title" => {
            let () = from_args(args)?;
            Ok(title(text).into())
        }
        _ => unknown_method_callback(state, value, method, args),
    }
}

/// `text.split(sep, n_cuts)` or `text.rsplit(sep, n_cuts)`.
fn split(text: &str, sep: Option<&str>, n_cuts: usize, from_right: bool) -> Result<Value, Error> {
    let n_parts = n_cuts.saturating_add(1);
    let mut parts: Vec<&str> = match sep {
        Some("") => return Err(failed("empty separator".to_owned())),
        Some(sep) if from_right => text.rsplitn(n_parts, sep).collect(),
        Some(sep) => text.splitn(n_parts, sep).collect(),
        None => split_at_space(text, n_cuts, from_right),
    };
    if from_right {
        parts.reverse();
    }
    Ok(parts.into_iter().map(Value::from).collect())
}

/// Words separated by white space. After `n_cuts` cuts the rest keeps its white space at the far end. From
/// the right, the last word comes first.
fn split_at_space(text: &str, n_cuts: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_right { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
        if rest.is_empty() {
            return parts;
        }
        let cut = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(cut) = cut.filter(|_| parts.len() < n_cuts) else {
            parts.push(rest);
            return parts;
        };
        let width = rest[cut..].chars().next().map_or(0, char::len_utf8);
        let (before, after) = (&rest[..cut], &rest[cut + width..]);
        parts.push(if from_right { after } else { before });
        rest = if from_right { before } else { after };
    }
}

/// Whether `c` ends a line for `str.splitlines`.
fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn split_lines(text: &str, keep_ends: bool) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(ends_line) {
        let width = match rest[end..].strip_prefix("\r\n") {
            Some(_) => 2,
            None => rest[end..].chars().next().map_or(0, char::len_utf8),
        };
        lines.push(Value::from(&rest[..if keep_ends { end + width } else { end }]));
        rest = &rest[end + width..];
    }
    if !rest.is_empty() {
        lines.push(rest.into());
    }
    lines
}

/// `text.title()`: upper case after every character that is not a letter, lower case elsewhere.
fn title(text: &str) -> String {
    let mut out = String::new();
    let mut in_word = false;
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_lowercase() || c.is_uppercase();
    }
    out
}

/// An error of a template, with this message.
pub(super) fn failed(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
