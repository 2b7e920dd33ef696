//! The products of a shop in their order.
//!
//! A [`Catalog`] is made once from [`RawData`] and never changes. Its order is the document order of the
//! search index.

pub(crate) mod cached;
mod codec;
pub(crate) mod embedded;
pub(crate) mod price;
pub(crate) mod product;
pub(crate) mod report;
mod skipping;
pub(crate) mod source;
pub(crate) mod source_config;
pub(crate) mod statistics;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use crate::catalog::price::{Price, Pricing};
use crate::catalog::product::{OptionGroup, OptionValue, Product, ProductId, ProductIdx};
use crate::error::{DataError, FieldProblem};
use crate::interned::Texts;
use crate::raw::{RawData, RawInstruction, RawItem, RawOption};
use crate::seed::Seed;
use webshop_pycompat::strip;

/// The original's attribute for a product without a list of attributes.
const NO_ATTRIBUTES: &str = "DUMMY_ATTR";

/// Validated products in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    products: Vec<Product>,
    positions: HashMap<ProductId, ProductIdx, FixedState>,
    source_digest: Option<String>,
}

impl Catalog {
    /// Cleans the products of `data` as the original does (skips the ASIN `nan`, ASINs longer than ten
    /// characters and repeated ones) and draws the prices charged for ranges from `seed`.
    ///
    /// # Errors
    /// [`DataError::Record`].
    pub fn from_raw(data: &RawData, seed: Seed) -> Result<Self, DataError> {
        Self::charged(data, |pricing, position| pricing.charged_by_seed(seed, position.0))
    }

    /// [`Catalog::from_raw`] with the prices charged decided by `charge`, called in catalog order.
    pub(crate) fn charged(
        data: &RawData,
        mut charge: impl FnMut(Pricing, ProductIdx) -> Price,
    ) -> Result<Self, DataError> {
        let mut maker = CatalogMaker::default();
        for (at, item) in data.items.iter().enumerate() {
            maker.add(item, &mut charge).map_err(|problem| DataError::Record {
                file: "items_shuffle".into(),
                record: NonZero::new(at + 1),
                asin: item.asin.clone(),
                problem,
            })?;
        }
        for (asin, entry) in &data.instructions {
            maker.describe(asin, entry);
        }
        Ok(maker.finish())
    }

    /// All products in catalog order.
    pub fn products(&self) -> &[Product] {
        &self.products
    }

    /// The product at a position of this catalog; a position of another catalog may panic.
    pub fn get(&self, position: ProductIdx) -> &Product {
        &self.products[position.as_usize()]
    }

    /// The position of the product with this ASIN; case-sensitive.
    pub fn find(&self, asin: &str) -> Option<ProductIdx> {
        self.positions.get(&ProductId::new(asin)?).copied()
    }

    /// A digest of the file of products and of how it was read, in hexadecimal: catalogs with the same one show the
    /// same texts. `None` unless [`crate::CatalogSource::open_cached`] read a folder.
    pub fn source_digest(&self) -> Option<&str> {
        self.source_digest.as_deref()
    }

    /// The number of products.
    pub fn len(&self) -> usize {
        self.products.len()
    }

    /// Whether there are no products.
    pub fn is_empty(&self) -> bool {
        self.products.is_empty()
    }
}

/// Builds a catalog from one record after the other.
pub(crate) struct CatalogMaker {
    catalog: Catalog,
    texts: Texts,
    /// The attributes of a product until [`CatalogMaker::describe`].
    no_attributes: Box<[Arc<str>]>,
}

impl Default for CatalogMaker {
    fn default() -> Self {
        let mut texts = Texts::default();
        Self { no_attributes: [texts.share(NO_ATTRIBUTES)].into(), texts, catalog: Catalog::default() }
    }
}

impl CatalogMaker {
    /// Appends the product of `item`, unless the original skips it.
    pub(crate) fn add(
        &mut self,
        item: &RawItem,
        charge: impl FnOnce(Pricing, ProductIdx) -> Price,
    ) -> Result<(), FieldProblem> {
        let Some(id) = ProductId::of_record(&item.asin) else { return Ok(()) };
        if self.catalog.positions.contains_key(&id) {
            return Ok(());
        }
        let position = ProductIdx(self.catalog.products.len() as u32);
        let price = charge(item.price()?, position);
        let texts = &mut self.texts;
        let product = Product {
            id: id.clone(),
            title: item.name.as_str().into(),
            description: item.full_description.as_str().into(),
            bullets: texts.share_all(&item.small_description),
            attributes: self.no_attributes.clone(),
            department: texts.share(&item.category),
            query: texts.share(strip(&item.query.to_lowercase())),
            product_category: texts.share(&item.product_category),
            options: options(&item.customization_options, texts),
            price: Price { tag: texts.share(&price.tag), ..price },
            image: item.images.first().map(String::as_str).unwrap_or_default().into(),
        };
        self.catalog.positions.insert(id, position);
        self.catalog.products.push(product);
        Ok(())
    }

    /// Gives the product with this ASIN the attributes of its instruction and returns its position; `None` if
    /// there is no such product yet.
    pub(crate) fn describe(&mut self, asin: &str, entry: &RawInstruction) -> Option<ProductIdx> {
        let position = self.catalog.find(asin)?;
        if let Some(attributes) = &entry.attributes {
            self.catalog.products[position.as_usize()].attributes = self.texts.share_all(attributes);
        }
        Some(position)
    }

    /// The products so far.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The catalog, without spare capacity.
    pub(crate) fn finish(mut self) -> Catalog {
        self.catalog.products.shrink_to_fit();
        self.catalog
    }
}

/// Lower-cases names (the last of two equal ones gives the values) and cleans values.
fn options(raw: &IndexMap<String, Option<Vec<RawOption>>>, texts: &mut Texts) -> Box<[OptionGroup]> {
    let mut groups: IndexMap<String, Box<[OptionValue]>, FixedState> = IndexMap::default();
    // As in the original, one table of images serves all groups of a product.
    let mut images: IndexMap<Arc<str>, Option<&str>, FixedState> = IndexMap::default();
    for (name, values) in raw {
        let Some(values) = values else { continue };
        let values = values.iter().map(|value| {
            let text = texts.share(&option_text(&value.value));
            images.insert(Arc::clone(&text), value.image.as_deref());
            OptionValue { text, image: None }
        });
        groups.insert(name.to_lowercase(), values.collect());
    }
    for value in groups.values_mut().flatten() {
        value.image = images.get(&value.text).copied().flatten().map(Into::into);
    }
    groups.into_iter().map(|(name, values)| OptionGroup { name: texts.share(&name), values }).collect()
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
        let groups = options(&raw, &mut Texts::default());
        let shown: Vec<_> = groups
            .iter()
            .map(|g| (&*g.name, g.values.iter().map(|v| &*v.text).collect::<Vec<_>>()))
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
            "`items_shuffle`, record 2 (`B2`): field `pricing`: `cheap` has no amount in dollars"
        );
    }
}
