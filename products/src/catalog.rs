//! What is sold: the products of a shop in their order.
//!
//! A [`Catalog`] is made once from [`RawData`] and never changes. Its order is the document order
//! of the search index and the last tie-break everywhere.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::mem;

use indexmap::IndexMap;

use crate::error::{DataError, FieldProblem};
use crate::price::{Price, Pricing};
use crate::product::{ASIN_LENGTH, OptionGroup, OptionValue, Product, ProductId, ProductIdx};
use crate::python::strip;
use crate::raw::{RawData, RawInstruction, RawItem, RawOption};
use crate::seed::Seed;

/// The attribute that the original gives a product which has no list of attributes.
const NO_ATTRIBUTES: &str = "DUMMY_ATTR";

/// Validated products in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    products: Vec<Product>,
    positions: HashMap<ProductId, ProductIdx>,
}

impl Catalog {
    /// Cleans the products of `data` as the original does (names `nan` or longer than ten
    /// characters and repeated ASINs are skipped), and draws what ranges cost from `seed`.
    pub fn from_raw(data: &RawData, seed: Seed) -> Result<Self, DataError> {
        Self::charged(data, |pricing, position| pricing.charged_by_seed(seed, position.0))
    }

    /// As [`Catalog::from_raw`], but takes the items out of `data` one by one, so that a large catalog is not held
    /// twice. The instructions stay.
    pub fn take_from(data: &mut RawData, seed: Seed) -> Result<Self, DataError> {
        let items = mem::take(&mut data.items).into_iter();
        Self::of_items(items, &data.instructions, |pricing, position| {
            pricing.charged_by_seed(seed, position.0)
        })
    }

    /// [`Catalog::from_raw`] with what each product costs decided by `charge`, called in catalog order.
    pub(crate) fn charged(
        data: &RawData,
        charge: impl FnMut(Pricing, ProductIdx) -> Price,
    ) -> Result<Self, DataError> {
        Self::of_items(data.items.iter(), &data.instructions, charge)
    }

    fn of_items(
        items: impl Iterator<Item = impl Borrow<RawItem>>,
        instructions: &IndexMap<String, RawInstruction>,
        mut charge: impl FnMut(Pricing, ProductIdx) -> Price,
    ) -> Result<Self, DataError> {
        let mut catalog = Self::default();
        for (at, item) in items.enumerate() {
            let item = item.borrow();
            let problem = |problem| DataError::Record {
                file: "items_shuffle".into(),
                record: at + 1,
                asin: item.asin.clone(),
                problem,
            };
            let Some(id) = product_id(item).map_err(problem)? else { continue };
            if catalog.positions.contains_key(&id) {
                continue;
            }
            let position = ProductIdx(catalog.products.len() as u32);
            let attributes = instructions.get(&item.asin);
            let attributes = attributes.and_then(|entry| entry.attributes.clone());
            let pricing = pricing(item).map_err(problem)?;
            let price = charge(pricing, position);
            catalog.positions.insert(id.clone(), position);
            catalog.products.push(product(item, id, price, attributes));
        }
        Ok(catalog)
    }

    /// All products in catalog order.
    pub fn products(&self) -> &[Product] {
        &self.products
    }

    /// The product at a position of this catalog; a position of another catalog may panic.
    pub fn get(&self, position: ProductIdx) -> &Product {
        &self.products[position.as_usize()]
    }

    /// Where the product called `asin` stands; upper and lower case are told apart.
    pub fn find(&self, asin: &str) -> Option<ProductIdx> {
        self.positions.get(&ProductId::new(asin)?).copied()
    }

    /// How many products there are.
    pub fn len(&self) -> usize {
        self.products.len()
    }

    /// Whether nothing is sold.
    pub fn is_empty(&self) -> bool {
        self.products.is_empty()
    }
}

/// The name under which an item is sold; none if the original skips such a name.
pub(crate) fn product_id(item: &RawItem) -> Result<Option<ProductId>, FieldProblem> {
    if item.asin == "nan" || item.asin.chars().count() > ASIN_LENGTH {
        return Ok(None);
    }
    let id = ProductId::new(&item.asin);
    id.map(Some).ok_or_else(|| FieldProblem::new("asin", "is empty or in lower case"))
}

/// What an item's price text says.
pub(crate) fn pricing(item: &RawItem) -> Result<Pricing, FieldProblem> {
    Pricing::parse(&item.pricing).map_err(|text| FieldProblem::new("pricing", text))
}

