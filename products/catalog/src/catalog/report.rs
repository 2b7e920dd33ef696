//! Statistics of a catalog.
//!
//! A [`CatalogReport`] counts what makes a shop easy or hard: kinds, options, prices, words, near duplicates.
//! It does not look at search.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::catalog::price::Cents;
use crate::catalog::product::{Product, ProductIdx};
use crate::goal::set::GoalSet;
use crate::goal::split::Split;
use crate::goal::split_rule::SplitRule;
use crate::goal::{Goal, GoalStyle};

/// A goal is confusable if its product has at least this many near-duplicates.
const CONFUSABLE: usize = 3;

/// Statistics of a catalog and its goals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogReport {
    /// Products in the catalog.
    pub n_products: usize,
    /// Products per department, in alphabetical order.
    pub departments: BTreeMap<String, usize>,
    /// Different queries, that is kinds of products.
    pub n_kinds: usize,
    /// Products with no option group, one, two, and more.
    pub n_option_groups: [usize; 4],
    /// Option values that occur in groups of different names.
    pub n_shared_values: usize,
    /// Products whose tag shows two different prices.
    pub n_price_ranges: usize,
    /// Prices charged, in cents: minimum, lower quartile, median, upper quartile, maximum. Zero for an empty catalog.
    pub prices: [Cents; 5],
    /// Human goals.
    pub n_human_goals: usize,
    /// Synthetic goals.
    pub n_synthetic_goals: usize,
    /// The split rule.
    pub split_rule: SplitRule,
    /// Goals for training, validation and testing.
    pub splits: [usize; 3],
    /// Goals whose product has at least three near-duplicates: products of the same query whose title
    /// begins with the same word and shares at least half of all words.
    pub n_confusable_goals: usize,
    /// Different lower-case words in products and instructions; price limits do not count.
    pub n_words: usize,
    /// The goal set's fingerprint.
    pub fingerprint: String,
}

impl CatalogReport {
    /// The statistics of `catalog` and its `goals`.
    pub fn new(catalog: &Catalog, goals: &GoalSet) -> Self {
        let products = catalog.products();
        let mut departments = BTreeMap::new();
        let mut n_option_groups = [0; 4];
        for product in products {
            *departments.entry(product.department.to_string()).or_default() += 1;
            n_option_groups[product.options.len().min(3)] += 1;
        }
        let with_style = |style| goals.goals().iter().filter(|goal| goal.style == style).count();
        let n_near = near_duplicates(products);
        let confusable = |goal: &&Goal| n_near[goal.product.as_usize()] >= CONFUSABLE;
        Self {
            n_products: products.len(),
            departments,
            n_kinds: products.iter().map(|product| &product.query).collect::<BTreeSet<_>>().len(),
            n_option_groups,
            n_shared_values: shared_values(products),
            n_price_ranges: products.iter().filter(|product| product.price.low < product.price.high).count(),
            prices: quartiles(products),
            n_human_goals: with_style(GoalStyle::Human),
            n_synthetic_goals: with_style(GoalStyle::Synthetic),
            split_rule: goals.split_rule(),
            splits: [Split::Train, Split::Validation, Split::Test].map(|split| goals.split(split).len()),
            n_confusable_goals: goals.goals().iter().filter(confusable).count(),
            n_words: words(products, goals),
            fingerprint: goals.fingerprint().into(),
        }
    }
}

impl fmt::Display for CatalogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let departments: Vec<_> =
            self.departments.iter().map(|(name, n_products)| format!("{name} {n_products}")).collect();
        let [none, one, two, more] = self.n_option_groups;
        let [least, lower, median, upper, most] = self.prices;
        let n_goals = self.n_human_goals + self.n_synthetic_goals;
        let [train, validation, test] = self.splits;
        let percent = 100.0 * self.n_confusable_goals as f64 / n_goals.max(1) as f64;
        writeln!(
            f,
            "products      {} of {} kinds ({})",
            self.n_products,
            self.n_kinds,
            departments.join(", ")
        )?;
        writeln!(f, "option groups none {none}, one {one}, two {two}, more {more}")?;
        writeln!(f, "shared values {} in groups of different names", self.n_shared_values)?;
        writeln!(
            f,
            "prices        {least} to {most}, quartiles {lower}, {median}, {upper}; {} ranges",
            self.n_price_ranges
        )?;
        writeln!(
            f,
            "goals         {n_goals} ({} human, {} synthetic)",
            self.n_human_goals, self.n_synthetic_goals
        )?;
        let leaky = if self.split_rule.is_leaky() { ", leaky: test goals are trained on" } else { "" };
        writeln!(
            f,
            "splits        train {train}, validation {validation}, test {test} ({}{leaky})",
            self.split_rule
        )?;
        writeln!(f, "confusable    {percent:.1} % of goals have {CONFUSABLE} or more near-duplicates")?;
        writeln!(f, "words         {}", self.n_words)?;
        write!(f, "fingerprint   {}", self.fingerprint)
    }
}

