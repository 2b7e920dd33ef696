//! Typed fields of a JSON object, with errors that name each wrong one.
//!
//! The errors have the form of pydantic's, which OpenEnv's and AgentGym's clients show: a type, a location, a
//! message and the input. Other interfaces print location and message.

use serde_json::{Map, Value, json};

/// A field that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    /// Pydantic's name of the fault.
    kind: &'static str,
    /// The names that lead to the field.
    path: Vec<String>,
    /// What the field should be.
    pub(crate) message: String,
    /// What it is.
    input: Value,
}

impl FieldError {
    /// A fault of a field whose place is added by [`Fields::refuse`].
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> FieldError {
        FieldError { kind, path: Vec::new(), message: message.into(), input: Value::Null }
    }

    /// The location of the field, its names joined by periods.
    pub(crate) fn place(&self) -> String {
        self.path.join(".")
    }

    /// The error as pydantic writes it; `outer` are the names before the field's own.
    pub(crate) fn to_json(&self, outer: &[&str]) -> Value {
        let names = outer.iter().copied().chain(self.path.iter().map(String::as_str));
        let place: Vec<&str> = names.collect();
        json!({"type": self.kind, "loc": place, "msg": self.message, "input": self.input})
    }
}

/// Errors as one text, which names each wrong field.
pub(crate) fn messages(errors: &[FieldError]) -> String {
    let named = |error: &FieldError| format!("`{}`: {}", error.place(), error.message);
    errors.iter().map(named).collect::<Vec<_>>().join("; ")
}

/// The pairs of a query as an object: a value that is a number becomes one. Any other text is left for the error
/// to show.
pub(crate) fn object_of_query(pairs: Vec<(String, String)>) -> Map<String, Value> {
    let read = |value: String| value.parse::<u64>().map(Value::from).unwrap_or_else(|_| value.into());
    pairs.into_iter().map(|(name, value)| (name, read(value))).collect()
}

/// The fields of an object that is being read. A field that is null counts as absent.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    outer: Vec<String>,
    errors: Vec<FieldError>,
}

