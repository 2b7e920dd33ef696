//! The purchases that a goal hopes for: what an oracle would buy.
//!
//! This looks at the hidden goal; nothing a customer sees leads here.

use crate::reward::RewardBreakdown;
use crate::shop::Shop;
use webshop_products::{Goal, ProductIdx, Selection};

impl Shop {
    /// The goal's own product with its wishes chosen, and what buying it earns; a reward of exactly 1
    /// unless the product does not offer what the goal wants.
    pub fn best_purchase(&self, goal: &Goal) -> (ProductIdx, Selection, RewardBreakdown) {
        let (selection, breakdown) = self.best_selection(goal, goal.product);
        (goal.product, selection, breakdown)
    }

    /// What to choose on the page of `product` for `goal`, and what buying it then earns.
    ///
    /// Wish by wish, the first value in page order that is spelled as wanted, else the first that the
    /// reward accepts, in a group nothing was chosen of yet; the wish's own group first, if it names one.
    pub fn best_selection(&self, goal: &Goal, product: ProductIdx) -> (Selection, RewardBreakdown) {
        let facts = self.goal_facts(goal.id);
        let mut wishes = Selection::new();
        for (number, wish) in goal.options.iter().enumerate() {
            let offers = || {
                let groups = &self.catalog().get(product).options;
                groups
                    .iter()
                    .filter(|group| wishes.get(&group.name).is_none())
                    .flat_map(|group| group.values.iter().map(move |value| (&group.name, &value.text)))
            };
            let named = |group: &str| wish.name.as_deref() == Some(group);
            let found = offers()
                .find(|(group, value)| named(group) && **value == wish.value)
                .or_else(|| offers().find(|(_, value)| **value == wish.value))
                .or_else(|| offers().find(|(group, value)| named(group) && facts.option_met_by(number, value)))
                .or_else(|| offers().find(|(_, value)| facts.option_met_by(number, value)));
            if let Some((group, value)) = found {
                wishes.choose(group, value);
            }
        }
        let mut selection = Selection::new();
        for group in &self.catalog().get(product).options {
            if let Some(value) = wishes.get(&group.name) {
                selection.choose(&group.name, value);
            }
        }
        let breakdown = self.reward(goal, product, &selection);
        (selection, breakdown)
    }
}
