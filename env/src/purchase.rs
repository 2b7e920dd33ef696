//! What a customer who knows everything would buy.
//!
//! [`Shop::best_purchase`] chooses for each wish of a goal the value that the reward accepts, so every goal
//! whose product meets its wishes comes with a proof that reward 1 can be reached. It looks at the hidden
//! goal, and finds no way to the product: that is the customer's.

use crate::reward::RewardBreakdown;
use crate::session::group_to_choose;
use crate::shop::Shop;
use webshop_products::{Goal, ProductIdx, Selection};

/// Something bought, and its worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// What is bought.
    pub product: ProductIdx,
    /// What is chosen of it.
    pub selection: Selection,
    /// What that is worth.
    pub breakdown: RewardBreakdown,
}

impl Shop {
    /// The best that can be made of a goal's own product. The goal must be one of this shop's.
    pub fn best_purchase(&self, goal: &Goal) -> Purchase {
        self.best_purchase_of(goal, goal.product)
    }

    /// The best that can be made of `product` for a goal of this shop.
    ///
    /// Wish by wish, in a group nothing was chosen of yet: a value of the group the wish names, if it names
    /// one; else one that is spelled as wished; else one that the reward accepts.
    pub fn best_purchase_of(&self, goal: &Goal, product: ProductIdx) -> Purchase {
        let groups = &self.catalog().get(product).options;
        let facts = self.goal_facts(goal.id);
        let mut wished = Selection::new();
        for (number, wish) in goal.options.iter().enumerate() {
            let offers = groups
                .iter()
                .filter(|group| wished.get(&group.name).is_none())
                .flat_map(|group| {
                    group
                        .values
                        .iter()
                        .map(move |value| (group.name.as_str(), value.text.as_str()))
                });
            let is_spelled = |value: &str| value == wish.value;
            let rank = |(group, value): &(&str, &str)| {
                let is_accepted = is_spelled(value) || facts.option_met_by(number, value);
                let is_named = wish.name.as_deref() == Some(*group);
                is_accepted.then_some((!is_named, !is_spelled(value)))
            };
            let best = offers
                .filter_map(|offer| Some((rank(&offer)?, offer)))
                .min_by_key(|(rank, _)| *rank);
            if let Some((_, (group, value))) = best {
                wished.choose(group, value);
            }
        }
        let mut selection = Selection::new();
        for label in self.clicks_to_choose(product, &wished) {
            self.click(product, &label, &mut selection);
        }
        let breakdown = self.reward(goal, product, &selection);
        Purchase {
            product,
            selection,
            breakdown,
        }
    }

    /// The labels to click, in order, on a fresh item page of the product for these choices.
    ///
    /// A value that several groups have goes to one of them first; clicking it again reaches the next.
    pub fn clicks_to_choose(&self, product: ProductIdx, wished: &Selection) -> Vec<String> {
        let groups = &self.catalog().get(product).options;
        let mut reached = Selection::new();
        let mut clicks = Vec::new();
        for group in groups {
            let Some(value) = wished.get(&group.name) else {
                continue;
            };
            // Each click reaches a further group, so this many suffice where any do.
            for _ in 0..groups.len() {
                if reached.get(&group.name) == Some(value) {
                    break;
                }
                self.click(product, value, &mut reached);
                clicks.push(value.to_owned());
            }
        }
        clicks
    }

    fn click(&self, product: ProductIdx, label: &str, selection: &mut Selection) {
        let groups = &self.catalog().get(product).options;
        if let Some(group) = group_to_choose(groups, selection, label, self.config().compat) {
            selection.choose(&group.name, label);
        }
    }
}
