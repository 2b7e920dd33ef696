//! What a result is about, part by part: two results may be compared only if all parts are equal.
//!
//! A [`ShopFingerprint`] names the rules by their versions and the data by digests. It is computed when a result is
//! told, not when a shop is built, since it reads everything the shop holds; [`Shop::fingerprint`] keeps it.

use crate::shop::Shop;
use crate::shop_env::ENVIRONMENT_ID;
use serde::{Deserialize, Serialize};
use webshop_products::GoalDigests;

/// The versions and digests of everything a reward depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShopFingerprint {
    /// [`ENVIRONMENT_ID`]: what an action does.
    pub environment: String,
    /// [`Shop::reward_version`]: what a purchase is worth.
    pub rewards: String,
    /// Catalog, prices, goals, splits.
    #[serde(flatten)]
    pub data: GoalDigests,
}

impl ShopFingerprint {
    /// Names and digests all parts of `shop`.
    pub fn new(shop: &Shop) -> Self {
        ShopFingerprint {
            environment: ENVIRONMENT_ID.into(),
            rewards: shop.reward_version(),
            data: GoalDigests::new(shop.catalog(), shop.goals()),
        }
    }

    /// The parts in which two fingerprints differ, by name.
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
    use webshop_products::{Catalog, EmbeddedCatalog, GoalKind, GoalSet, RawData, Seed, SplitRule};

    #[test]
    fn the_parts_that_differ_are_named() {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let fingerprint = |prices, rule| {
            let catalog = Catalog::from_raw(&data, Seed(prices)).unwrap();
            let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
            let goals = goals.split_by(rule, &catalog).unwrap();
            ShopFingerprint::new(&Shop::new(catalog, goals).unwrap())
        };
        let first = fingerprint(0, SplitRule::ByProduct);
        assert_eq!((first.environment.as_str(), first.rewards.as_str()), ("webshop-2", "reward-1"));
        assert_eq!(first.differences(&first), Vec::<&str>::new());
        assert_eq!(first.differences(&fingerprint(0, SplitRule::Paper)), ["splits"]);
        let dearer = fingerprint(1, SplitRule::ByProduct);
        assert_eq!(first.differences(&dearer)[0], "prices");
        let later = ShopFingerprint { rewards: "reward-2".into(), ..first.clone() };
        assert_eq!(first.differences(&later), ["rewards"]);
    }
}
