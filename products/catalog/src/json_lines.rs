//! JSON lines: one object per line; blank lines are skipped. Errors name the line and the field.

use std::io::BufRead;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{DataError, FieldProblem};
use crate::fields::{line_problem, read_fields};
use crate::raw::open_text;

/// The values in a file, which is decompressed if its name ends in `.gz`.
///
/// # Errors
/// The file cannot be read, or a line is no object of this kind.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, DataError> {
    let input = format!("`{}`", path.display());
    json_lines(open_text(path)?, &input).map(|line| Ok(line?.1)).collect()
}

/// The values of a reader, each with the number of its line, counting from 1. `input` is the reader's name in errors.
pub fn json_lines<T: DeserializeOwned>(
    reader: impl BufRead,
    input: &str,
) -> impl Iterator<Item = Result<(usize, T), DataError>> {
    reader.lines().zip(1..).filter_map(move |(text, line)| {
        let value = match text {
            Ok(text) if text.trim().is_empty() => return None,
            Ok(text) => parse(&text),
            Err(error) => Err(FieldProblem::new("", error.to_string())),
        };
        let value = value.map_err(|problem| DataError::Line { input: input.to_owned(), line, problem });
        Some(value.map(|value| (line, value)))
    })
}

fn parse<T: DeserializeOwned>(line: &str) -> Result<T, FieldProblem> {
    // serde would accept a list for a struct, with its fields by position.
    if !line.trim_start().starts_with('{') {
        return Err(FieldProblem::new("", "is not a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let value = read_fields(&mut json)?;
    json.end().map_err(|error| FieldProblem::new("", line_problem(&error)))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Row {
        n: u32,
    }

    fn read(text: &[u8]) -> Result<Vec<(usize, u32)>, String> {
        let rows = json_lines(text, "input").map(|row| row.map(|(line, row): (usize, Row)| (line, row.n)));
        rows.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }

    #[test]
    fn blank_lines_are_skipped_and_counted() {
        assert_eq!(read(b"{\"n\": 1}\n\n{\"n\": 2}\n"), Ok(vec![(1, 1), (3, 2)]));
    }

    #[test]
    fn an_error_names_line_and_field() {
        let refusal = |text: &[u8]| read(text).unwrap_err();
        let wrong_type = "input, line 2: field `n`: invalid type: string \"a\", expected u32 at column 9";
        assert_eq!(refusal(b"{\"n\": 1}\n{\"n\": \"a\"}\n"), wrong_type);
        assert_eq!(refusal(b"[1]\n"), "input, line 1: is not a JSON object");
        assert_eq!(refusal(b"{}\n"), "input, line 1: missing field `n` at column 2");
        assert_eq!(refusal(b"{\"n\": 1} 2\n"), "input, line 1: trailing characters at column 10");
        assert_eq!(refusal(b"\n{\"n\": \xff}\n"), "input, line 2: stream did not contain valid UTF-8");
    }
}
