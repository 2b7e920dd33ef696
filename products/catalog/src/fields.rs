//! Reading the fields of JSON values.

use serde::{Deserialize, Deserializer};

use crate::error::FieldProblem;

/// Deserializes a JSON value.
///
/// # Errors
/// The value is malformed. The error names the field by its path, such as `options[0].value`; a syntax error and a field
/// missing from the value itself have no path.
pub fn read_fields<'de, T: Deserialize<'de>>(
    json: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, FieldProblem> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let path = error.path().to_string();
        // A point is the value itself.
        let is_named = error.inner().is_data() && path != ".";
        FieldProblem::new(if is_named { &path } else { "" }, line_problem(error.inner()))
    })
}

/// The message of an error in a value of one line, without the line, which the parser calls line 1.
pub fn line_problem(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}
