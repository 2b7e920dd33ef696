//! The purchase with the greatest reward: what an oracle buys.
//!
//! [`Shop::best_purchase_of`] selects, on one product, the values that meet the most required options.
//! [`Shop::best_purchase`] does so on the goal's own product. If its reward is exactly 1, the goal can be reached.
//!
//! Of selections that meet as many options, the one that meets each in a group of its own is preferred, and each
//! in the group that the option names. Only if one value must meet several options, all combinations of the
//! groups' values are searched ([`Coverage`]).
//!
//! It reads the hidden goal, which agents must not. It does not say how to find the product.

use crate::reward::RewardBreakdown;
use crate::session::{group_to_choose, is_selectable};
use crate::shop::Shop;
use webshop_products::{Goal, OptionGroup, ProductIdx, Selection, WantedOption};

/// The most incomparable selections that [`Coverage::best`] keeps.
const MAX_COVERAGES: usize = 256;

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
    ///
    /// # Panics
    /// The goal is of another shop.
    pub fn best_purchase(&self, goal: &Goal) -> Purchase {
        self.best_purchase_of(goal, goal.product)
    }

    /// The purchase of `product` with the greatest reward for `goal`: one that meets as many required options as
    /// possible.
    ///
    /// The selection is reachable, also if groups share a value: [`Shop::clicks_to_choose`] lists the clicks.
    ///
    /// # Panics
    /// The goal or the product is of another shop.
    pub fn best_purchase_of(&self, goal: &Goal, product: ProductIdx) -> Purchase {
        let groups = &self.catalog().get(product).options;
        let select = |chosen: &[Option<&str>]| -> Selection {
            groups.iter().zip(chosen).filter_map(|(group, value)| Some((&group.name, (*value)?))).collect()
        };
        let purchase = |selection: Selection| {
            let breakdown = self.reward_by_id(goal.id, product, &selection);
            Purchase { product, selection, breakdown }
        };
        let offers = self.offers(goal, product);
        let n_offered = offers.iter().filter(|offers| !offers.is_empty()).count();
        let apart = purchase(select(&in_groups_of_their_own(&offers, groups.len())));
        if apart.breakdown.option_matches as usize >= n_offered {
            return apart;
        }
        let together = purchase(select(&self.best_coverage(goal, groups)));
        if together.breakdown.option_matches > apart.breakdown.option_matches { together } else { apart }
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
                let mut texts = self.selectable(group);
                let exact = self.selectable(group).find(|text| **text == *option.value);
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

    /// The values of a group that a click can select.
    fn selectable<'a>(&'a self, group: &'a OptionGroup) -> impl Iterator<Item = &'a str> {
        let config = self.config();
        let texts = group.values.iter().map(|value| &*value.text);
        texts.filter(|text| is_selectable(text, config.compat, config.shows_attributes))
    }

    /// For each group the value of a selection that meets the most required options, of which one value may meet
    /// several. A group without which as many are met has none.
    fn best_coverage<'a>(&'a self, goal: &Goal, groups: &'a [OptionGroup]) -> Vec<Option<&'a str>> {
        let facts = self.goal_facts(goal.id);
        let met_by = |text| (0..goal.options.len()).map(|number| facts.option_met_by(number, text)).collect();
        let values_of =
            |group: &'a OptionGroup| self.selectable(group).map(|text| (text, met_by(text))).collect();
        Coverage::best(goal.options.len(), groups.iter().map(values_of))
    }
}

/// A value that meets a required option, and the position of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer<'a> {
    group: usize,
    value: &'a str,
}

/// For each group the value that meets the required option assigned to it. As many options are met as can be,
/// each in a group of its own; an earlier option takes its preferred offer first.
fn in_groups_of_their_own<'a>(required: &[Vec<Offer<'a>>], n_groups: usize) -> Vec<Option<&'a str>> {
    let mut chosen = vec![None; n_groups];
    for (at, offers) in required.iter().enumerate() {
        let n_possible = n_matched(&required[at..], &chosen);
        let keeps_all = |offer: &&Offer<'a>| {
            let mut with = chosen.clone();
            with[offer.group] = Some(offer.value);
            1 + n_matched(&required[at + 1..], &with) == n_possible
        };
        let free = offers.iter().filter(|offer| chosen[offer.group].is_none());
        if let Some(offer) = free.filter(|_| n_possible > 0).find(keeps_all) {
            chosen[offer.group] = Some(offer.value);
        }
    }
    chosen
}