impl<'a> Fields<'a> {
    /// The fields of a whole request.
    pub(crate) fn new(map: &'a Map<String, Value>) -> Fields<'a> {
        Fields { map, outer: Vec::new(), errors: Vec::new() }
    }

    /// The fields of an object in the field `name`.
    pub(crate) fn below<'b>(&self, name: &str, map: &'b Map<String, Value>) -> Fields<'b> {
        let outer = self.outer.iter().cloned().chain([name.to_owned()]).collect();
        Fields { map, outer, errors: Vec::new() }
    }

    /// The errors found, in the order of reading.
    pub(crate) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }

    /// `read`, unless errors were found.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<FieldError>> {
        if self.errors.is_empty() { Ok(read) } else { Err(self.errors) }
    }

    /// Takes over errors.
    pub(crate) fn add(&mut self, errors: Vec<FieldError>) {
        self.errors.extend(errors);
    }

    /// Adds an error about the field `name`.
    pub(crate) fn refuse(&mut self, name: &str, error: FieldError) {
        let path = self.outer.iter().cloned().chain([name.to_owned()]).collect();
        let input = self.map.get(name).cloned().unwrap_or_else(|| Value::Object(self.map.clone()));
        self.errors.push(FieldError { path, input, ..error });
    }

    /// The value of a field; `None` if it is absent or null.
    pub(crate) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Adds an error for every field that is not one of `known`.
    pub(crate) fn forbid_others(&mut self, known: &[&str]) {
        let others: Vec<&String> = self.map.keys().filter(|name| !known.contains(&name.as_str())).collect();
        for name in others {
            self.refuse(name, FieldError::new("extra_forbidden", "Extra inputs are not permitted"));
        }
    }

    /// What `read` finds in a field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self, &str) -> Option<T>,
    ) -> Option<T> {
        if !self.map.contains_key(name) {
            self.refuse(name, FieldError::new("missing", "Field required"));
            return None;
        }
        let n_errors = self.errors.len();
        let found = read(self, name);
        if found.is_none() && self.errors.len() == n_errors {
            self.refuse(name, FieldError::new("none_not_allowed", "Input should not be null"));
        }
        found
    }

    /// A text of at most `limit` characters.
    pub(crate) fn text(&mut self, name: &str, limit: usize) -> Option<String> {
        let value = self.value(name)?;
        let error = match value.as_str() {
            None => FieldError::new("string_type", "Input should be a valid string"),
            Some(text) if text.chars().count() > limit => {
                let message = format!("String should have at most {limit} characters");
                FieldError::new("string_too_long", message)
            }
            Some(text) => return Some(text.to_owned()),
        };
        self.refuse(name, error);
        None
    }

    /// A text that `parse` understands; `expected` says which it does.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let found = self.value(name)?.as_str().and_then(parse);
        if found.is_none() {
            self.refuse(name, FieldError::new("literal_error", format!("Input should be {expected}")));
        }
        found
    }

    /// A whole number from 0 to `limit`; one with a fraction of 0 counts, as in pydantic.
    pub(crate) fn unsigned(&mut self, name: &str, limit: u64) -> Option<u64> {
        let value = self.value(name)?;
        let error = match number(value) {
            Some(number) if number <= i128::from(limit) && number >= 0 => return u64::try_from(number).ok(),
            Some(number) if number < 0 => {
                FieldError::new("greater_than_equal", "Input should be greater than or equal to 0")
            }
            Some(_) => {
                let message = format!("Input should be less than or equal to {limit}");
                FieldError::new("less_than_equal", message)
            }
            None => FieldError::new("int_type", "Input should be a valid integer"),
        };
        self.refuse(name, error);
        None
    }

    /// A whole number of at most 64 bits, with or without a sign.
    pub(crate) fn integer(&mut self, name: &str) -> Option<i128> {
        let limits = i128::from(i64::MIN)..=i128::from(u64::MAX);
        let found = number(self.value(name)?).filter(|number| limits.contains(number));
        if found.is_none() {
            self.refuse(name, FieldError::new("int_type", "Input should be a valid integer of 64 bits"));
        }
        found
    }

    /// A number from 0 to `limit`.
    pub(crate) fn float(&mut self, name: &str, limit: f64) -> Option<f64> {
        let error = match self.value(name)?.as_f64() {
            Some(number) if (0.0..=limit).contains(&number) => return Some(number),
            Some(number) if number < 0.0 => {
                FieldError::new("greater_than_equal", "Input should be greater than or equal to 0")
            }
            Some(_) => {
                FieldError::new("less_than_equal", format!("Input should be less than or equal to {limit}"))
            }
            None => FieldError::new("float_type", "Input should be a valid number"),
        };
        self.refuse(name, error);
        None
    }

    /// A truth value.
    pub(crate) fn boolean(&mut self, name: &str) -> Option<bool> {
        let found = self.value(name)?.as_bool();
        if found.is_none() {
            self.refuse(name, FieldError::new("bool_type", "Input should be a valid boolean"));
        }
        found
    }

    /// An object.
    pub(crate) fn object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        let value = self.value(name)?;
        let found = value.as_object();
        if found.is_none() {
            self.refuse(name, FieldError::new("dict_type", "Input should be a valid dictionary"));
        }
        found
    }

    /// A list whose elements `read` understands; `expected` says what they should be.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.value(name)?;
        let found = value.as_array().and_then(|list| list.iter().map(read).collect());
        if found.is_none() {
            self.refuse(name, FieldError::new("list_type", format!("Input should be a list of {expected}")));
        }
        found
    }
}

/// A whole number.
pub(crate) fn number(value: &Value) -> Option<i128> {
    let whole = value.as_u64().map(i128::from).or(value.as_i64().map(i128::from));
    whole.or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i128))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_pydantics_form() {
        let value = json!({"action": 3});
        let map = value.as_object().expect("an object");
        let mut fields = Fields::new(map);
        assert_eq!(fields.text("action", 10), None);
        fields.required("other", |fields, name| fields.text(name, 10));
        let errors: Vec<Value> = fields.into_errors().iter().map(|error| error.to_json(&["body"])).collect();
        let expected = json!([
            {"type": "string_type", "loc": ["body", "action"], "msg": "Input should be a valid string", "input": 3},
            {"type": "missing", "loc": ["body", "other"], "msg": "Field required", "input": {"action": 3}},
        ]);
        assert_eq!(Value::from(errors), expected);
    }
}
