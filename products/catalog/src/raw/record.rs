//! From one JSON record to its type, with the field at fault named.
//!
//! Written by hand because serde's derived messages do not say which field had the wrong type.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::catalog::product_id;

use super::{RawHumanInstruction, RawInstruction, RawItem, RawOption};
use crate::error::FieldProblem;

/// A record's fields, taken out one by one.
struct Record(Map<String, Value>);

impl Record {
    fn new(value: Value) -> Result<Self, FieldProblem> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            other => Err(wrong("(record)", "an object", &other)),
        }
    }

    fn take(&mut self, field: &str) -> Result<Value, FieldProblem> {
        self.0.remove(field).ok_or_else(|| FieldProblem::new(field, "is missing"))
    }

    fn text(&mut self, field: &str) -> Result<String, FieldProblem> {
        text(field, self.take(field)?)
    }

    fn texts(&mut self, field: &str) -> Result<Vec<String>, FieldProblem> {
        texts(field, self.take(field)?)
    }

    /// The field's value unless it is absent or null.
    fn given(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field).filter(|value| !value.is_null())
    }
}

impl TryFrom<Value> for RawItem {
    type Error = FieldProblem;

    fn try_from(value: Value) -> Result<Self, FieldProblem> {
        // The original skips such a record before it looks at anything else in it, and there may be holes.
        let asin = value.get("asin").and_then(Value::as_str);
        let skipped = asin.filter(|asin| product_id(asin).is_none()).map(str::to_owned);
        Self::read(value).or_else(|problem| {
            let asin = skipped.ok_or(problem)?;
            Ok(Self { asin, ..Self::default() })
        })
    }
}

impl RawItem {
    fn read(value: Value) -> Result<Self, FieldProblem> {
        let mut record = Record::new(value)?;
        let images = match record.take("images")? {
            Value::Array(images) if images.is_empty() => return Err(FieldProblem::new("images", "is empty")),
            Value::Array(images) => {
                images.into_iter().map(|image| picture(image).unwrap_or_default()).collect()
            }
            other => return Err(wrong("images", "a list", &other)),
        };
        let small_description = match record.take("small_description")? {
            Value::String(text) => vec![text],
            list => texts("small_description", list)?,
        };
        Ok(Self {
            asin: record.text("asin")?,
            name: record.text("name")?,
            pricing: match record.given("pricing").filter(is_something) {
                Some(value) => text("pricing", value)?,
                None => String::new(),
            },
            category: record.text("category")?,
            query: record.text("query")?,
            product_category: record.text("product_category")?,
            small_description,
            full_description: record.text("full_description")?,
            customization_options: options(record.take("customization_options")?)?,
            images,
        })
    }
}

impl TryFrom<Value> for RawOption {
    type Error = FieldProblem;

    fn try_from(value: Value) -> Result<Self, FieldProblem> {
        let mut record = Record::new(value)?;
        Ok(Self { value: record.text("value")?, image: record.given("image").and_then(picture) })
    }
}

impl TryFrom<Value> for RawInstruction {
    type Error = FieldProblem;

    fn try_from(value: Value) -> Result<Self, FieldProblem> {
        let mut record = Record::new(value)?;
        let mut list = |field| record.given(field).map(|value| texts(field, value)).transpose();
        let (attributes, wanted) = (list("attributes")?, list("instruction_attributes")?);
        let instruction = record.given("instruction");
        Ok(Self {
            attributes,
            instruction: instruction.map(|value| text("instruction", value)).transpose()?,
            instruction_attributes: wanted,
        })
    }
}

impl TryFrom<Value> for RawHumanInstruction {
    type Error = FieldProblem;

    fn try_from(value: Value) -> Result<Self, FieldProblem> {
        let mut record = Record::new(value)?;
        Ok(Self {
            instruction: record.text("instruction")?,
            instruction_attributes: record.texts("instruction_attributes")?,
            instruction_options: record.texts("instruction_options")?,
        })
    }
}

fn options(value: Value) -> Result<IndexMap<String, Option<Vec<RawOption>>>, FieldProblem> {
    let field = "customization_options";
    let groups = match value {
        Value::Object(groups) => groups,
        nothing if !is_something(&nothing) => return Ok(IndexMap::new()),
        other => return Err(wrong(field, "an object", &other)),
    };
    groups
        .into_iter()
        .map(|(name, values)| {
            let inside = |problem: FieldProblem| {
                FieldProblem::new(&format!("{field}.{name}.{}", problem.field), problem.problem)
            };
            let values = match values {
                Value::Null => None,
                Value::Array(values) => Some(list(values, RawOption::try_from).map_err(inside)?),
                // Going through these, the original finds no values.
                Value::String(_) | Value::Object(_) if !is_something(&values) => Some(Vec::new()),
                other => return Err(wrong(&format!("{field}.{name}"), "a list", &other)),
            };
            Ok((name, values))
        })
        .collect()
}

