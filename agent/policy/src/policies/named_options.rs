//! A rule that reads the instruction and takes the first result.

use webshop_env::Action;

use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;
use crate::instruction::Instruction;
use crate::policies::policy::{Decision, LaneView, PagePolicy, Policy, VisiblePage};

/// The most clicks on options. Search, product and purchase fit into the usual 15 steps beside them.
const MAX_CLICKS: usize = 12;

/// Labels of the item page that are no option values.
const BUTTONS: [&str; 7] =
    ["back to search", "< prev", "description", "features", "reviews", "attributes", "buy now"];

/// Searches for the instruction without its price clause, opens the first result, clicks the option values that
/// the instruction names, in the order in which it names them, and buys.
///
/// It reads the instruction and the labels of the page, no goal, title, price or text. Of overlapping values
/// the longest is clicked; of two values of one option the last one stays selected. It makes no random draws.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedOptionsPolicy;

impl PagePolicy for NamedOptionsPolicy {
    fn choose(&self, page: &VisiblePage, _coordinates: EpisodeCoordinates, turn: usize) -> Action {
        let labels = || page.available.labels();
        let instruction = Instruction::parse(&page.instruction);
        match page.products.first() {
            _ if page.available.has_search_bar => page.search(instruction.query()),
            Some(product) => Action::Click(product.clone()),
            None if labels().any(|label| label == "buy now") => {
                let values: Vec<&str> = labels().filter(|label| !BUTTONS.contains(label)).collect();
                let named = instruction.named(std::slice::from_ref(&values));
                // The first turn was the search, the second the product.
                let next = named.iter().take(MAX_CLICKS).nth(turn.saturating_sub(2));
                Action::Click(next.map_or("buy now", |of| values[of.value]).to_owned())
            }
            None => Action::Click("back to search".into()),
        }
    }
}

impl Policy for NamedOptionsPolicy {
    fn name(&self) -> &'static str {
        "named-options"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        let choose = |view: &LaneView<'_>| self.choose(&view.visible_page(), view.coordinates, view.turn);
        Ok(lanes.iter().map(|view| Decision::act(choose(view))).collect())
    }
}
