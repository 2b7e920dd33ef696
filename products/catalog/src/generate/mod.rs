//! Catalogs generated from a seed.
//!
//! A shop is a list of [`Family`]s: mostly three or four products, at times one or two, of one kind and brand that a
//! search finds together, and that differ in what their bullets say, in prices, in the options offered, and in the tails of their
//! titles. A [`Lexicon`] decides which kinds one shop sells. Each product gets instructions in the two styles
//! of the original.
//!
//! Lengths, option values, attributes and words have the statistics of the original's 1,000 products
//! ([`crate::CatalogStatistics`]), with stated deviations: bullets and descriptions are at most half as long,
//! so that a small model reads a page whole, and no product makes more than twelve goals.
//!
//! Every draw is addressed by kind, family, member and instruction, so a product
//! does not depend on the products before it.

mod choice;
mod coined;
mod dice;
mod draw;
mod family;
mod instruction;
mod lexicon;
mod listing;
mod names;
mod paraphrase;
mod title;
mod words;

use std::mem;
use std::path::Path;

use indexmap::IndexMap;

use crate::error::DataError;
use crate::raw::{DirWriter, RawData};
use crate::seed::Seed;
use dice::{Dice, Draw};
use family::Family;
use lexicon::Lexicon;
use listing::Listing;
use names::Names;

/// How many products successive families have.
const FAMILY_SIZES: [usize; 8] = [4, 3, 4, 2, 4, 3, 4, 3];

/// A shop of `n_products` products with their instructions, byte for byte the same for the same
/// arguments on every machine.
///
/// Products of a family are scattered over the catalog; the order of products is not that of their names.
/// Buying a goal's own product with the goal's options always fulfils the goal.
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
    let generator = Generator::new(seed, n_products);
    let mut data = RawData {
        items: Vec::with_capacity(n_products),
        instructions: IndexMap::with_capacity(n_products),
        human: IndexMap::with_capacity(n_products),
    };
    for place in 0..n_products {
        let listing = generator.listing(place, true);
        let asin = listing.item.asin.clone();
        data.instructions.insert(asin.clone(), listing.synthetic);
        data.human.insert(asin, listing.human);
        data.items.push(listing.item);
    }
    data
}

/// Writes the shop of [`generate()`] into `dir` as [`RawData::write_dir`] does, but one product after the
/// other, so that a shop of any size needs no more room than its order. Only the first `n_instructed`
/// products have instructions by people: the original's have them for few of its million.
///
/// # Errors
/// If a file is there already, or cannot be written.
///
/// # Panics
/// As [`generate()`].
pub fn write_generated(
    seed: Seed,
    n_products: usize,
    n_instructed: usize,
    dir: &Path,
) -> Result<(), DataError> {
    let generator = Generator::new(seed, n_products);
    let mut writer = DirWriter::create(dir)?;
    for place in 0..n_products {
        let is_instructed = place < n_instructed;
        let listing = generator.listing(place, is_instructed);
        writer.item(&listing.item)?;
        writer.instruction(&listing.item.asin, &listing.synthetic)?;
        if is_instructed {
            writer.human(&listing.item.asin, &listing.human)?;
        }
    }
    writer.finish()
}

/// Makes the products of one shop, in any order.
struct Generator {
    seed: Seed,
    lexicon: Lexicon,
    names: Names,
    /// Family and member of each product, in catalog order.
    order: Vec<(u32, u8)>,
    /// Numbers of the first products of each family.
    starts: Vec<usize>,
}

impl Generator {
    fn new(seed: Seed, n_products: usize) -> Self {
        let sizes = family_sizes(n_products);
        let members =
            |(family, &size): (usize, &usize)| (0..size as u8).map(move |member| (family as u32, member));
        let mut order: Vec<_> = sizes.iter().enumerate().flat_map(members).collect();
        Dice::new(seed, Draw::Order, &[]).shuffle(&mut order);
        let starts = sizes.iter().scan(0, |next, size| Some(mem::replace(next, *next + size))).collect();
        let names = Names::new(seed, n_products);
        Self { seed, lexicon: Lexicon::new(seed), names, order, starts }
    }

    /// The product at `place` of the catalog, with instructions by people or without.
    fn listing(&self, place: usize, is_instructed: bool) -> Listing {
        let (family, member) = self.order[place];
        let (index, member) = (family as usize, member as usize);
        let end = self.starts.get(index + 1).copied().unwrap_or(self.order.len());
        let family = Family::draw(&self.lexicon, index, end - self.starts[index]);
        let asin = self.names.get(self.starts[index] + member);
        Listing::make(self.seed, &family, [index, member], asin, is_instructed)
    }
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

#[cfg(test)]
mod tests;
