//! Reading the fields of JSON values.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
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

/// A struct that is read from a JSON object. By itself serde would accept a list, too, with the fields by position.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