/// The number of near-duplicates of each product.
fn near_duplicates(products: &[Product]) -> Vec<usize> {
    let titles: Vec<BTreeSet<String>> =
        products.iter().map(|product| split_words(&product.title).collect()).collect();
    let mut alike: BTreeMap<(&str, String), Vec<ProductIdx>> = BTreeMap::new();
    for (at, product) in products.iter().enumerate() {
        let first = split_words(&product.title).next().unwrap_or_default();
        alike.entry((&product.query, first)).or_default().push(ProductIdx(at as u32));
    }
    let mut n_near = vec![0; products.len()];
    for group in alike.values() {
        for (at, one) in group.iter().enumerate() {
            for other in &group[at + 1..] {
                let (a, b) = (&titles[one.as_usize()], &titles[other.as_usize()]);
                if 2 * a.intersection(b).count() >= a.union(b).count() {
                    n_near[one.as_usize()] += 1;
                    n_near[other.as_usize()] += 1;
                }
            }
        }
    }
    n_near
}

fn shared_values(products: &[Product]) -> usize {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in products.iter().flat_map(|product| &product.options) {
        for value in &group.values {
            names.entry(&value.text).or_default().insert(&group.name);
        }
    }
    names.values().filter(|names| names.len() > 1).count()
}

fn quartiles(products: &[Product]) -> [Cents; 5] {
    let mut paid: Vec<_> = products.iter().map(|product| product.price.paid).collect();
    paid.sort_unstable();
    [0, 1, 2, 3, 4]
        .map(|quarter| paid.get(paid.len().saturating_sub(1) * quarter / 4).copied().unwrap_or_default())
}

fn words(products: &[Product], goals: &GoalSet) -> usize {
    let mut words = BTreeSet::new();
    for product in products {
        let lines = [&*product.title, &*product.description, &*product.query, &*product.product_category];
        let bullets = product.bullets.iter().map(|bullet| &**bullet);
        let attributes = product.attributes.iter().map(|attribute| &**attribute);
        let groups = product.options.iter();
        let options =
            groups.flat_map(|group| group.values.iter().map(|value| &*value.text).chain([&*group.name]));
        words.extend(lines.into_iter().chain(bullets).chain(attributes).chain(options).flat_map(split_words));
    }
    for goal in goals.goals() {
        let sentence = goal.instruction.split(", and price lower than ").next().unwrap_or_default();
        words.extend(split_words(sentence));
    }
    words.len()
}

/// Runs of letters, digits and apostrophes, in lower case.
pub(super) fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GoalKind, RawData, RawItem, Seed};

    fn catalog(titles: &[&str]) -> Catalog {
        let item = |(at, title): (usize, &&str)| RawItem {
            asin: format!("B{at}"),
            name: (*title).into(),
            query: "lamps".into(),
            images: vec!["a".into()],
            ..RawItem::default()
        };
        let items = titles.iter().enumerate().map(item).collect();
        Catalog::from_raw(&RawData { items, ..RawData::default() }, Seed(0)).unwrap()
    }

    #[test]
    fn near_duplicates_share_their_first_word_and_half_of_all() {
        // Of "acme red oak lamp" and "acme blue oak lamp" three of five words are shared, of the
        // first and the third one of seven; the fourth begins otherwise.
        let catalog = catalog(&[
            "Acme Red Oak Lamp",
            "Acme Blue Oak Lamp",
            "Acme Small Desk Light",
            "Red Oak Lamp, Acme",
        ]);
        assert_eq!(near_duplicates(catalog.products()), [1, 1, 0, 0]);
    }

    #[test]
    fn an_empty_catalog_has_a_report() {
        let (data, catalog) = (RawData::default(), catalog(&[]));
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let report = CatalogReport::new(&catalog, &goals);
        assert_eq!((report.n_products, report.prices), (0, [Cents(0); 5]));
        assert!(report.to_string().contains("0.0 % of goals"));
    }
}