/// What Python takes for true.
fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// A picture's address. The original puts whatever stands there on the page, where no customer looks.
fn picture(value: Value) -> Option<String> {
    text("image", value).ok()
}

fn text(field: &str, value: Value) -> Result<String, FieldProblem> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(wrong(field, "text", &other)),
    }
}

fn texts(field: &str, value: Value) -> Result<Vec<String>, FieldProblem> {
    match value {
        Value::Array(values) => list(values, |value| text(field, value)),
        other => Err(wrong(field, "a list of texts", &other)),
    }
}

/// Reads every value of a list. Collecting reuses the room of the JSON values, of which the result needs a third; in
/// a million products that would be gigabytes.
fn list<T>(
    values: Vec<Value>,
    read: impl FnMut(Value) -> Result<T, FieldProblem>,
) -> Result<Vec<T>, FieldProblem> {
    let mut list: Vec<T> = values.into_iter().map(read).collect::<Result<_, _>>()?;
    list.shrink_to_fit();
    Ok(list)
}

fn wrong(field: &str, expected: &str, found: &Value) -> FieldProblem {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    FieldProblem::new(field, format!("should hold {expected} and holds {found}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item() -> Value {
        json!({
            "asin": "B0", "name": "Lamp", "pricing": null, "category": "garden", "query": "lamps",
            "product_category": "Home › Lamps", "small_description": "", "full_description": "",
            "customization_options": "", "images": ["a"], "page": 3
        })
    }

    #[test]
    fn lone_texts_and_falsy_values_read_as_the_original_reads_them() {
        let item = RawItem::try_from(item()).unwrap();
        assert_eq!(item.small_description, [""]);
        assert_eq!(item.pricing, "");
        assert!(item.customization_options.is_empty());
    }

    #[test]
    fn what_python_takes_for_false_is_absent() {
        for nothing in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({})] {
            let mut record = item();
            record["pricing"] = nothing.clone();
            record["customization_options"] = nothing.clone();
            let read = RawItem::try_from(record).unwrap();
            assert_eq!((read.pricing.as_str(), read.customization_options.len()), ("", 0), "{nothing}");
        }
        let mut record = item();
        record["customization_options"] = json!({"a": null, "b": [], "c": "", "d": {}});
        let read = RawItem::try_from(record).unwrap().customization_options;
        assert_eq!(read.values().filter(|values| values.as_deref() == Some(&[])).count(), 3);
    }

    #[test]
    fn only_a_picture_may_be_anything() {
        let mut record = item();
        record["images"] = json!([null, "b"]);
        record["customization_options"] = json!({"color": [{"value": "red", "image": 3}]});
        let read = RawItem::try_from(record).unwrap();
        assert_eq!(read.images, ["", "b"]);
        assert_eq!(read.customization_options["color"].as_ref().unwrap()[0].image, None);
    }

    #[test]
    fn of_what_is_skipped_the_rest_may_be_missing() {
        for asin in ["nan", "B0123456789"] {
            let read = RawItem::try_from(json!({"asin": asin, "name": null})).unwrap();
            assert_eq!(read, RawItem { asin: asin.into(), ..RawItem::default() });
        }
    }

    #[test]
    fn a_problem_names_its_field() {
        let options = |value: Value| json!({ "Color": value });
        let cases = [
            ("images", json!([]), "field `images` is empty"),
            ("name", json!(3), "field `name` should hold text and holds a number"),
            (
                "customization_options",
                options(json!([{ "value": null }])),
                "field `customization_options.Color.value` should hold text and holds null",
            ),
            (
                "customization_options",
                options(json!("red")),
                "field `customization_options.Color` should hold a list and holds text",
            ),
        ];
        for (field, value, message) in cases {
            let mut record = item();
            record[field] = value;
            assert_eq!(RawItem::try_from(record).unwrap_err().to_string(), message);
        }
        let mut record = item();
        record.as_object_mut().unwrap().remove("query");
        assert_eq!(RawItem::try_from(record).unwrap_err().to_string(), "field `query` is missing");
    }
}
