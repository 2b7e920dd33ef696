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
                Action::Click(values.nth(chosen).map_or("buy now".into(), |value| value.text.clone()))
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

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(self.choose(view))).collect())
    }
}
