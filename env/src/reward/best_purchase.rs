//! The purchase with the greatest reward: what an oracle buys.
//!
//! [`Shop::best_purchase_of`] selects, on one product, the values that the reward accepts for each required
//! option. [`Shop::best_purchase`] does so on the goal's own product, which proves that a reward of exactly 1
//! is reachable for every goal whose requirements its product meets.
//!
//! It reads the hidden goal, which agents must not. It does not say how to find the product.

use crate::reward::RewardBreakdown;
use crate::session::group_to_choose;
use crate::shop::Shop;
use webshop_products::{Goal, OptionGroup, ProductIdx, Selection, WantedOption};

/// A product with selected options, and the reward of buying it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// The product.
    pub product: ProductIdx,
    /// The selected values, in the order of its groups.
    pub selection: Selection,
    /// The reward.
    pub breakdown: RewardBreakdown,
}

impl Shop {
    /// The goal's own product with the required options; a reward of exactly 1 unless the product lacks one
    /// of them.
    pub fn best_purchase(&self, goal: &Goal) -> Purchase {
        self.best_purchase_of(goal, goal.product)
    }

    /// The purchase of `product` with the greatest reward for `goal`, which must be one of this shop's: as
    /// many required options as possible, each in a group of its own.
    ///
    /// The selection is reachable, also if groups share a value: [`Shop::clicks_to_choose`] lists the clicks.
    pub fn best_purchase_of(&self, goal: &Goal, product: ProductIdx) -> Purchase {
        let mut best = Assignment::default();
        best.improve(&self.offers(goal, product), &mut Vec::new());
        let groups = &self.catalog().get(product).options;
        let chosen =
            groups.iter().enumerate().filter_map(|(at, group)| Some((&group.name, best.value_for(at)?)));
        let selection: Selection = chosen.collect();
        Purchase { product, breakdown: self.reward_by_id(goal.id, product, &selection), selection }
    }

    /// The labels to click, in order, on a fresh item page of the product to make this selection.
    ///
    /// A value of several groups is selected in the last of them first (see [`crate::Compat`]). Selecting
    /// group after group from the first, each value clicked until it is selected there, undoes no selection.
    pub fn clicks_to_choose(&self, product: ProductIdx, wanted: &Selection) -> Vec<String> {
        let groups = &self.catalog().get(product).options;
        let mut reached = Selection::new();
        let mut clicks = Vec::new();
        for group in groups {
            let Some(value) = wanted.get(&group.name) else {
                continue;
            };
            // Each click reaches a further group, so this many suffice where any do.
            for _ in 0..groups.len() {
                if reached.get(&group.name) == Some(value) {
                    break;
                }
                let compat = self.config().compat;
                if let Some(group) = group_to_choose(groups, &reached, value, compat) {
                    reached.choose(&group.name, value);
                    clicks.push(value.to_owned());
                }
            }
        }
        clicks
    }

    /// For each required option the groups that can meet it, each with the value that does: the option's own
    /// group first, then values of equal spelling, then any that the reward accepts.
    fn offers<'a>(&'a self, goal: &Goal, product: ProductIdx) -> Vec<Vec<Offer<'a>>> {
        let facts = self.goal_facts(goal.id);
        let groups = &self.catalog().get(product).options;
        let offers_for = |(number, option): (usize, &WantedOption)| {
            let offer_of = |(at, group): (usize, &'a OptionGroup)| {
                let mut texts = group.values.iter().map(|value| &*value.text);
                let exact = texts.clone().find(|text| **text == *option.value);
                let value = exact.or_else(|| texts.find(|text| facts.option_met_by(number, text)))?;
                let is_named = option.name.as_deref() == Some(&*group.name);
                Some(((!is_named, exact.is_none()), Offer { group: at, value }))
            };
            let mut offers: Vec<_> = groups.iter().enumerate().filter_map(offer_of).collect();
            offers.sort_by_key(|(rank, _)| *rank);
            offers.into_iter().map(|(_, offer)| offer).collect()
        };
        goal.options.iter().enumerate().map(offers_for).collect()
    }
}

/// A value that meets a required option, and the position of its group.
#[derive(Clone, Copy)]
struct Offer<'a> {
    group: usize,
    value: &'a str,
}

/// The largest set of met options in different groups found so far.
#[derive(Default)]
struct Assignment<'a> {
    taken: Vec<Offer<'a>>,
}

impl<'a> Assignment<'a> {
    fn value_for(&self, group: usize) -> Option<&'a str> {
        let taken = self.taken.iter().find(|offer| offer.group == group);
        taken.map(|offer| offer.value)
    }

    /// Tries every way to meet the remaining required options and keeps the best. Products have few groups
    /// and goals few options, so exhaustive search is fast.
    fn improve(&mut self, required: &[Vec<Offer<'a>>], taken: &mut Vec<Offer<'a>>) {
        if taken.len() > self.taken.len() {
            self.taken.clone_from(taken);
        }
        let Some((offers, later)) = required.split_first() else {
            return;
        };
        if taken.len() + required.len() <= self.taken.len() {
            return;
        }
        for &offer in offers {
            if taken.iter().all(|other| other.group != offer.group) {
                taken.push(offer);
                self.improve(later, taken);
                taken.pop();
            }
        }
        self.improve(later, taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_gives_way_to_one_that_has_no_other_group() {
        let offer = |group, value| Offer { group, value };
        // The first option prefers the only group that can meet the second.
        let required = [vec![offer(0, "black"), offer(1, "black")], vec![offer(0, "silver")], vec![]];
        let mut best = Assignment::default();
        best.improve(&required, &mut Vec::new());
        assert_eq!(best.value_for(0), Some("silver"));
        assert_eq!(best.value_for(1), Some("black"));
        assert_eq!(best.taken.len(), 2);
    }
}
