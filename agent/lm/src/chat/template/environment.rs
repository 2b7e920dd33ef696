//! A minijinja environment configured as transformers configures Jinja2.

use std::fmt::Write;

use chrono::NaiveDateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::globals::{cycler, joiner};
use serde_json::Map;

use crate::chat::template::methods::{self, failed};
use crate::chat::template::python::{self, JsonStyle};

/// The environment with the filters, tests and functions that templates expect.
pub(super) fn like_transformers() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the delimiters are Jinja's own"));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(|out, _, value| {
        out.write_str(&python::text(value)).map_err(|_| Error::from(ErrorKind::WriteFailure))
    });
    environment.set_unknown_method_callback(methods::call);
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: &Value| python::text(value));
    environment.add_filter("trim", |state: &mut State, value: &Value, chars: Option<Value>| {
        let chars: Vec<Value> = chars.into_iter().collect();
        methods::call(state, &Value::from(python::text(value)), "strip", &chars)
    });
    // In Jinja2 every value with a length and indices is a sequence, and so is an undefined value.
    environment.add_test("sequence", |value: &Value| {
        let kind = value.kind();
        matches!(kind, ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
    });
    environment.add_test("iterable", |value: &Value| {
        !matches!(value.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number | ValueKind::Plain)
    });
    environment.add_function("raise_exception", |message: &Value| -> Result<Value, Error> {
        Err(failed(format!("the template raised an exception: {}", python::text(message))))
    });
    environment.add_function("cycler", |items: Rest<Value>| cycler(items.0));
    environment.add_function("joiner", joiner);
    environment.remove_global("debug");
    environment
}

/// The variables of one rendering.
pub(super) fn context(variables: Map<String, serde_json::Value>, now: Option<NaiveDateTime>) -> Value {
    let strftime_now = move |format: &str| {
        let Some(now) = now else {
            return Err(failed("the template calls `strftime_now`, but no date is given".to_owned()));
        };
        let mut text = String::new();
        write!(text, "{}", now.format(format))
            .map_err(|_| failed(format!("`{format}` is not a date format")))?;
        Ok(text)
    };
    let now = ("strftime_now".to_owned(), Value::from_function(strftime_now));
    let variables = variables.into_iter().map(|(name, value)| (name, from_json(value)));
    Value::from_pairs(std::iter::once(now).chain(variables))
}

fn from_json(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(is_true) => is_true.into(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.into(),
        Json::Array(items) => items.into_iter().map(from_json).collect(),
        Json::Object(fields) => Value::from_pairs(fields.into_iter().map(|(k, v)| (k, from_json(v)))),
    }
}

/// The most spaces by which `tojson` indents.
const MAX_INDENT: i64 = 100;

/// `json.dumps` with the arguments that transformers supports. Deviation: an indent is at most [`MAX_INDENT`].
fn tojson(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    const NAMES: [&str; 4] = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let mut arguments = Vec::new();
    for (i, name) in NAMES.into_iter().enumerate() {
        let named: Option<Value> = named.get(name)?;
        let given = positional.get(i).cloned().or(named);
        arguments.push(given.filter(|value| !value.is_none() && !value.is_undefined()));
    }
    named.assert_all_used()?;
    if positional.len() > NAMES.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let is_true = |argument: &Option<Value>| argument.as_ref().is_some_and(Value::is_true);
    let indent = match &arguments[1] {
        None => None,
        Some(indent) => match indent.as_str() {
            Some(text) => Some(text.to_owned()),
            None => {
                let n_spaces = i64::try_from(indent.clone())?.clamp(0, MAX_INDENT);
                Some(" ".repeat(n_spaces as usize))
            }
        },
    };
    let (mut item, mut key) = if indent.is_some() { (",", ": ") } else { (", ", ": ") };
    let separators: Vec<Value> = match &arguments[2] {
        Some(separators) => separators.try_iter()?.collect(),
        None => Vec::new(),
    };
    if let [first, second] = separators.as_slice() {
        (item, key) = first
            .as_str()
            .zip(second.as_str())
            .ok_or_else(|| failed("`separators` of `tojson` must be strings".to_owned()))?;
    } else if arguments[2].is_some() {
        return Err(failed("`separators` of `tojson` must be two".to_owned()));
    }
    let style = JsonStyle {
        ascii_only: is_true(&arguments[0]),
        sort_keys: is_true(&arguments[3]),
        indent: indent.as_deref(),
        item,
        key,
    };
    let mut out = String::new();
    python::write_json(&mut out, value, &style, 0).map_err(failed)?;
    Ok(out)
}
