//! A customer who knows what others have to find out: the best that can be done.

use webshop_env::{Action, Page};

use crate::policies::{LaneView, Move, Policy};
use crate::error::AgentError;

/// Knows the hidden goal: searches the wanted article's title, turns pages until it is listed, opens it,
/// chooses the wanted options and buys.
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
                // Choices stand in the order of the groups, so a value that groups share is clicked
                // until it stands where it is wanted.
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

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(Self::choose(view))).collect())
    }
}
