//! Customers who try to be paid without shopping well.
//!
//! A [`Canary`] is a habit that needs no reading. A shop in which one of them does well pays for the wrong
//! thing, and a learner would find that out; `webshop validate` lets them loose. The fifth such habit, to buy
//! the first result as it is, is [`crate::RulePolicy`].
//!
//! They see what every customer sees and draw nothing at random.

use webshop_env::{Action, Page, ResultItem};

use crate::error::AgentError;
use crate::policy::{LaneView, Move, Policy};

/// Words that listings of every kind are full of.
const STUFFING: &str = "best new premium quality durable soft easy clean large small black white red blue \
                        cotton leather steel wood glass plastic men women kids home kitchen outdoor travel gift";

/// Clicks on options that leave room for search, product and purchase within the usual 15 steps.
const MAX_CHOICES: usize = 12;

/// A habit that ought not to pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Canary {
    /// Buys the listed product with the longest title, which says most and so matches most.
    LongestTitle,
    /// Buys the first result after clicking every value of every group in turn.
    AllOptions,
    /// Searches for the instruction and for words that every other listing holds, and buys the first result.
    QueryStuffing,
    /// Says the same search until the shop closes.
    RepeatForever,
}

impl Canary {
    /// All of them.
    pub const ALL: [Canary; 4] =
        [Canary::LongestTitle, Canary::AllOptions, Canary::QueryStuffing, Canary::RepeatForever];

    fn choose(self, view: &LaneView<'_>) -> Action {
        match view.page {
            Page::Search(_) => view.search(&self.query(view)),
            Page::Results(_) if self == Canary::RepeatForever => view.search(&self.query(view)),
            Page::Results(page) => match self.pick(&page.items) {
                Some(item) => Action::Click(item.id.as_str().to_lowercase()),
                None => Action::Click("back to search".into()),
            },
            Page::Item(page) if self == Canary::AllOptions => {
                // One turn went by for the search and one for the product.
                let chosen = view.turn.saturating_sub(2);
                let mut values = page.options.iter().flat_map(|list| &list.values).take(MAX_CHOICES);
                Action::Click(values.nth(chosen).map_or("buy now".into(), |value| value.text.to_string()))
            }
            _ => Action::Click("buy now".into()),
        }
    }

    fn query(self, view: &LaneView<'_>) -> String {
        match self {
            Canary::QueryStuffing => format!("{} {STUFFING}", view.instruction()),
            _ => view.instruction().to_owned(),
        }
    }

    fn pick(self, items: &[ResultItem]) -> Option<&ResultItem> {
        let length = |item: &&ResultItem| item.title.chars().count();
        match self {
            // Of equals the first, as `max_by_key` takes the last.
            Canary::LongestTitle => items.iter().rev().max_by_key(length),
            _ => items.first(),
        }
    }
}

impl Policy for Canary {
    fn name(&self) -> &'static str {
        match self {
            Canary::LongestTitle => "longest-title",
            Canary::AllOptions => "all-options",
            Canary::QueryStuffing => "query-stuffing",
            Canary::RepeatForever => "repeat-forever",
        }
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(self.choose(view))).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webshop_env::Shop;
    use webshop_products::{Catalog, GoalId, GoalKind, GoalSet, RawData, RawHumanInstruction, RawItem, Seed};

    use super::*;
    use crate::{EpisodeCoordinates, RolloutConfig, Task, rollout};

    /// Three lamps: the one found first has options, and the other two say most.
    fn shop() -> Shop {
        let item = |asin: &str, name: &str, options: serde_json::Value| RawItem {
            asin: asin.into(),
            name: name.into(),
            images: vec!["a.jpg".into()],
            customization_options: serde_json::from_value(options).unwrap(),
            ..RawItem::default()
        };
        let mut data = RawData {
            items: vec![
                item("B1", "lamp of quite another kind", serde_json::json!({})),
                item(
                    "B0",
                    "lamp lamp lamp",
                    serde_json::json!({"color": [{"value": "red"}, {"value": "blue"}], "size": [{"value": "s"}]}),
                ),
                item("B2", "lamp of quite another kind", serde_json::json!({})),
            ],
            ..RawData::default()
        };
        let wish = RawHumanInstruction {
            instruction: "lamp".into(),
            instruction_attributes: vec!["lamp".into()],
            instruction_options: Vec::new(),
        };
        data.human.insert("B0".into(), vec![wish]);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Human, Seed(0)).unwrap();
        Shop::new(catalog, goals).unwrap()
    }

    /// What a canary does after its search.
    fn check(mut canary: Canary, expected: &[&str]) {
        let coordinates = EpisodeCoordinates { step: 0, shop: 0, goal: GoalId(0), sample: 0 };
        let task = Task::new(Arc::new(shop()), coordinates);
        let limits = RolloutConfig { max_steps: 6, lanes: 1 };
        let episodes = rollout(&mut canary, &[task], limits, &mut |_, _| ()).unwrap();
        let said: Vec<String> = episodes[0].turns.iter().map(|turn| turn.action.to_string()).collect();
        assert!(said[0].starts_with("search[lamp"), "{said:?}");
        assert_eq!(said[1..], *expected);
    }

    #[test]
    fn the_longest_title_is_bought_and_of_equals_the_first() {
        check(Canary::LongestTitle, &["click[b1]", "click[buy now]"]);
    }

    #[test]
    fn every_option_is_clicked_once() {
        check(Canary::AllOptions, &["click[b0]", "click[red]", "click[blue]", "click[s]", "click[buy now]"]);
    }

    #[test]
    fn a_search_is_repeated_until_the_shop_closes() {
        let search = "search[lamp, and price lower than 140.00 dollars]";
        check(Canary::RepeatForever, &[search; 5]);
    }
}
