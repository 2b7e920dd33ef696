//! The effect of the choice of nouns on rewards.
//!
//! A [`NounChoice`] goes through pairs of products, one required and another bought, and counts where the
//! factor `r_type` of the reward differs between our tagger and a [`NounReference`]: the nouns of a table, or
//! every alphabetic word. It measures the effect of the choice, not the quality of a tagger.

use crate::reward::nouns::{NounTable, title_nouns, title_words};
use crate::reward::{RewardBreakdown, category_steps};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use webshop_products::Product;

/// Pairs are made of this many first products: all pairs of more would take hours.
const MAX_PRODUCTS: usize = 1_000;

/// The reference for the choice of nouns.
#[derive(Clone, Debug)]
pub enum NounReference {
    /// Every alphabetic word of at least two letters.
    EveryWord,
    /// A table of titles; our choice for titles that are not in it.
    Table(NounTable),
}

/// How often the choice of nouns changes `r_type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NounChoice {
    /// The reference: `every word` or `table`.
    pub reference: &'static str,
    /// Ordered pairs of different products.
    pub n_pairs: usize,
    /// Pairs for which our choice gives the larger factor.
    pub n_larger: usize,
    /// Pairs for which our choice gives the smaller factor.
    pub n_smaller: usize,
}

impl NounChoice {
    /// Compares both choices over all ordered pairs of the first 1,000 products.
    pub fn new(products: &[Product], reference: &NounReference) -> Self {
        let products = &products[..products.len().min(MAX_PRODUCTS)];
        let [ours, theirs] = [None, Some(reference)].map(|reference| titles(products, reference));
        let kinds: Vec<(&str, BTreeSet<String>)> = products
            .iter()
            .map(|product| (&*product.query, category_steps(&product.product_category)))
            .collect();
        let mut choice = Self { reference: name(reference), n_pairs: 0, n_larger: 0, n_smaller: 0 };
        for required in 0..products.len() {
            for bought in (0..products.len()).filter(|&bought| bought != required) {
                let (a, b) = (&kinds[required], &kinds[bought]);
                let matches = (a.0 == b.0, a.1.intersection(&b.1).count() >= 2);
                let r_type = |titles: &[Title]| r_type(matches, &titles[required], &titles[bought]);
                let (ours, theirs) = (r_type(&ours), r_type(&theirs));
                choice.n_pairs += 1;
                choice.n_larger += usize::from(ours > theirs);
                choice.n_smaller += usize::from(ours < theirs);
            }
        }
        choice
    }
}

impl fmt::Display for NounChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |n: usize| 100.0 * n as f64 / self.n_pairs.max(1) as f64;
        write!(
            f,
            "nouns, compared with {}: of {} pairs of products, r_type is larger for {:.2} % and smaller for {:.2} %",
            match self.reference {
                "table" => "the table",
                reference => reference,
            },
            self.n_pairs,
            percent(self.n_larger),
            percent(self.n_smaller)
        )
    }
}

fn name(reference: &NounReference) -> &'static str {
    match reference {
        NounReference::EveryWord => "every word",
        NounReference::Table(_) => "table",
    }
}

/// The nouns of one title, by number: distinct ones in order, and how many with repeats.
struct Title {
    distinct: Vec<usize>,
    n_nouns: usize,
}

/// The titles by a reference, or by our tagger. Nouns are numbered, since a million pairs compare them.
fn titles(products: &[Product], reference: Option<&NounReference>) -> Vec<Title> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let titles = products.iter().map(|product| {
        let nouns = match reference {
            None => title_nouns(&product.title),
            Some(NounReference::EveryWord) => title_words(&product.title).collect(),
            Some(NounReference::Table(table)) => table.nouns(&product.title),
        };
        let n_nouns = nouns.len();
        let distinct: BTreeSet<usize> = nouns
            .into_iter()
            .map(|noun| {
                let next = numbers.len();
                *numbers.entry(noun).or_insert(next)
            })
            .collect();
        Title { distinct: distinct.into_iter().collect(), n_nouns }
    });
    titles.collect()
}

fn r_type((query_match, category_match): (bool, bool), required: &Title, bought: &Title) -> f64 {
    let is_shared = |noun: &&usize| bought.distinct.binary_search(noun).is_ok();
    let shared = required.distinct.iter().filter(is_shared).count();
    let counts = RewardBreakdown {
        query_match,
        category_match,
        shared_nouns: shared as u32,
        goal_nouns: required.n_nouns as u32,
        attribute_matches: 0,
        n_attributes: 0,
        option_matches: 0,
        n_options: 0,
        price_ok: true,
    };
    counts.r_type()
}
