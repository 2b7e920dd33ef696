//! What makes one catalog harder than another: its options, titles, texts, words, and what goals want.
//!
//! [`CatalogStatistics`] are numbers that do not depend on the size of a catalog, or only slowly, so that a
//! generated catalog can be held against the original's. A [`Spread`] is a mean with percentiles. They do not
//! look at search; [`crate::CatalogReport`] counts what a single catalog holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::catalog::product::{Product, ProductIdx};
use crate::catalog::report::split_words;
use crate::goal::set::GoalSet;
use crate::goal::{Goal, GoalStyle};

/// Mean and percentiles of some numbers; all zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The tenth percentile: the number at a tenth of the sorted list, rounded down. So are the others.
    pub p10: usize,
    /// The median.
    pub p50: usize,
    /// The ninetieth percentile.
    pub p90: usize,
    /// The greatest number.
    pub max: usize,
}

impl Spread {
    /// ```
    /// let spread: webshop_products::Spread = [3, 1, 2, 10].into_iter().collect();
    /// assert_eq!((spread.mean, spread.p50, spread.max), (4.0, 3, 10));
    /// ```
    fn of(mut numbers: Vec<usize>) -> Self {
        numbers.sort_unstable();
        let at = |percent: usize| numbers.get(numbers.len() * percent / 100).copied().unwrap_or_default();
        Self {
            mean: mean(numbers.iter().map(|&number| number as f64)),
            p10: at(10),
            p50: at(50),
            p90: at(90),
            max: numbers.last().copied().unwrap_or_default(),
        }
    }
}

impl FromIterator<usize> for Spread {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        Self::of(numbers.into_iter().collect())
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ({}/{}/{}/{})", self.mean, self.p10, self.p50, self.p90, self.max)
    }
}

/// Statistics of a catalog and its goals that can be compared with those of another. Shares are 0 to 1, and
/// zero where there is nothing to share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogStatistics {
    /// Products in the catalog.
    pub n_products: usize,
    /// Values of an option group.
    pub group_values: Spread,
    /// Mean, over goals that require options, of the chance that one value drawn from each group of the
    /// goal's product is the required one everywhere.
    pub options_by_chance: f64,
    /// Mean number of option groups of a product.
    pub n_groups: f64,
    /// Share of products without an option group.
    pub without_options: f64,
    /// Share of option values that contain another value of their group.
    pub containing_values: f64,
    /// Share of option values with a character that is neither a letter nor a space.
    pub marked_values: f64,
    /// Share of required attributes, each counted once a product, that are literally in the product's title.
    pub attributes_in_title: f64,
    /// The same for those not in the title but in the bullets.
    pub attributes_in_bullets: f64,
    /// The same for those in neither, whose words are all somewhere in title, bullets and description.
    pub attributes_scattered: f64,
    /// Mean number of attributes of a human goal.
    pub human_attributes: f64,
    /// Mean number of attributes of a synthetic goal.
    pub synthetic_attributes: f64,
    /// Words of a title.
    pub title_words: Spread,
    /// Words of all bullets of a product.
    pub bullet_words: Spread,
    /// Words of a description.
    pub description_words: Spread,
    /// Share of products whose title another product has too.
    pub shared_titles: f64,
    /// Different queries.
    pub n_kinds: usize,
    /// Mean number of products of a query.
    pub kind_products: f64,
    /// Different lower-case words in titles and option values.
    pub n_word_types: usize,
    /// Share of these that occur once.
    pub words_seen_once: f64,
    /// Shares of human goals whose instruction has the product's query, of their attributes, and of their
    /// options, literally.
    pub said_literally: [f64; 3],
    /// Mean of the price limit over the price charged, of human goals with a limit.
    pub human_looseness: f64,
    /// The same of synthetic goals.
    pub synthetic_looseness: f64,
    /// Goals of a product that has any.
    pub product_goals: Spread,
}

