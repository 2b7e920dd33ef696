//! What a customer's query listed.

use super::RESULTS_PER_PAGE;
use crate::action::NoopReason;
use crate::shop::Shop;
use webshop_products::ProductIdx;

/// The products that the last query listed, kept so that turning a page searches nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastListing {
    query: Option<String>,
    products: Vec<ProductIdx>,
}

impl LastListing {
    /// What a query lists, or why it lists nothing at all.
    pub fn of(&mut self, shop: &Shop, query: &str) -> Result<&[ProductIdx], NoopReason> {
        if self.query.as_deref() != Some(query) {
            self.products = shop.listing(query)?;
            self.query = Some(query.to_owned());
        }
        Ok(&self.products)
    }

    /// The listing of a query that a session has searched for already.
    pub fn known(&mut self, shop: &Shop, query: &str) -> &[ProductIdx] {
        self.of(shop, query).unwrap_or_default()
    }
}

/// The slice of a listing that a page shows; empty past the end and on page 0.
pub(super) fn page_of(products: &[ProductIdx], page_number: u32) -> &[ProductIdx] {
    let Some(pages_before) = page_number.checked_sub(1) else {
        return &[];
    };
    let before = (pages_before as usize).saturating_mul(RESULTS_PER_PAGE);
    let rest = products.get(before..).unwrap_or_default();
    &rest[..rest.len().min(RESULTS_PER_PAGE)]
}
