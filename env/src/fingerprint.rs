//! Fingerprint of a shop: results are comparable only if all its parts are equal.
//!
//! A [`ShopFingerprint`] names rules by their versions and data by digests. It reads everything the shop
//! holds, so it is computed on first use; [`Shop::fingerprint`](crate::Shop::fingerprint) keeps it.

use crate::version::ENVIRONMENT_ID;
use serde::{Deserialize, Serialize};
use webshop_products::{Catalog, GoalDigests, GoalSet};

/// The arguments that a catalog is generated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GeneratedCatalog {
    /// The generator's seed, which decides prices and price limits too.
    pub seed: u64,
    /// The number of products.
    pub products: usize,
}

/// Versions and digests of everything a reward depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopFingerprint {
    /// [`ENVIRONMENT_ID`].
    pub environment: String,
    /// [`Shop::reward_version`](crate::Shop::reward_version).
    pub rewards: String,
    /// Digests of catalog, prices, goals and splits.
    #[serde(flatten)]
    pub data: GoalDigests,
    /// What the catalog was generated from, so that a recording names its shop; `None` for embedded catalogs and
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<GeneratedCatalog>,
}

impl ShopFingerprint {
    /// The fingerprint of a catalog and its goals under the reward rules named by `reward_version`. Hashes
    /// all products and goals.
    pub(crate) fn new(catalog: &Catalog, goals: &GoalSet, reward_version: String) -> Self {
        ShopFingerprint {
            environment: ENVIRONMENT_ID.into(),
            rewards: reward_version,
            data: goals.digests(catalog),
            generated: None,
        }
    }

    /// The names of the parts that differ.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let parts = |of: &Self| {
            let GoalDigests { catalog, prices, goals, splits } = of.data.clone();
            [of.environment.clone(), of.rewards.clone(), catalog, prices, goals, splits]
        };
        let names = ["environment", "rewards", "catalog", "prices", "goals", "splits"];
        let pairs = parts(self).into_iter().zip(parts(other));
        names.into_iter().zip(pairs).filter(|(_, (one, other))| one != other).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shop::Shop;
    use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed, SplitRule};

    #[test]
    fn differences_names_the_parts_that_differ() {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let fingerprint = |prices, rule| {
            let catalog = Catalog::from_raw(&data, Seed(prices)).unwrap();
            let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
            let goals = goals.split_by(rule, &catalog).unwrap();
            Shop::new(catalog, goals).unwrap().fingerprint().clone()
        };
        let first = fingerprint(0, SplitRule::ByProduct);
        assert_eq!((first.environment.as_str(), first.rewards.as_str()), ("webshop-3", "reward-1"));
        assert_eq!(first.differences(&first), Vec::<&str>::new());
        assert_eq!(first.differences(&fingerprint(0, SplitRule::VerlAgent)), ["splits"]);
        let dearer = fingerprint(1, SplitRule::ByProduct);
        assert_eq!(first.differences(&dearer)[0], "prices");
        let later = ShopFingerprint { rewards: "reward-2".into(), ..first.clone() };
        assert_eq!(first.differences(&later), ["rewards"]);
    }
}
