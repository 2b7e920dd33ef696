//! A customer without any sense but the right plan.

use webshop_env::Action;

use crate::policies::{LaneView, Move, PagePolicy, Policy, SeenPage};
use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;

/// The rule agent of the WebShop paper: search the whole instruction, open the first result, buy.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulePolicy;

impl PagePolicy for RulePolicy {
    fn choose(&self, seen: &SeenPage, _coordinates: EpisodeCoordinates, _turn: usize) -> Action {
        let can_buy = seen.available.clickables.iter().any(|label| label == "buy now");
        match seen.products.first() {
            _ if seen.available.has_search_bar => seen.search(&seen.instruction),
            Some(product) => Action::Click(product.clone()),
            None if can_buy => Action::Click("buy now".into()),
            None => Action::Click("back to search".into()),
        }
    }
}

impl Policy for RulePolicy {
    fn name(&self) -> &'static str {
        "rule"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        let choose = |view: &LaneView<'_>| self.choose(&view.seen(), view.coordinates, view.turn);
        Ok(lanes.iter().map(|view| Move::of(choose(view))).collect())
    }
}
