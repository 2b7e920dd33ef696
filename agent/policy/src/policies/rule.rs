//! The rule agent of the WebShop paper.

use webshop_env::Action;

use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;
use crate::policies::policy::{Decision, LaneView, PagePolicy, Policy, VisiblePage};

/// The rule agent of the WebShop paper: searches for the whole instruction, opens the first result and buys
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulePolicy;

impl PagePolicy for RulePolicy {
    fn choose(&self, page: &VisiblePage, _coordinates: EpisodeCoordinates, _turn: usize) -> Action {
        let can_buy = page.available.clickables.iter().any(|label| label == "buy now");
        match page.products.first() {
            _ if page.available.has_search_bar => page.search(&page.instruction),
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

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        let choose = |view: &LaneView<'_>| self.choose(&view.visible_page(), view.coordinates, view.turn);
        Ok(lanes.iter().map(|view| Decision::act(choose(view))).collect())
    }
}