fn product(item: &RawItem, id: ProductId, price: Price, attributes: Option<Vec<String>>) -> Product {
    Product {
        id,
        title: item.name.clone(),
        description: item.full_description.clone(),
        bullets: item.small_description.clone(),
        attributes: attributes.unwrap_or_else(|| vec![NO_ATTRIBUTES.into()]),
        department: item.category.clone(),
        query: strip(&item.query.to_lowercase()).into(),
        product_category: item.product_category.clone(),
        options: options(&item.customization_options),
        price,
        image: item.images.first().cloned().unwrap_or_default(),
    }
}

/// Lower-cases names (the last of two equal ones gives the values) and cleans values.
fn options(raw: &IndexMap<String, Option<Vec<RawOption>>>) -> Vec<OptionGroup> {
    let mut groups: IndexMap<String, Vec<OptionValue>> = IndexMap::new();
    // As in the original, one table of pictures serves all groups of a product.
    let mut images: IndexMap<String, Option<String>> = IndexMap::new();
    for (name, values) in raw {
        let Some(values) = values else { continue };
        let values = values.iter().map(|value| {
            let text = option_text(&value.value);
            images.insert(text.clone(), value.image.clone());
            OptionValue { text, image: None }
        });
        groups.insert(name.to_lowercase(), values.collect());
    }
    for value in groups.values_mut().flatten() {
        value.image = images.get(&value.text).cloned().flatten();
    }
    groups.into_iter().map(|(name, values)| OptionGroup { name, values }).collect()
}

/// An option value as pages show it.
fn option_text(value: &str) -> String {
    strip(value).replace('/', " | ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(asin: &str) -> RawItem {
        RawItem { asin: asin.into(), images: vec!["a".into()], ..RawItem::default() }
    }

    fn load(items: Vec<RawItem>) -> Result<Catalog, DataError> {
        Catalog::from_raw(&RawData { items, ..RawData::default() }, Seed(0))
    }

    #[test]
    fn unusable_names_and_repeats_are_skipped() {
        let items = ["B1", "nan", "B0123456789", "B2", "B1"].map(item);
        let catalog = load(items.into()).unwrap();
        let names: Vec<_> = catalog.products().iter().map(|p| p.id.as_str()).collect();
        assert_eq!(names, ["B1", "B2"]);
        assert_eq!(catalog.find("B2"), Some(ProductIdx(1)));
        assert_eq!(catalog.find("nan"), None);
    }

    #[test]
    fn a_catalog_that_is_taken_equals_one_that_is_copied() {
        let mut data = crate::generate(Seed(0), 30);
        let copied = Catalog::from_raw(&data, Seed(1)).unwrap();
        let taken = Catalog::take_from(&mut data, Seed(1)).unwrap();
        assert_eq!((taken.products(), data.items.len()), (copied.products(), 0));
    }

    #[test]
    fn option_values_are_spelled_as_pages_show_them() {
        let cases = [("Black/White", "black | white"), ("/", " | "), ("\u{1c} Ab ", "ab")];
        for (raw, text) in cases {
            assert_eq!(option_text(raw), text);
        }
    }

    #[test]
    fn of_two_names_equal_in_lower_case_the_last_values_stay_in_the_first_place() {
        let value =
            |text: &str, image: Option<&str>| RawOption { value: text.into(), image: image.map(Into::into) };
        let raw = IndexMap::from([
            ("Color".to_owned(), Some(vec![value("Red", Some("first"))])),
            ("Size".to_owned(), Some(vec![value("Red", Some("last"))])),
            ("Style".to_owned(), None),
            ("COLOR".to_owned(), Some(vec![value("Blue", None), value("red", None)])),
        ]);
        let groups = options(&raw);
        let shown: Vec<_> = groups
            .iter()
            .map(|g| (g.name.as_str(), g.values.iter().map(|v| v.text.as_str()).collect::<Vec<_>>()))
            .collect();
        assert_eq!(shown, [("color", vec!["blue", "red"]), ("size", vec!["red"])]);
        // The picture of `red` is the one given last, for whichever group.
        assert_eq!(groups[1].values[0].image, None);
    }

    #[test]
    fn a_bad_record_is_named() {
        let bad = RawItem { pricing: "cheap".into(), ..item("B2") };
        let message = load(vec![item("B1"), bad]).unwrap_err().to_string();
        assert_eq!(
            message,
            "`items_shuffle`, record 2 (`B2`): field `pricing` holds `cheap`, which names no dollars"
        );
        let message = load(vec![item("b1")]).unwrap_err().to_string();
        assert_eq!(message, "`items_shuffle`, record 1 (`b1`): field `asin` is empty or in lower case");
    }
}
