//! A policy that knows the goal: the best possible result.

use webshop_env::{Action, Page};

use crate::error::AgentError;
use crate::policies::policy::{Decision, LaneView, Policy};

/// Knows the goal: searches for the product's title, turns pages until it is listed, opens it, selects the
/// required options and buys.
#[derive(Clone, Copy, Debug, Default)]
pub struct OraclePolicy;

impl OraclePolicy {
    fn choose(view: &LaneView<'_>) -> Action {
        let goal = view.shop.goals().get(view.session.goal());
        let target = goal.product;
        match view.page {
            Page::Search(_) => view.search(&view.shop.catalog().get(target).title),
            Page::Results(page) => match page.items.iter().find(|item| item.product == target) {
                Some(item) => Action::Click(item.id.as_str().to_lowercase()),
                None => Action::Click("next >".into()),
            },
            Page::Item(page) => {
                // A click selects a value in the first group that has it and, clicked again, in the next. A
                // value that groups share is clicked until it is selected in the required group.
                let wanted = view.shop.best_purchase(goal).selection;
                let missing = wanted.iter().find(|(name, value)| page.selection.get(name) != Some(*value));
                Action::Click(missing.map_or("buy now".into(), |(_, value)| value.to_owned()))
            }
            _ => Action::Click("back to search".into()),
        }
    }
}

impl Policy for OraclePolicy {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| Decision::act(Self::choose(view))).collect())
    }
}
