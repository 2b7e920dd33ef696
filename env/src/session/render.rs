//! The page of a session.

use super::results::listing_page;
use super::{LastListing, Outcome, Place, Session};
use crate::original::compat::Compat;
use crate::page::{
    Detail, DetailPage, DonePage, ItemPage, OptionLabel, OptionList, Page, ResultItem, ResultsPage,
    SearchPage,
};
use crate::shop::Shop;
use std::sync::Arc;
use webshop_products::{Product, ProductIdx};

impl Session {
    /// The current page.
    pub fn page(&self, shop: &Shop) -> Page {
        self.page_with(shop, &mut LastListing::default())
    }

    pub(crate) fn page_with(&self, shop: &Shop, last: &mut LastListing) -> Page {
        let instruction = shop.goals().get(self.goal).instruction.clone();
        match self.place {
            Place::Search => Page::Search(SearchPage { instruction }),
            Place::Results => Page::Results(self.results_page(shop, last, instruction)),
            Place::Item(at) => self.item_page(shop, at, instruction),
            Place::Detail(at, detail) => {
                let product = shop.catalog().get(at);
                Page::Detail(DetailPage {
                    instruction,
                    query: self.query.clone(),
                    page_number: self.page_number,
                    product: at,
                    id: product.id.clone(),
                    selection: self.selection.clone(),
                    detail,
                    lines: detail_lines(product, detail),
                })
            }
            Place::Done(at) => {
                self.done_page(shop, at, shop.reward_by_id(self.goal, at, &self.selection).total())
            }
        }
    }

    /// The page after an action; the reward is taken from `outcome`.
    pub(crate) fn page_after(&self, outcome: &Outcome, shop: &Shop, last: &mut LastListing) -> Page {
        match (self.place, &outcome.breakdown) {
            (Place::Done(at), Some(breakdown)) => self.done_page(shop, at, breakdown.total()),
            _ => self.page_with(shop, last),
        }
    }

    fn done_page(&self, shop: &Shop, at: ProductIdx, reward: f64) -> Page {
        Page::Done(DonePage {
            product: at,
            id: shop.catalog().get(at).id.clone(),
            selection: self.selection.clone(),
            reward,
        })
    }

    fn results_page(&self, shop: &Shop, last: &mut LastListing, instruction: Arc<str>) -> ResultsPage {
        let products = last.known(shop, &self.query);
        let items = listing_page(products, self.page_number).iter().map(|&at| {
            let product = shop.catalog().get(at);
            ResultItem {
                product: at,
                id: product.id.clone(),
                title: product.title.clone(),
                price_tag: product.price.tag.clone(),
                lowest_price: product.price.low,
                highest_price: product.price.high,
                visited: self.visited.contains(&at),
            }
        });
        ResultsPage {
            instruction,
            query: self.query.clone(),
            page_number: self.page_number,
            total: products.len(),
            items: items.collect(),
        }
    }

    fn item_page(&self, shop: &Shop, at: ProductIdx, instruction: Arc<str>) -> Page {
        let product = shop.catalog().get(at);
        let options = product.options.iter().map(|group| {
            let chosen = self.selection.get(&group.name);
            let values = group
                .values
                .iter()
                .map(|value| OptionLabel { clicked: chosen == Some(&*value.text), text: value.text.clone() });
            OptionList { name: group.name.clone(), values: values.collect() }
        });
        let mut page = Page::Item(ItemPage {
            instruction,
            query: self.query.clone(),
            page_number: self.page_number,
            product: at,
            id: product.id.clone(),
            title: product.title.clone(),
            price_tag: product.price.tag.clone(),
            lowest_price: product.price.low,
            highest_price: product.price.high,
            options: options.collect(),
            selection: self.selection.clone(),
            shows_attributes: shop.config().shows_attributes,
        });
        if shop.config().compat == Compat::Original {
            let address = page.url(&self.name());
            if let Page::Item(page) = &mut page {
                mark_quoted(page, &address);
            }
        }
        page
    }
}

/// The original marks a value as selected if it occurs in quotes anywhere in the URL.
fn mark_quoted(page: &mut ItemPage, address: &str) {
    for label in page.options.iter_mut().flat_map(|list| &mut list.values) {
        label.clicked = address.contains(&format!("\"{}\"", label.text));
    }
}

fn detail_lines(product: &Product, detail: Detail) -> Vec<String> {
    match detail {
        Detail::Description => vec![product.description.to_string()],
        Detail::Features => product.bullets.iter().map(|bullet| format!(" {bullet}")).collect(),
        Detail::Reviews => Vec::new(),
        Detail::Attributes => {
            let attributes = product.attributes.iter().map(|attribute| format!(" {attribute}"));
            let rest = [&product.department, &product.query, &product.product_category];
            attributes.chain(rest.map(ToString::to_string)).collect()
        }
    }
}