impl CatalogStatistics {
    /// The statistics of `catalog` and its `goals`.
    pub fn new(catalog: &Catalog, goals: &GoalSet) -> Self {
        let products = catalog.products();
        let groups = || products.iter().flat_map(|product| &product.options);
        let of_style = |style| goals.goals().iter().filter(move |goal| goal.style == style);
        let n_attributes = |style| mean(of_style(style).map(|goal| goal.attributes.len() as f64));
        let looseness = |style| mean(of_style(style).filter_map(|goal| looseness(catalog, goal)));
        let kinds: BTreeSet<&str> = products.iter().map(|product| &*product.query).collect();
        let [attributes_in_title, attributes_in_bullets, attributes_scattered] =
            places_of_required_attributes(catalog, goals.goals());
        let (n_word_types, words_seen_once) = word_types(products);
        Self {
            n_products: products.len(),
            group_values: groups().map(|group| group.values.len()).collect(),
            options_by_chance: options_by_chance(catalog, goals.goals()),
            n_groups: mean(products.iter().map(|product| product.options.len() as f64)),
            without_options: share(products, |product| product.options.is_empty()),
            containing_values: containing_values(products),
            marked_values: share_of(
                groups().flat_map(|group| &group.values).map(|value| is_marked(&value.text)),
            ),
            attributes_in_title,
            attributes_in_bullets,
            attributes_scattered,
            human_attributes: n_attributes(GoalStyle::Human),
            synthetic_attributes: n_attributes(GoalStyle::Synthetic),
            title_words: products.iter().map(|product| count_words(&product.title)).collect(),
            bullet_words: products
                .iter()
                .map(|product| product.bullets.iter().map(|bullet| count_words(bullet)).sum())
                .collect(),
            description_words: products.iter().map(|product| count_words(&product.description)).collect(),
            shared_titles: shared_titles(products),
            n_kinds: kinds.len(),
            kind_products: products.len() as f64 / kinds.len().max(1) as f64,
            n_word_types,
            words_seen_once,
            said_literally: said_literally(of_style(GoalStyle::Human)),
            human_looseness: looseness(GoalStyle::Human),
            synthetic_looseness: looseness(GoalStyle::Synthetic),
            product_goals: product_goals(goals.goals()),
        }
    }

    /// The lines of a table: what is measured, and the number as text.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let [kind, attribute, option] = self.said_literally.map(|share| format!("{:.0}", 100.0 * share));
        vec![
            ("products", self.n_products.to_string()),
            ("values of an option group, mean (p10/p50/p90/max)", self.group_values.to_string()),
            ("chance to choose all options rightly", format!("{:.2}", self.options_by_chance)),
            ("option groups of a product", format!("{:.1}", self.n_groups)),
            ("products without options", percent(self.without_options)),
            ("values that contain another of their group", percent(self.containing_values)),
            ("values with punctuation or digits", percent(self.marked_values)),
            ("required attributes in the title", percent(self.attributes_in_title)),
            ("in the bullets only", percent(self.attributes_in_bullets)),
            ("scattered", percent(self.attributes_scattered)),
            ("attributes of a human goal", format!("{:.1}", self.human_attributes)),
            ("attributes of a synthetic goal", format!("{:.1}", self.synthetic_attributes)),
            ("words of a title", self.title_words.to_string()),
            ("words of all bullets", self.bullet_words.to_string()),
            ("words of a description", self.description_words.to_string()),
            ("products that share their title", percent(self.shared_titles)),
            ("kinds (queries)", self.n_kinds.to_string()),
            ("products of a kind", format!("{:.1}", self.kind_products)),
            ("word types in titles and options", self.n_word_types.to_string()),
            ("of these seen once", percent(self.words_seen_once)),
            (
                "said literally by human goals: kind/attribute/option",
                format!("{kind}/{attribute}/{option} %"),
            ),
            ("limit ÷ price, human goals", format!("{:.1}", self.human_looseness)),
            ("limit ÷ price, synthetic goals", format!("{:.1}", self.synthetic_looseness)),
            ("goals of a product that has any", self.product_goals.to_string()),
        ]
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = numbers.fold((0.0, 0_usize), |(sum, n), number| (sum + number, n + 1));
    sum / n.max(1) as f64
}

