//! Checked reading of one record of the original's files.
//!
//! [`parse_item`] and [`parse_record`] read the JSON of a record into its type and name the field at fault. The
//! functions after them read the fields for which the original accepts more than one JSON type.

use std::fmt;

use indexmap::IndexMap;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use super::{RawInstruction, RawItem, RawOption};
use crate::catalog::price::Pricing;
use crate::catalog::product::ProductId;
use crate::error::FieldProblem;
use crate::fields::{Object, line_problem, read_fields};

/// Option names with their values.
type Options = IndexMap<String, Option<Vec<RawOption>>>;

/// One record.
pub(super) struct Record<T> {
    /// The ASIN in a record of a list, `?` if it has none; the key in an object.
    pub(super) asin: String,
    /// The record, or what is wrong with it.
    pub(super) content: Result<T, FieldProblem>,
}

impl<T> Record<T> {
    /// An element that is not JSON.
    pub(super) fn not_json(key: Option<String>, error: &serde_json::Error) -> Self {
        let problem = FieldProblem::new("", format!("is not valid JSON: {}", line_problem(error)));
        Self { asin: key.unwrap_or_else(no_asin), content: Err(problem) }
    }
}

/// Parses a record under its key, which is its ASIN. In a list, where it has none, it belongs to no product.
///
/// # Errors
/// That it is not JSON.
pub(super) fn parse_record<T: DeserializeOwned>(
    key: Option<String>,
    json: &[u8],
) -> serde_json::Result<Record<T>> {
    // Nearly all records are well formed, and a value of its JSON costs time.
    let content = match serde_json::from_slice(json) {
        Ok(record) => Ok(record),
        Err(_) => read_fields(serde_json::from_slice::<Value>(json)?),
    };
    Ok(match key {
        Some(asin) => Record { asin, content },
        None => Record { asin: no_asin(), content: Err(FieldProblem::new("", NO_KEY)) },
    })
}

/// What is wrong with a record of instructions in a list.
const NO_KEY: &str = "is in a list, without an ASIN; the file must be an object with ASINs as keys";

/// Parses a product record, which holds its ASIN. Of a record that the original skips for its ASIN only the
/// ASIN is read, because the original looks at no other field of it.
///
/// # Errors
/// That it is not JSON.
pub(super) fn parse_item(key: Option<String>, json: &[u8]) -> serde_json::Result<Record<RawItem>> {
    if let Ok(Object(item)) = serde_json::from_slice::<Object<RawItem>>(json) {
        return Ok(Record { asin: key.unwrap_or_else(|| item.asin.clone()), content: Ok(item) });
    }
    let value: Value = serde_json::from_slice(json)?;
    let asin = value.get("asin").and_then(Value::as_str).map(str::to_owned);
    let content = read_fields(value).map(|Object(item)| item).or_else(|problem| match &asin {
        Some(asin) if ProductId::of_record(asin).is_none() => {
            Ok(RawItem { asin: asin.clone(), ..RawItem::default() })
        }
        _ => Err(problem),
    });
    Ok(Record { asin: key.or(asin).unwrap_or_else(no_asin), content })
}

/// Stands in messages for the ASIN of a record that has none.
fn no_asin() -> String {
    "?".to_owned()
}

impl RawItem {
    /// The price in the `pricing` field.
    pub(crate) fn price(&self) -> Result<Pricing, FieldProblem> {
        Pricing::parse(&self.pricing).map_err(|problem| FieldProblem::new("pricing", problem))
    }
}

impl RawInstruction {
    /// The sentence of the synthetic instruction and the attributes it requires; `None` without a sentence.
    pub(crate) fn synthetic(&self) -> Result<Option<(&str, &[String])>, FieldProblem> {
        let Some(sentence) = &self.instruction else { return Ok(None) };
        match self.instruction_attributes.as_deref().unwrap_or_default() {
            [] => Err(FieldProblem::new("instruction_attributes", "must not be empty")),
            attributes => Ok(Some((sentence, attributes))),
        }
    }
}

/// `pricing`: a text; any value that is false in Python reads as the empty text.
pub(super) fn text_or_falsy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let is_falsy = match &value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    if is_falsy { Ok(String::new()) } else { String::deserialize(value).map_err(de::Error::custom) }
}

/// `small_description`: a list of texts; a single text reads as a list of one.
pub(super) fn texts_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Texts;

    impl<'de> Visitor<'de> for Texts {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of texts")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(Texts)
}

/// `images`: a list that is not empty. The original puts each entry on the page unread, so what is not a text
/// reads as the empty text.
pub(super) fn images<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let images = Vec::<Value>::deserialize(deserializer)?;
    if images.is_empty() {
        return Err(de::Error::invalid_length(0, &"at least one image"));
    }
    Ok(images.iter().map(|image| image.as_str().unwrap_or_default().to_owned()).collect())
}

/// `image` of an option: a text; anything else reads as none.
pub(super) fn text_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_str().map(str::to_owned))
}

/// `customization_options`: an object; any value that is false in Python reads as the empty object.
pub(super) fn options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Options, D::Error> {
    deserializer.deserialize_any(OptionsVisitor)
}

