//! JSON lines from a file or from standard input: one object per line; blank lines are skipped.

use std::io::{BufRead, stdin};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;
use webshop_products::open_text;

/// The values in a file, which may be gzipped. An error names file, line and field.
pub(crate) fn read_file<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for_each(open_text(path)?, &format!("`{}`", path.display()), |value| {
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// Calls `take` with each value on standard input as it arrives. An error, also one of `take`, names the
/// line.
pub(crate) fn for_each_in_stdin<T: DeserializeOwned>(take: impl FnMut(T) -> Result<()>) -> Result<()> {
    for_each(stdin().lock(), STDIN, take)
}

/// The name of standard input in errors.
pub(crate) const STDIN: &str = "standard input";

/// Like [`for_each_in_stdin`], for any reader; `source` is its name in errors.
pub(crate) fn for_each<T: DeserializeOwned>(
    reader: impl BufRead,
    source: &str,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    for (idx, line) in reader.lines().enumerate() {
        let place = || format!("{source}, line {}", idx + 1);
        let line = line.with_context(place)?;
        if !line.trim().is_empty() {
            take(parse(&line).with_context(place)?).with_context(place)?;
        }
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T> {
    // serde would accept a list for a struct, with its fields by position.
    ensure!(line.trim_start().starts_with('{'), "is not a JSON object");
    let mut json = serde_json::Deserializer::from_str(line);
    let value = serde_path_to_error::deserialize(&mut json).map_err(with_field)?;
    json.end().map_err(|error| anyhow!(message(&error)))?;
    Ok(value)
}

/// Deserializes a value that was parsed before. An error names the field.
pub(crate) fn from_value<T: DeserializeOwned>(object: &Value) -> Result<T> {
    serde_path_to_error::deserialize(object).map_err(with_field)
}

/// Names the field at fault. A syntax error and a missing field have none.
fn with_field(error: serde_path_to_error::Error<serde_json::Error>) -> anyhow::Error {
    let field = Some(error.path().to_string()).filter(|field| error.inner().is_data() && field != ".");
    match (field, message(error.inner())) {
        (Some(field), problem) => anyhow!("field `{field}`: {problem}"),
        (None, problem) => anyhow!(problem),
    }
}

/// The parser counts every line as line 1; the caller adds the real number.
fn message(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Row {
        n: u32,
    }

    fn sum(text: &str) -> Result<u32, String> {
        let mut sum = 0;
        let added = for_each(text.as_bytes(), "input", |row: Row| {
            sum += row.n;
            Ok(())
        });
        added.map(|()| sum).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn blank_lines_are_skipped() {
        assert_eq!(sum("{\"n\": 1}\n\n{\"n\": 2}\n"), Ok(3));
    }

    #[test]
    fn an_error_names_line_and_field() {
        let wrong_type = "input, line 2: field `n`: invalid type: string \"a\", expected u32 at column 9";
        assert_eq!(sum("{\"n\": 1}\n{\"n\": \"a\"}\n"), Err(wrong_type.into()));
        assert_eq!(sum("[1]\n"), Err("input, line 1: is not a JSON object".into()));
        assert_eq!(sum("{}\n"), Err("input, line 1: missing field `n` at column 2".into()));
    }
}
