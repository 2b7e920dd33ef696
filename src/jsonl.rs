//! JSON lines from standard input, taken as they arrive.

use std::io::{BufRead, stdin};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use webshop_products::json_lines;

/// The name of standard input in errors.
pub(crate) const STDIN: &str = "standard input";

/// Calls `take` with each value on standard input as it arrives. An error, also one of `take`, names the
/// line.
pub(crate) fn for_each_in_stdin<T: DeserializeOwned>(take: impl FnMut(T) -> Result<()>) -> Result<()> {
    for_each(stdin().lock(), STDIN, take)
}

/// Like [`for_each_in_stdin`], for any reader; `source` is its name in errors.
pub(crate) fn for_each<T: DeserializeOwned>(
    reader: impl BufRead,
    source: &str,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    for item in json_lines(reader, source) {
        let (line, value) = item?;
        take(value).with_context(|| format!("{source}, line {line}"))?;
    }
    Ok(())
}