fn share_of(facts: impl Iterator<Item = bool>) -> f64 {
    mean(facts.map(|fact| f64::from(u8::from(fact))))
}

fn share(products: &[Product], holds: impl Fn(&Product) -> bool) -> f64 {
    share_of(products.iter().map(holds))
}

fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn is_marked(value: &str) -> bool {
    value.chars().any(|c| !c.is_alphabetic() && c != ' ')
}

fn options_by_chance(catalog: &Catalog, goals: &[Goal]) -> f64 {
    let chance = |goal: &Goal| {
        let groups = catalog.get(goal.product).options.iter();
        groups.map(|group| 1.0 / group.values.len().max(1) as f64).product()
    };
    mean(goals.iter().filter(|goal| !goal.options.is_empty()).map(chance))
}

fn containing_values(products: &[Product]) -> f64 {
    let groups = products.iter().flat_map(|product| &product.options);
    share_of(groups.flat_map(|group| {
        let contains =
            |value: &str, other: &str| value != other && !other.is_empty() && value.contains(other);
        group
            .values
            .iter()
            .map(move |value| group.values.iter().any(|other| contains(&value.text, &other.text)))
    }))
}

/// Shares of required attributes in the title, else in the bullets, else scattered.
fn places_of_required_attributes(catalog: &Catalog, goals: &[Goal]) -> [f64; 3] {
    let required: BTreeSet<(ProductIdx, &Arc<str>)> = goals
        .iter()
        .flat_map(|goal| goal.attributes.iter().map(|attribute| (goal.product, attribute)))
        .collect();
    let mut counts = [0_usize; 3];
    for &(product, attribute) in &required {
        let product = catalog.get(product);
        let text = attribute.to_lowercase();
        let [title, bullets, description] =
            [&*product.title, &product.bullets.join(" "), &*product.description].map(str::to_lowercase);
        let is_somewhere =
            |word: &str| [&title, &bullets, &description].iter().any(|text| text.contains(word));
        let place = match () {
            () if title.contains(&text) => 0,
            () if bullets.contains(&text) => 1,
            () if text.split_whitespace().all(is_somewhere) => 2,
            () => continue,
        };
        counts[place] += 1;
    }
    counts.map(|count| count as f64 / required.len().max(1) as f64)
}

fn shared_titles(products: &[Product]) -> f64 {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for product in products {
        *counts.entry(&product.title).or_default() += 1;
    }
    share(products, |product| counts[&*product.title] > 1)
}

/// The number of word types in titles and option values, and the share of those that occur once.
fn word_types(products: &[Product]) -> (usize, f64) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for product in products {
        let values = product.options.iter().flat_map(|group| &group.values);
        for text in values.map(|value| &value.text).chain([&product.title]) {
            for word in split_words(text) {
                *counts.entry(word).or_default() += 1;
            }
        }
    }
    (counts.len(), share_of(counts.values().map(|&count| count == 1)))
}

fn said_literally<'a>(goals: impl Iterator<Item = &'a Goal>) -> [f64; 3] {
    let [mut kinds, mut attributes, mut options] = [const { Vec::new() }; 3];
    for goal in goals {
        let instruction = goal.instruction.to_lowercase();
        let has = |text: &str| instruction.contains(&text.to_lowercase());
        kinds.push(has(&goal.query));
        attributes.extend(goal.attributes.iter().map(|attribute| has(attribute)));
        options.extend(goal.options.iter().map(|option| has(&option.value)));
    }
    [kinds, attributes, options].map(|said| share_of(said.into_iter()))
}

fn looseness(catalog: &Catalog, goal: &Goal) -> Option<f64> {
    let paid = catalog.get(goal.product).price.paid.dollars();
    let limit = goal.price_limit?.dollars();
    (paid > 0.0).then(|| limit / paid)
}

fn product_goals(goals: &[Goal]) -> Spread {
    let mut counts: BTreeMap<ProductIdx, usize> = BTreeMap::new();
    for goal in goals {
        *counts.entry(goal.product).or_default() += 1;
    }
    counts.into_values().collect()
}

#[cfg(test)]
mod tests;
