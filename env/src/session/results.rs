//! The products listed by the last query.

use super::RESULTS_PER_PAGE;
use crate::action::NoopReason;
use crate::search::index::MAX_HITS;
use crate::shop::Shop;
use std::sync::Arc;
use webshop_products::ProductIdx;
use webshop_pycompat::PythonRandom;

/// The marker of a query that lists products at random, in the original only.
const RANDOM_MARKER: &str = "<r>";

/// The products that the last query listed, cached so that turning a page needs no search.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastListing {
    query: Option<Arc<str>>,
    products: Arc<[ProductIdx]>,
    /// The generator of random listings; `None` without any.
    random: Option<Box<PythonRandom>>,
}

impl LastListing {
    /// A cache that also serves random listings, as the original does.
    pub(crate) fn drawing_from(random: PythonRandom) -> Self {
        LastListing { random: Some(Box::new(random)), ..LastListing::default() }
    }

    /// The generator of random listings.
    pub(crate) fn random(&mut self) -> Option<&mut PythonRandom> {
        self.random.as_deref_mut()
    }

    /// The products of a new query, or the reason why it is refused.
    pub(crate) fn open(&mut self, shop: &Shop, query: &Arc<str>) -> Result<&[ProductIdx], NoopReason> {
        self.turn(shop, query);
        self.of(shop, query)
    }

    /// Draws a random listing again, as the original does for every page of it.
    pub(crate) fn turn(&mut self, shop: &Shop, query: &Arc<str>) {
        let Some(random) = self.random.as_mut().filter(|_| query.split(' ').next() == Some(RANDOM_MARKER))
        else {
            return;
        };
        if let Some(drawn) = random.sample(shop.catalog().len() as u32, MAX_HITS) {
            self.products = drawn.into_iter().map(ProductIdx).collect();
            self.query = Some(Arc::clone(query));
        }
    }

    fn of(&mut self, shop: &Shop, query: &Arc<str>) -> Result<&[ProductIdx], NoopReason> {
        if self.query.as_ref() != Some(query) {
            self.products = shop.listing(query)?;
            self.query = Some(Arc::clone(query));
        }
        Ok(&self.products)
    }

    /// The products of the current query.
    pub(crate) fn known(&mut self, shop: &Shop, query: &Arc<str>) -> &[ProductIdx] {
        self.of(shop, query).unwrap_or_default()
    }
}

/// The products of one page of a listing; empty after the end and on page 0.
pub(super) fn listing_page(products: &[ProductIdx], page_number: u32) -> &[ProductIdx] {
    let Some(pages_before) = page_number.checked_sub(1) else {
        return &[];
    };
    let before = (pages_before as usize).saturating_mul(RESULTS_PER_PAGE);
    let rest = products.get(before..).unwrap_or_default();
    &rest[..rest.len().min(RESULTS_PER_PAGE)]
}
