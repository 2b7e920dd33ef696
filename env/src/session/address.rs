//! The part of a session that an address of the original's site holds.
//!
//! At the original's site the state of an episode is its address: the kind of the page, the query, the page
//! number, the product and the selected values. An [`Address`] is that state as data, without an encoding.
//! [`Session::address`] takes it from a session, [`Session::at`] makes a session of it. What an address does not
//! hold is lost: the number of steps, and which products were opened before.

use super::{Place, Session};
use crate::page::Detail;
use std::collections::BTreeSet;
use std::sync::Arc;
use webshop_products::{GoalId, ProductIdx, Selection};

/// A place in the shop, as an address names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The search bar.
    Search,
    /// A page of results.
    Results(Listing),
    /// A product.
    Item(Listing, Choice),
    /// A text about a product.
    Detail(Listing, Choice, Detail),
    /// The page after the purchase.
    Done(Choice),
}

/// A page of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The query, lower case.
    pub query: Arc<str>,
    /// The page number, from 1.
    pub page_number: u32,
}

/// A product with selected values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The product.
    pub product: ProductIdx,
    /// Its selected values.
    pub selection: Selection,
}

impl Session {
    /// The session called `name` at an address, after 0 steps. An address with a product counts as the first
    /// visit to it. Goal and product must be the shop's; selected values are taken as they are.
    pub fn at(name: &str, goal: GoalId, address: Address) -> Session {
        let start = Session::start_as(name, goal);
        let at = |place, listing: Listing| Session {
            place,
            query: listing.query,
            page_number: listing.page_number,
            ..start.clone()
        };
        let with = |session: Session, choice: Choice| Session {
            selection: choice.selection,
            visited: BTreeSet::from([choice.product]),
            ..session
        };
        match address {
            Address::Search => start,
            Address::Results(listing) => at(Place::Results, listing),
            Address::Item(listing, choice) => with(at(Place::Item(choice.product), listing), choice),
            Address::Detail(listing, choice, detail) => {
                with(at(Place::Detail(choice.product, detail), listing), choice)
            }
            Address::Done(choice) => {
                with(Session { place: Place::Done(choice.product), ..start.clone() }, choice)
            }
        }
    }

    /// The address of the current page.
    pub fn address(&self) -> Address {
        let listing = || Listing { query: self.query.clone(), page_number: self.page_number };
        let choice = |product| Choice { product, selection: self.selection.clone() };
        match self.place {
            Place::Search => Address::Search,
            Place::Results => Address::Results(listing()),
            Place::Item(product) => Address::Item(listing(), choice(product)),
            Place::Detail(product, detail) => Address::Detail(listing(), choice(product), detail),
            Place::Done(product) => Address::Done(choice(product)),
        }
    }
}