struct OptionsVisitor;

impl OptionsVisitor {
    fn falsy<E: de::Error>(self, is_falsy: bool, found: de::Unexpected<'_>) -> Result<Options, E> {
        if is_falsy { Ok(Options::new()) } else { Err(E::invalid_type(found, &self)) }
    }
}

impl<'de> Visitor<'de> for OptionsVisitor {
    type Value = Options;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of options")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Options, E> {
        Ok(Options::new())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Options, E> {
        self.falsy(!value, de::Unexpected::Bool(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Options, E> {
        self.falsy(value == 0, de::Unexpected::Unsigned(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Options, E> {
        self.falsy(value == 0, de::Unexpected::Signed(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Options, E> {
        self.falsy(value == 0.0, de::Unexpected::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Options, E> {
        self.falsy(text.is_empty(), de::Unexpected::Str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Options, A::Error> {
        let is_empty = list.next_element::<IgnoredAny>()?.is_none();
        self.falsy(is_empty, de::Unexpected::Seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
        let mut options = Options::new();
        while let Some((name, OptionValues(values))) = map.next_entry()? {
            options.insert(name, values);
        }
        Ok(options)
    }
}

/// The values of one option: null, a list, or an empty text or object, which read as an empty list.
struct OptionValues(Option<Vec<RawOption>>);

impl<'de> Deserialize<'de> for OptionValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = OptionValues;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of option values")
            }

            fn visit_unit<E: de::Error>(self) -> Result<OptionValues, E> {
                Ok(OptionValues(None))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OptionValues, E> {
                match text {
                    "" => Ok(OptionValues(Some(Vec::new()))),
                    text => Err(E::invalid_type(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<OptionValues, A::Error> {
                let values: Vec<Object<RawOption>> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(OptionValues(Some(values.into_iter().map(|Object(value)| value).collect())))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OptionValues, A::Error> {
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(OptionValues(Some(Vec::new()))),
                    Some(_) => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
                }
            }
        }

        deserializer.deserialize_any(Values)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(record: &Value) -> Result<RawItem, FieldProblem> {
        parse_item(None, record.to_string().as_bytes()).unwrap().content
    }

    fn item() -> Value {
        json!({
            "asin": "B0", "name": "Lamp", "pricing": null, "category": "garden", "query": "lamps",
            "product_category": "Home › Lamps", "small_description": "", "full_description": "",
            "customization_options": "", "images": ["a"], "page": 3
        })
    }

    #[test]
    fn single_texts_and_falsy_values_read_as_in_the_original() {
        let item = parsed(&item()).unwrap();
        assert_eq!(item.small_description, [""]);
        assert_eq!(item.pricing, "");
        assert!(item.customization_options.is_empty());
    }

    #[test]
    fn falsy_values_read_as_empty() {
        for nothing in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([]), json!({})] {
            let mut record = item();
            record["pricing"] = nothing.clone();
            record["customization_options"] = nothing.clone();
            let read = parsed(&record).unwrap();
            assert_eq!((read.pricing.as_str(), read.customization_options.len()), ("", 0), "{nothing}");
        }
        let mut record = item();
        record["customization_options"] = json!({"a": null, "b": [], "c": "", "d": {}});
        let read = parsed(&record).unwrap().customization_options;
        assert_eq!(read.values().filter(|values| values.as_deref() == Some(&[])).count(), 3);
    }

    #[test]
    fn an_image_that_is_no_text_is_ignored() {
        let mut record = item();
        record["images"] = json!([null, "b"]);
        record["customization_options"] = json!({"color": [{"value": "red", "image": 3}]});
        let read = parsed(&record).unwrap();
        assert_eq!(read.images, ["", "b"]);
        assert_eq!(read.customization_options["color"].as_ref().unwrap()[0].image, None);
    }

    #[test]
    fn a_skipped_record_may_lack_fields() {
        for asin in ["nan", "B0123456789"] {
            let read = parsed(&json!({"asin": asin, "name": null})).unwrap();
            assert_eq!(read, RawItem { asin: asin.into(), ..RawItem::default() });
        }
    }

    #[test]
    fn a_problem_names_its_field() {
        let options = |value: Value| json!({ "Color": value });
        let cases = [
            ("images", json!([]), "field `images`: invalid length 0, expected at least one image"),
            ("name", json!(3), "field `name`: invalid type: integer `3`, expected a string"),
            (
                "customization_options",
                options(json!([{ "value": null }])),
                "field `customization_options.Color[0].value`: invalid type: null, expected a string",
            ),
            (
                "customization_options",
                options(json!("red")),
                "field `customization_options.Color`: invalid type: string \"red\", expected a list of option values",
            ),
        ];
        for (field, value, message) in cases {
            let mut record = item();
            record[field] = value;
            assert_eq!(parsed(&record).unwrap_err().to_string(), message);
        }
        let mut record = item();
        record.as_object_mut().unwrap().remove("query");
        assert_eq!(parsed(&record).unwrap_err().to_string(), "missing field `query`");
    }
}
