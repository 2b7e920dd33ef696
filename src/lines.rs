//! JSON lines, from a file or from standard input: one object a line, blank lines left out.

use std::io::{BufRead, stdin};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;
use webshop_products::open_text;

/// The values in a file, which may be gzipped. An error names file, line and field.
pub fn in_file<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let mut values = Vec::new();
    each(open_text(path)?, &format!("`{}`", path.display()), |value| {
        values.push(value);
        Ok(())
    })?;
    Ok(values)
}

/// Hands the values on standard input to `take`, as they come. An error, be it of `take`, names the line.
pub fn each_in_stdin<T: DeserializeOwned>(take: impl FnMut(T) -> Result<()>) -> Result<()> {
    each(stdin().lock(), STDIN, take)
}

/// What standard input is called in errors.
pub const STDIN: &str = "standard input";

/// As [`each_in_stdin`], of any reader.
pub fn each<T: DeserializeOwned>(
    reader: impl BufRead,
    source: &str,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    for (at, line) in reader.lines().enumerate() {
        let place = || format!("{source}, line {}", at + 1);
        let line = line.with_context(place)?;
        if !line.trim().is_empty() {
            take(read(&line).with_context(place)?).with_context(place)?;
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(line: &str) -> Result<T> {
    // The parser would take a list for an object whose fields have no names.
    ensure!(line.trim_start().starts_with('{'), "is no JSON object");
    let mut json = serde_json::Deserializer::from_str(line);
    let value = serde_path_to_error::deserialize(&mut json).map_err(in_field)?;
    json.end().map_err(|error| anyhow!(told(&error)))?;
    Ok(value)
}

/// What the fields of an object mean, for who answers with the object itself. An error names the field.
pub fn fields<T: DeserializeOwned>(object: &Value) -> Result<T> {
    serde_path_to_error::deserialize(object).map_err(in_field)
}

/// Text that is not JSON is at fault in no field, nor is an object that lacks one.
fn in_field(error: serde_path_to_error::Error<serde_json::Error>) -> anyhow::Error {
    let field = Some(error.path().to_string()).filter(|field| error.inner().is_data() && field != ".");
    match (field, told(error.inner())) {
        (Some(field), problem) => anyhow!("field `{field}`: {problem}"),
        (None, problem) => anyhow!(problem),
    }
}

/// To the parser every line is the first; whoever calls names ours.
fn told(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}
