//! JSON lines, from a file or from standard input: one value a line, blank lines left out.

use std::io::{BufRead, stdin};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::de::DeserializeOwned;
use webshop_products::open_text;

/// The values in a file, which may be gzipped. An error names file and line.
pub fn in_file<T: DeserializeOwned>(path: &Path) -> Result<impl Iterator<Item = Result<T>>> {
    Ok(values(open_text(path)?, format!("`{}`", path.display())))
}

/// The values on standard input, as they come.
pub fn in_stdin<T: DeserializeOwned>() -> impl Iterator<Item = Result<T>> {
    values(stdin().lock(), "standard input".into())
}

fn values<T: DeserializeOwned>(reader: impl BufRead, source: String) -> impl Iterator<Item = Result<T>> {
    reader.lines().enumerate().filter_map(move |(at, line)| {
        let place = || format!("{source}, line {}", at + 1);
        match line.with_context(place) {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(serde_json::from_str(&line).map_err(|error| {
                // To the parser every line is the first; ours is the one to name.
                anyhow!("{}: {}", place(), error.to_string().replace(" at line 1 column ", " at column "))
            })),
            Err(error) => Some(Err(error)),
        }
    })
}
