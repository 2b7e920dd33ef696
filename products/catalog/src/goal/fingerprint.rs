//! Fingerprints of a goal set: one over everything, and one digest for each part.
//!
//! The fingerprint is stored with every result: two results are comparable only if it is equal. If it
//! differs, the [`GoalDigests`] say in which part. Reward rules are not covered; their version is stored
//! beside the fingerprint.

use std::io::{self, BufWriter, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::Catalog;
use crate::catalog::product::Product;
use crate::digest::hex;
use crate::goal::Goal;
use crate::goal::split::{Split, Splits};

/// Changes when equal data gets another meaning.
const VERSION: &str = "webshop/goals/1";

/// SHA-256, in hexadecimal, over the version and the JSON of every product, goal and split.
pub(crate) fn fingerprint(catalog: &Catalog, goals: &[Goal], splits: &Splits) -> String {
    let mut hasher = Hasher::new();
    hasher.add(&catalog.products());
    hasher.add(&goals);
    for split in PARTS {
        hasher.add(&splits.get(split));
    }
    hasher.finish()
}

/// The splits that are hashed, in this order.
const PARTS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

/// Hexadecimal digits of a part's digest.
const DIGITS: usize = 16;

/// A digest of each part that a [`crate::GoalSet`]'s fingerprint covers, 16 hexadecimal digits each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalDigests {
    /// The products without the prices charged.
    pub catalog: String,
    /// The prices charged.
    pub prices: String,
    /// The goals, price limits included.
    pub goals: String,
    /// The goal ids of each split.
    pub splits: String,
}

impl GoalDigests {
    /// The digests of `goals` and their `splits`; the goals were made for `catalog`.
    pub(crate) fn new(catalog: &Catalog, goals: &[Goal], splits: &Splits) -> Self {
        let products = catalog.products();
        Self {
            catalog: digest(products.iter().map(without_charge)),
            prices: digest(products.iter().map(|product| product.price.paid)),
            goals: digest(goals),
            splits: digest(PARTS.map(|split| splits.get(split))),
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

/// A product without the price charged; the pattern is exhaustive so that a new field is not forgotten.
fn without_charge(product: &Product) -> impl Serialize + '_ {
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

/// Hashes JSON, which comes in pieces of a few bytes, in large pieces.
struct Hasher(BufWriter<Digester>);

impl Hasher {
    fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, Digester(Sha256::new_with_prefix(VERSION))))
    }

    fn finish(self) -> String {
        let Digester(digest) =
            self.0.into_inner().unwrap_or_else(|_| unreachable!("hashing accepts every byte"));
        hex(&digest.finalize())
    }

    fn add(&mut self, value: &impl Serialize) {
        serde_json::to_writer(&mut self.0, value)
            .expect("hashing accepts every byte, and these types are all valid JSON");
    }
}

/// SHA-256 as a writer.
struct Digester(Sha256);

impl Write for Digester {
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
    use crate::{GoalKind, GoalSet, Seed, SplitRule, generate};

    fn digests(products: usize, prices: u64, limits: u64, rule: SplitRule) -> GoalDigests {
        let data = generate(Seed(0), products);
        let catalog = Catalog::from_raw(&data, Seed(prices)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(limits)).unwrap();
        goals.split_by(rule, &catalog).unwrap().digests(&catalog)
    }

    /// Which of catalog, prices, goals and splits differ.
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
        // A limit is drawn above the price charged, so other prices can make other goals.
        let other_prices = digests(100, 1, 0, SplitRule::ByProduct);
        assert_eq!(differing(&first, &other_prices)[..2], [false, true]);
        assert!(differing(&first, &digests(99, 0, 0, SplitRule::ByProduct))[0]);
    }

    #[test]
    fn a_split_rule_refuses_too_few_goals() {
        let data = generate(Seed(0), 20);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let n_goals = goals.goals().len();
        let message = goals.split_by(SplitRule::Paper, &catalog).unwrap_err().to_string();
        let expected = format!("the split rule `paper` needs at least 1501 goals, but there are {n_goals};");
        assert!(message.starts_with(&expected), "{message}");
    }
}
