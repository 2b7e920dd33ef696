//! Training, validation and test goals.
//!
//! A [`Split`] names a subset of the goals; a [`SplitRule`] assigns goals to them. The subsets are disjoint
//! by product under [`SplitRule::ByFamily`] and [`SplitRule::ByProduct`] only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::product::ProductIdx;
use crate::goal::families::{Family, families};
use crate::goal::split_rule::{SplitRule, paper, verl_agent};
use crate::goal::{Goal, GoalId};

/// Hashed with the ASIN to rank products, independently of the run's seed: a test product stays a test
/// product.
const LABEL: &[u8] = b"webshop/split/1";

/// Tenths of the products for training and validation; the rest is for testing.
const TRAIN: usize = 6;
const VALIDATION: usize = 1;

/// A subset of the goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// For training; under [`SplitRule::ByFamily`] the goals of about 60 % of the products with goals.
    Train,
    /// For choosing settings; under [`SplitRule::ByFamily`] about 10 %.
    Validation,
    /// For reporting; under [`SplitRule::ByFamily`] about 30 %.
    Test,
    /// All goals.
    All,
}

impl Split {
    const NAMES: [(Self, &str); 4] =
        [(Self::Train, "train"), (Self::Validation, "validation"), (Self::Test, "test"), (Self::All, "all")];
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().find(|(split, _)| split == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

/// The text names no [`Split`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown split `{0}`; use `train`, `validation`, `test` or `all`")]
pub struct UnknownSplit(String);

impl FromStr for Split {
    type Err = UnknownSplit;

    /// ```
    /// use webshop_products::Split;
    ///
    /// assert_eq!("test".parse(), Ok(Split::Test));
    /// assert!("tset".parse::<Split>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, UnknownSplit> {
        let named = Self::NAMES.iter().find(|(_, name)| *name == text);
        named.map(|(split, _)| *split).ok_or_else(|| UnknownSplit(text.into()))
    }
}

/// The goal ids of every split, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splits {
    train: Vec<GoalId>,
    validation: Vec<GoalId>,
    test: Vec<GoalId>,
    all: Vec<GoalId>,
}

impl Splits {
    /// Splits `goals` by `rule`.
    ///
    /// # Panics
    /// Below [`SplitRule::min_goals`].
    pub(crate) fn by(rule: SplitRule, goals: &[Goal]) -> Self {
        let [train, validation, test] = match rule {
            SplitRule::ByFamily => return Self::ranked(goals, families(goals)),
            SplitRule::ByProduct => return Self::ranked(goals, products(goals)),
            SplitRule::Paper => paper(goals.len()),
            SplitRule::VerlAgent => verl_agent(goals.len()),
        };
        Self { train, validation, test, all: goals.iter().map(|goal| goal.id).collect() }
    }

    /// Ranks groups of products by SHA-256 of [`LABEL`] and their least ASIN, and cuts the ranking where 60 %
    /// and 70 % of the products, rounded, are reached.
    fn ranked(goals: &[Goal], groups: Vec<Family<'_>>) -> Self {
        let n_products: usize = groups.iter().map(BTreeMap::len).sum();
        let tenths = |n: usize| (n_products * n + 5) / 10;
        let (train_end, validation_end) = (tenths(TRAIN), tenths(TRAIN + VALIDATION));
        let digest = |group: &Family<'_>| {
            let least = group.values().min().copied().unwrap_or_default();
            Sha256::new_with_prefix(LABEL).chain_update(least).finalize()
        };
        let mut ranking: Vec<_> = groups.into_iter().map(|group| (digest(&group), group)).collect();
        ranking.sort_unstable();
        let mut sides: BTreeMap<ProductIdx, Split> = BTreeMap::new();
        for (_, group) in ranking {
            let side = match sides.len() {
                rank if rank < train_end => Split::Train,
                rank if rank < validation_end => Split::Validation,
                _ => Split::Test,
            };
            sides.extend(group.into_keys().map(|product| (product, side)));
        }
        let mut splits = Self::default();
        for goal in goals {
            splits.all.push(goal.id);
            match sides[&goal.product] {
                Split::Train => splits.train.push(goal.id),
                Split::Validation => splits.validation.push(goal.id),
                Split::Test | Split::All => splits.test.push(goal.id),
            }
        }
        splits
    }

    pub(crate) fn get(&self, split: Split) -> &[GoalId] {
        match split {
            Split::Train => &self.train,
            Split::Validation => &self.validation,
            Split::Test => &self.test,
            Split::All => &self.all,
        }
    }
}

/// Every product with goals by itself.
fn products(goals: &[Goal]) -> Vec<Family<'_>> {
    let products: Family<'_> = goals.iter().map(|goal| (goal.product, goal.asin.as_str())).collect();
    products.into_iter().map(|product| Family::from([product])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Catalog, GoalKind, GoalSet, Seed, generate};

    #[test]
    fn splits_are_disjoint_by_product_and_sized_in_tenths() {
        let data = generate(Seed(0), 50);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let goals = goals.split_by(SplitRule::ByProduct, &catalog).unwrap();
        let sides = [Split::Train, Split::Validation, Split::Test].map(|split| -> BTreeSet<ProductIdx> {
            goals.split(split).iter().map(|&id| goals.get(id).product).collect()
        });
        assert_eq!(sides.each_ref().map(BTreeSet::len), [30, 5, 15]);
        assert!(
            sides[0].is_disjoint(&sides[1])
                && sides[0].is_disjoint(&sides[2])
                && sides[1].is_disjoint(&sides[2])
        );
        assert_eq!(goals.split(Split::All).len(), goals.goals().len());
    }

    #[test]
    fn no_family_is_cut() {
        let data = generate(Seed(0), 200);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        assert_eq!(goals.split_rule(), SplitRule::ByFamily);
        let brands =
            [Split::Train, Split::Validation, Split::Test].map(|split| -> BTreeSet<(String, String)> {
                let goals = goals.split(split).iter().map(|&id| goals.get(id));
                let brand = |goal: &Goal| goal.title.split(' ').next().unwrap().to_owned();
                goals.map(|goal| (goal.query.to_string(), brand(goal))).collect()
            });
        assert!(brands.iter().all(|brands| brands.len() >= 3), "{:?}", brands.each_ref().map(BTreeSet::len));
        assert!(
            brands[0].is_disjoint(&brands[1])
                && brands[0].is_disjoint(&brands[2])
                && brands[1].is_disjoint(&brands[2])
        );
    }

    #[test]
    fn a_split_depends_on_asins_and_not_on_the_seed() {
        let data = generate(Seed(0), 20);
        let test = |seed| {
            let catalog = Catalog::from_raw(&data, seed).unwrap();
            GoalSet::from_raw(&data, &catalog, GoalKind::Both, seed).unwrap().split(Split::Test).to_vec()
        };
        assert_eq!(test(Seed(1)), test(Seed(2)));
    }

    #[test]
    fn names_round_trip() {
        for split in [Split::Train, Split::Validation, Split::Test, Split::All] {
            assert_eq!(split.to_string().parse(), Ok(split));
        }
    }
}
