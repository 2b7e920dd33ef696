//! Shops made from a seed.
//!
//! A shop is a list of [`Family`]s: about five products of one kind, brand and title that differ in
//! an attribute, a price, the options offered, or a detail told only in their text. A [`Lexicon`]
//! decides which kinds and words one shop uses, so that words recur and shops differ. Each product
//! gets instructions in the two styles of the original.
//!
//! Every draw is addressed by what it is for and by family, member and instruction, so a product
//! does not depend on the products before it. No claim is made that anyone would buy these things.

mod dice;
mod family;
mod instruction;
mod lexicon;
mod listing;
mod names;
mod words;

use indexmap::IndexMap;

use crate::raw::RawData;
use crate::seed::Seed;
use dice::{Dice, Draw};
use family::Family;
use lexicon::Lexicon;
use listing::Listing;
use names::Names;

/// How many products successive families have: five on average.
const FAMILY_SIZES: [usize; 3] = [5, 4, 6];

/// A shop of `n_products` products with their instructions, byte for byte the same for the same
/// arguments on every machine.
///
/// Products of a family stand far apart; the order of products is not that of their names. Buying a
/// goal's own product with the goal's options always fulfils the goal.
///
/// ```
/// use webshop_products::{Seed, generate};
///
/// let shop = generate(Seed(1), 12);
/// assert_eq!(shop.items.len(), 12);
/// assert_eq!(shop, generate(Seed(1), 12));
/// assert_ne!(shop, generate(Seed(2), 12));
/// ```
///
/// # Panics
///
/// If `n_products` exceeds 40,960,000, the number of names there are.
pub fn generate(seed: Seed, n_products: usize) -> RawData {
    let sizes = family_sizes(n_products);
    let lexicon = Lexicon::new(seed, sizes.len());
    let names = Names::new(seed, n_products);
    let mut listings = Vec::with_capacity(n_products);
    for (index, &size) in sizes.iter().enumerate() {
        let family = Family::draw(&lexicon, index, size);
        for member in 0..size {
            let asin = names.get(listings.len());
            listings.push(Some(Listing::make(seed, &family, index, member, asin)));
        }
    }
    let mut order: Vec<usize> = (0..n_products).collect();
    Dice::new(seed, Draw::Order, &[]).shuffle(&mut order);
    let shuffled = order.into_iter().filter_map(|at| listings[at].take());
    collect(shuffled, n_products)
}

fn family_sizes(n_products: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut rest = n_products;
    for size in FAMILY_SIZES.into_iter().cycle() {
        if rest == 0 {
            break;
        }
        sizes.push(size.min(rest));
        rest -= size.min(rest);
    }
    sizes
}

fn collect(listings: impl Iterator<Item = Listing>, n_products: usize) -> RawData {
    let mut data = RawData {
        items: Vec::with_capacity(n_products),
        instructions: IndexMap::with_capacity(n_products),
        human: IndexMap::with_capacity(n_products),
    };
    for listing in listings {
        let asin = listing.item.asin.clone();
        data.instructions.insert(asin.clone(), listing.synthetic);
        data.human.insert(asin, listing.human);
        data.items.push(listing.item);
    }
    data
}

#[cfg(test)]
mod tests;