/// The size of the largest matching of required options with groups that are not `taken`, by augmenting paths.
fn n_matched(required: &[Vec<Offer<'_>>], taken: &[Option<&str>]) -> usize {
    fn augment(
        option: usize,
        required: &[Vec<Offer<'_>>],
        tried: &mut [bool],
        owner: &mut [Option<usize>],
    ) -> bool {
        required[option].iter().any(|offer| {
            let group = offer.group;
            if std::mem::replace(&mut tried[group], true) {
                return false;
            }
            let is_free = owner[group].is_none_or(|other| augment(other, required, tried, owner));
            if is_free {
                owner[group] = Some(option);
            }
            is_free
        })
    }
    let is_taken: Vec<bool> = taken.iter().map(Option::is_some).collect();
    let mut owner = vec![None; taken.len()];
    (0..required.len()).filter(|&option| augment(option, required, &mut is_taken.clone(), &mut owner)).count()
}

/// A selection in the first groups, and the required options that it meets.
#[derive(Clone)]
struct Coverage<'a> {
    chosen: Vec<Option<&'a str>>,
    met: Vec<bool>,
}

impl<'a> Coverage<'a> {
    /// For each group the value of a selection that meets the most of `n_required` options. Each value of a group comes
    /// with the options that it meets. Exact, unless more than [`MAX_COVERAGES`] selections meet options of which none includes
    /// another's; then those that meet the most are kept.
    fn best(
        n_required: usize,
        groups: impl Iterator<Item = Vec<(&'a str, Vec<bool>)>>,
    ) -> Vec<Option<&'a str>> {
        let mut kept = vec![Self { chosen: Vec::new(), met: vec![false; n_required] }];
        for values in groups {
            let without = kept.iter().map(|coverage| coverage.with(None, &[]));
            let with = values
                .iter()
                .flat_map(|(text, met)| kept.iter().map(|coverage| coverage.with(Some(text), met)));
            let mut all: Vec<Self> = without.chain(with).collect();
            // Stable: of equal ones the first stays, which selects nothing if it can.
            all.sort_by_key(|coverage| std::cmp::Reverse(coverage.n_met()));
            kept = Vec::new();
            for coverage in all {
                if kept.len() < MAX_COVERAGES && !kept.iter().any(|other| other.includes(&coverage)) {
                    kept.push(coverage);
                }
            }
        }
        kept.swap_remove(0).chosen
    }

    fn with(&self, value: Option<&'a str>, also_met: &[bool]) -> Self {
        let mut extended = self.clone();
        extended.chosen.push(value);
        extended.met.iter_mut().zip(also_met).for_each(|(met, also)| *met |= also);
        extended
    }

    fn n_met(&self) -> usize {
        self.met.iter().filter(|met| **met).count()
    }

    /// Whether it meets all options that `other` meets.
    fn includes(&self, other: &Self) -> bool {
        self.met.iter().zip(&other.met).all(|(met, others)| *met || !others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(group: usize, value: &str) -> Offer<'_> {
        Offer { group, value }
    }

    #[test]
    fn an_option_gives_way_to_one_that_has_no_other_group() {
        // The first option prefers the only group that can meet the second.
        let required = [vec![offer(0, "black"), offer(1, "black")], vec![offer(0, "silver")], vec![]];
        assert_eq!(in_groups_of_their_own(&required, 2), [Some("silver"), Some("black")]);
    }

    #[test]
    fn each_option_takes_its_preferred_group_if_it_can() {
        let required = [vec![offer(2, "a"), offer(0, "a")], vec![offer(1, "b"), offer(2, "b")]];
        assert_eq!(in_groups_of_their_own(&required, 3), [None, Some("b"), Some("a")]);
    }

    #[test]
    fn more_options_than_groups_take_no_time() {
        let every_group: Vec<Offer<'_>> = (0..12).map(|group| offer(group, "red")).collect();
        assert_eq!(in_groups_of_their_own(&vec![every_group; 40], 12), [Some("red"); 12]);
    }

    #[test]
    fn a_value_that_meets_two_options_is_preferred_to_one_that_meets_one() {
        let size = vec![("small", vec![true, false]), ("small wide", vec![true, true])];
        let color = vec![("red", vec![false, false])];
        assert_eq!(Coverage::best(2, [size, color].into_iter()), [Some("small wide"), None]);
        let groups = || (0..20).map(|_| vec![("a", vec![true; 40]), ("b", vec![true; 40])]);
        assert_eq!(Coverage::best(40, groups()).iter().flatten().count(), 1);
    }
}
