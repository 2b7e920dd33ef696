//! Products, and the options that an agent has selected.
//!
//! A [`Product`] is clean: options are named and spelled as on the page, the price is parsed. Its raw form is
//! [`crate::RawItem`]. A [`Selection`] holds the selected option values.
//!
//! A shop may hold over a million products: texts that many of them share are stored once, behind an `Arc`.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::catalog::price::Price;

/// The longest ASIN; a record with a longer one is skipped on loading.
const ASIN_LENGTH: usize = 10;

/// The ASIN of records for which the original's scraper found none.
const NO_ASIN: &str = "nan";

/// The name of a product: its ASIN, at most ten characters.
///
/// A lower-case id cannot be opened under the original's rules, which look up the clicked label in upper
/// case; an empty id can be opened under no rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ProductId(Arc<str>);

impl ProductId {
    /// The id for `asin`, or `None` if it has more than ten characters.
    ///
    /// ```
    /// use webshop_products::ProductId;
    ///
    /// assert_eq!(ProductId::new("B07FYPSNH8").unwrap().as_str(), "B07FYPSNH8");
    /// assert!(ProductId::new("B07FYPSNH8X").is_none());
    /// ```
    pub fn new(asin: &str) -> Option<Self> {
        let fits = asin.chars().count() <= ASIN_LENGTH;
        fits.then(|| Self(asin.into()))
    }

    /// The id of a record with this `asin`; `None` if the original skips the record, which it does for `nan`
    /// and for more than ten characters.
    pub(crate) fn of_record(asin: &str) -> Option<Self> {
        Self::new(asin).filter(|_| asin != NO_ASIN)
    }

    /// The ASIN.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProductId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ProductId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let asin = String::deserialize(deserializer)?;
        Self::new(&asin).ok_or_else(|| {
            de::Error::custom(format!("`{asin}` is not a product id: more than ten characters"))
        })
    }
}

/// A product's position in its catalog, which is also its document number in the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProductIdx(pub u32);

impl ProductIdx {
    /// The position as an index into `Catalog::products`.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// An option, such as the color, with its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OptionGroup {
    /// Lower-cased name; unique within its product.
    pub name: Arc<str>,
    /// In the order of the file; may be empty and may repeat a value, as in the original.
    pub values: Box<[OptionValue]>,
}

/// One value of an [`OptionGroup`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OptionValue {
    /// As shown and clicked: stripped, lower case, `/` spelled ` | `.
    pub text: Arc<str>,
    /// The URL of its image. Equal values of one product share the last image given.
    pub image: Option<Box<str>>,
}

/// One product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Product {
    /// Its unique id.
    pub id: ProductId,
    /// Shown in results and on the item page; searched.
    pub title: Arc<str>,
    /// Shown behind the description button; searched.
    pub description: Box<str>,
    /// Shown behind the features button; only the first is searched.
    pub bullets: Box<[Arc<str>]>,
    /// Hidden from agents by default; compared by rewards.
    pub attributes: Box<[Arc<str>]>,
    /// One of the shop's departments; the file calls it `category`.
    pub department: Arc<str>,
    /// The kind of product, lower case: `"hiking boots"`.
    pub query: Arc<str>,
    /// The category path: `"Clothing › Shoes › Hiking Boots"`.
    pub product_category: Arc<str>,
    /// Its options, in the order of the file.
    pub options: Box<[OptionGroup]>,
    /// Its price.
    pub price: Price,
    /// The URL of the main image.
    pub image: Box<str>,
}

/// The selected option values: one per option name, in the order of the first selection of each name.
///
/// Selections are equal only if their order is equal, because URLs show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    // A product has a handful of groups, so a list is faster than a map, and it can be hashed.
    chosen: Vec<(String, String)>,
}

impl Selection {
    /// An empty selection.
    pub const fn new() -> Self {
        Self { chosen: Vec::new() }
    }

    /// Selects `value` for `name`; an earlier value for that name is replaced in its place.
    ///
    /// ```
    /// let mut selection = webshop_products::Selection::new();
    /// selection.choose("color", "red");
    /// selection.choose("size", "small");
    /// selection.choose("color", "blue");
    /// assert_eq!(selection.values().collect::<Vec<_>>(), ["blue", "small"]);
    /// ```
    pub fn choose(&mut self, name: &str, value: &str) {
        match self.chosen.iter_mut().find(|(known, _)| known == name) {
            Some((_, chosen)) => *chosen = value.into(),
            None => self.chosen.push((name.into(), value.into())),
        }
    }

    /// The value selected for `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.chosen.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The values alone.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.iter().map(|(_, value)| value)
    }

    /// The number of names with a value.
    pub fn len(&self) -> usize {
        self.chosen.len()
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Removes every value.
    pub fn clear(&mut self) {
        self.chosen.clear();
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Selection {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(choices: I) -> Self {
        let mut selection = Self::new();
        for (name, value) in choices {
            selection.choose(name.as_ref(), value.as_ref());
        }
        selection
    }
}

impl Serialize for Selection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(IndexMap::<String, String>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_survives_json_in_its_order() {
        let selection: Selection = [("size", "small"), ("color", "red")].into_iter().collect();
        let json = serde_json::to_string(&selection).unwrap();
        assert_eq!(json, r#"{"size":"small","color":"red"}"#);
        assert_eq!(serde_json::from_str::<Selection>(&json).unwrap(), selection);
    }

    #[test]
    fn selections_in_different_order_differ() {
        let one: Selection = [("a", "1"), ("b", "2")].into_iter().collect();
        let other: Selection = [("b", "2"), ("a", "1")].into_iter().collect();
        assert_ne!(one, other);
        assert_eq!(one.get("b"), Some("2"));
        assert_eq!(one.get("c"), None);
    }

    #[test]
    fn an_id_of_eleven_characters_is_refused() {
        assert!(ProductId::new("B0123456789").is_none());
        assert!(serde_json::from_str::<ProductId>("\"B0123456789\"").is_err());
    }
}
