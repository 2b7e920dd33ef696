//! Methods of Python's strings that templates call and that mean something else elsewhere, or are missing.
//!
//! Python's white space includes four separators that Unicode's does not; a title begins after every mark;
//! lines end in eleven ways. All other methods are minijinja-contrib's.

use minijinja::value::{Kwargs, from_args};
use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::chat::template::environment::failed;

/// Calls a method of a value that minijinja itself does not know.
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
            // No limit and a negative one are the same.
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

/// Whether Python counts `c` as white space: Unicode's, and four separators below it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// `text.split(sep, n_cuts)`, or from the right.
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

/// Words; what is left when the cuts are used up keeps the white space at its far end. From the right, the last
/// word comes first.
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

/// Everything that ends a line to `str.splitlines`.
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

/// A capital behind everything that is no letter, small letters elsewhere.
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
