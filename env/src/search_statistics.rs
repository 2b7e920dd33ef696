//! What a search for the whole instruction of a goal finds.
//!
//! [`SearchStatistics`] stand beside [`webshop_products::CatalogStatistics`], which do not look at search.

use crate::shop::Shop;
use serde::Serialize;
use webshop_products::Goal;

/// The results that are looked at: those of the first page.
const FIRST: usize = 10;

/// Shares over all goals of a shop, 0 to 1; zero without goals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SearchStatistics {
    /// Share of products of the goal's query among the first ten results, over all results of all goals.
    pub same_kind: f64,
    /// Share of goals whose own product is the first result.
    pub own_first: f64,
    /// Share of goals whose own product is among the first five results.
    pub own_in_five: f64,
    /// Share of goals whose own product is among the first ten results.
    pub own_in_ten: f64,
}

impl SearchStatistics {
    /// Searches for every instruction of `shop`, price limit included.
    pub fn new(shop: &Shop) -> Self {
        let (mut n_results, mut n_same) = (0_usize, 0_usize);
        let mut n_own = [0_usize; 3];
        for goal in shop.goals().goals() {
            let hits = shop.search(&goal.instruction);
            let first = &hits[..hits.len().min(FIRST)];
            let is_same = |product| shop.catalog().get(product).query == goal.query;
            n_results += first.len();
            n_same += first.iter().filter(|hit| is_same(hit.product)).count();
            let rank = first.iter().position(|hit| hit.product == goal.product);
            for (n, within) in n_own.iter_mut().zip([1, 5, FIRST]) {
                *n += usize::from(rank.is_some_and(|rank| rank < within));
            }
        }
        let goals: &[Goal] = shop.goals().goals();
        let [own_first, own_in_five, own_in_ten] = n_own.map(|n| n as f64 / goals.len().max(1) as f64);
        Self { same_kind: n_same as f64 / n_results.max(1) as f64, own_first, own_in_five, own_in_ten }
    }

    /// The lines of a table: what is measured, and the number as text.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        let own = [self.own_first, self.own_in_five, self.own_in_ten].map(percent).join("/");
        vec![
            ("first ten results of the same kind", format!("{} %", percent(self.same_kind))),
            ("own product first/in five/in ten results", format!("{own} %")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_products::{Catalog, GoalKind, GoalSet, RawData, RawHumanInstruction, RawItem, Seed};

    #[test]
    fn own_products_and_kinds_are_counted_among_the_results() {
        // A search for "oak lamp" finds the oak lamp first, then the lamp or the oak table.
        let item = |asin: &str, name: &str, query: &str| RawItem {
            asin: asin.into(),
            name: name.into(),
            query: query.into(),
            images: vec!["a".into()],
            ..RawItem::default()
        };
        let instruction = RawHumanInstruction {
            instruction: "oak lamp".into(),
            instruction_attributes: vec!["red".into()],
            instruction_options: Vec::new(),
        };
        let data = RawData {
            items: vec![
                item("B0", "steel lamp", "lamps"),
                item("B1", "oak lamp", "lamps"),
                item("B2", "oak table", "tables"),
            ],
            human: [("B0".to_owned(), vec![instruction.clone()]), ("B1".to_owned(), vec![instruction])]
                .into(),
            ..RawData::default()
        };
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        let found = SearchStatistics::new(&Shop::new(catalog, goals).unwrap());
        assert_eq!((found.own_first, found.own_in_five, found.own_in_ten), (0.5, 1.0, 1.0));
        assert_eq!(found.same_kind, 2.0 / 3.0, "two lamps of three results, for both goals");
    }
}
