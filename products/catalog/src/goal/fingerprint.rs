//! Fingerprints of a goal set: one over everything, and one digest for each part.
//!
//! The fingerprint is stored with every result: two results are comparable only if it is equal. If it
//! differs, the [`GoalDigests`] say in which part. Reward rules are not covered; their version is stored
//! beside the fingerprint.

use std::array;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

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
    hasher.add_list(catalog.products());
    hasher.add_list(goals);
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

/// Elements of a list that one thread serializes at a time, and how many threads do.
const PIECE: usize = 4_096;
const N_SERIALIZERS: usize = 2;

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
        serde_json::to_writer(&mut self.0, value).expect(ALL_VALID);
    }

    /// Adds a list, which may have a million elements: other threads serialize it piece by piece, this one hashes.
    fn add_list<T: Serialize + Sync>(&mut self, values: &[T]) {
        if values.len() <= PIECE {
            return self.add(&values);
        }
        let json_of = |(number, piece): (usize, &[T])| {
            let mut json = serde_json::to_vec(piece).expect(ALL_VALID);
            json[0] = if number == 0 { b'[' } else { b',' };
            json.pop();
            json
        };
        thread::scope(|scope| {
            let serializers: [Receiver<Vec<u8>>; N_SERIALIZERS] = array::from_fn(|first| {
                let (sender, receiver) = sync_channel(1);
                let pieces = values.chunks(PIECE).enumerate().skip(first).step_by(N_SERIALIZERS);
                scope.spawn(move || pieces.map(json_of).try_for_each(|json| sender.send(json)));
                receiver
            });
            let in_turn = serializers.iter().cycle().map_while(|serializer| serializer.recv().ok());
            in_turn.for_each(|json| self.0.write_all(&json).expect(ALL_VALID));
        });
        self.0.write_all(b"]").expect(ALL_VALID);
    }
}

const ALL_VALID: &str = "hashing accepts every byte, and these types are all valid JSON";

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
    fn a_long_list_has_the_digest_of_its_json() {
        for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE - 1, 5 * PIECE] {
            let list: Vec<usize> = (0..length).collect();
            let [mut whole, mut in_pieces] = [Hasher::new(), Hasher::new()];
            whole.add(&list);
            in_pieces.add_list(&list);
            assert_eq!(in_pieces.finish(), whole.finish(), "{length}");
        }
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
