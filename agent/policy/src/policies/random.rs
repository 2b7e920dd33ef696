//! The random policy.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use webshop_env::{Action, AvailableActions};
use webshop_products::{Purpose, Seed};

use crate::episode::EpisodeCoordinates;
use crate::error::AgentError;
use crate::policies::policy::{Decision, LaneView, PagePolicy, Policy, VisiblePage};

/// The draws of the policy.
const POLICY: Purpose = Purpose::new("policy");

/// Uniform over the available actions. A search counts as one action; it is for one random word of the
/// catalog's titles or, at web sites, of the instruction.
#[derive(Clone, Copy, Debug)]
pub struct RandomPolicy {
    seed: Seed,
}

impl RandomPolicy {
    /// A random policy whose draws follow from `seed`.
    pub fn new(seed: Seed) -> Self {
        Self { seed }
    }

    /// The generator of a turn.
    fn rng(self, at: EpisodeCoordinates, turn: usize) -> ChaCha8Rng {
        let coordinates = [at.step, at.shop, u64::from(at.goal.0), at.sample, turn as u64];
        self.seed.rng(POLICY, &coordinates)
    }

    fn choose_in(self, view: &LaneView<'_>) -> Action {
        let rng = &mut self.rng(view.coordinates, view.turn);
        click_or_search(&view.page.available_actions(), rng).unwrap_or_else(|| {
            let products = view.shop.catalog().products();
            view.search(word_of(&products[below(products.len(), rng)].title, rng))
        })
    }
}

/// A click; `None` if the draw is a search.
fn click_or_search(available: &AvailableActions, rng: &mut ChaCha8Rng) -> Option<Action> {
    let mut clicks: Vec<Action> = available.clicks().collect();
    let choice = below(clicks.len() + usize::from(available.has_search_bar), rng);
    (choice < clicks.len()).then(|| clicks.swap_remove(choice))
}

fn word_of<'a>(text: &'a str, rng: &mut ChaCha8Rng) -> &'a str {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.get(below(words.len(), rng)).unwrap_or(&"anything")
}

fn below(n: usize, rng: &mut ChaCha8Rng) -> usize {
    rng.random_range(0..n.max(1) as u64) as usize
}

impl Policy for RandomPolicy {
    fn name(&self) -> &'static str {
        "random"
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| Decision::act(self.choose_in(view))).collect())
    }
}

impl PagePolicy for RandomPolicy {
    fn choose(&self, page: &VisiblePage, coordinates: EpisodeCoordinates, turn: usize) -> Action {
        let rng = &mut self.rng(coordinates, turn);
        let click = click_or_search(&page.available, rng);
        click.unwrap_or_else(|| page.search(word_of(&page.instruction, rng)))
    }
}
