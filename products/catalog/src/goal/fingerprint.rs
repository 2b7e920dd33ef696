//! One short text that tells two goal sets apart, and a few shorter ones that tell in what.
//!
//! The fingerprint travels with every result: two numbers may be compared only if theirs are equal. Where they are
//! not, the [`GoalDigests`] say which part differs. What a purchase is worth is no part of a goal set; its version is
//! named beside the fingerprint by whoever judges.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::Catalog;
use crate::goal::{Goal, GoalSet};
use crate::catalog::product::Product;
use crate::goal::split::{Split, Splits};

/// Raised whenever equal data begins to mean something else.
const VERSION: &str = "webshop/goals/1";

/// SHA-256, in hexadecimal, over the version and the JSON of every product, goal and split.
pub(crate) fn of(catalog: &Catalog, goals: &[Goal], splits: &Splits) -> String {
    let mut hasher = Hasher::new();
    hasher.add(&catalog.products());
    hasher.add(&goals);
    for split in PARTS {
        hasher.add(&splits.get(split));
    }
    hasher.finish()
}

const PARTS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

/// Hexadecimal digits of a part's digest: enough to tell two apart, few enough to read.
const DIGITS: usize = 16;

/// A digest of each part that a [`GoalSet`]'s fingerprint covers, 16 hexadecimal digits each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalDigests {
    /// What is sold, but for what a purchase costs.
    pub catalog: String,
    /// What purchases cost.
    pub prices: String,
    /// What is wanted, price limits included.
    pub goals: String,
    /// Which goal is in which part.
    pub splits: String,
}

impl GoalDigests {
    /// The digests of `goals`, which were made for `catalog`.
    pub fn new(catalog: &Catalog, goals: &GoalSet) -> Self {
        let products = catalog.products();
        Self {
            catalog: digest(products.iter().map(without_what_is_paid)),
            prices: digest(products.iter().map(|product| product.price.paid)),
            goals: digest(goals.goals()),
            splits: digest(PARTS.map(|split| goals.split(split))),
        }
    }
}

fn digest<T: Serialize>(values: impl IntoIterator<Item = T>) -> String {
    let mut hasher = Hasher::new();
    values.into_iter().for_each(|value| hasher.add(&value));
    let mut hex = hasher.finish();
    hex.truncate(DIGITS);
    hex
}

/// Everything else about a product; a new field has to be given its place here.
fn without_what_is_paid(product: &Product) -> impl Serialize + '_ {
    let Product {
        id,
        title,
        description,
        bullets,
        attributes,
        department,
        query,
        product_category,
        options,
        price,
        image,
    } = product;
    let texts = (title, description, bullets, attributes, image);
    (id, texts, department, query, product_category, options, &price.tag)
}

struct Hasher(Sha256);

impl Hasher {
    fn new() -> Self {
        Self(Sha256::new_with_prefix(VERSION))
    }

    fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn add(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut *self, value)
            .expect("hashing accepts every byte, and these types are all valid JSON");
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GoalKind, Seed, SplitRule, generate};

    fn digests(products: usize, prices: u64, limits: u64, rule: SplitRule) -> GoalDigests {
        let data = generate(Seed(0), products);
        let catalog = Catalog::from_raw(&data, Seed(prices)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(limits)).unwrap();
        GoalDigests::new(&catalog, &goals.split_by(rule, &catalog).unwrap())
    }

    /// Which of the four parts differ between the two.
    fn differing(one: &GoalDigests, other: &GoalDigests) -> [bool; 4] {
        let parts = |of: &GoalDigests| [&of.catalog, &of.prices, &of.goals, &of.splits].map(String::clone);
        let (one, other) = (parts(one), parts(other));
        [0, 1, 2, 3].map(|part| one[part] != other[part])
    }

    #[test]
    fn a_digest_changes_with_its_part_only() {
        let first = digests(100, 0, 0, SplitRule::ByProduct);
        assert_eq!(first.catalog.len(), DIGITS);
        assert_eq!(first, digests(100, 0, 0, SplitRule::ByProduct));
        let verl_agent = digests(100, 0, 0, SplitRule::VerlAgent);
        assert_eq!(differing(&first, &verl_agent), [false, false, false, true]);
        let other_limits = digests(100, 0, 1, SplitRule::ByProduct);
        assert_eq!(differing(&first, &other_limits), [false, false, true, false]);
        // A limit is drawn above what is paid, so other prices can make other goals.
        let other_prices = digests(100, 1, 0, SplitRule::ByProduct);
        assert_eq!(differing(&first, &other_prices)[..2], [false, true]);
        assert!(differing(&first, &digests(99, 0, 0, SplitRule::ByProduct))[0]);
    }

    #[test]
    fn too_few_goals_are_refused_by_name() {
        let data = generate(Seed(0), 20);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let n_goals = goals.goals().len();
        let message = goals.split_by(SplitRule::Paper, &catalog).unwrap_err().to_string();
        let expected = format!("the split rule `paper` needs at least 1501 goals, and these are {n_goals};");
        assert!(message.starts_with(&expected), "{message}");
    }
}
