//! Who acts: the policies that need no model.
//!
//! A [`Policy`] is shown the lanes that wait for a move and answers one [`Move`] for each, in order. It
//! may use what a customer sees (the page) and, if it says so in its name, more: the oracle knows the
//! hidden goal. All randomness comes from the seed and the lane's own coordinates.

use rand::Rng;
use webshop_env::{Action, NoopReason, Page, Session, Shop};
use webshop_products::{Purpose, Seed};

use crate::episode::{EpisodeCoordinates, TurnTokens};
use crate::error::AgentError;

/// One lane that waits for a move.
#[derive(Clone, Copy, Debug)]
pub struct LaneView<'a> {
    /// Position of the lane in the rollout's batch, stable over the episode.
    pub lane: usize,
    /// Where the lane's randomness is addressed.
    pub coordinates: EpisodeCoordinates,
    /// The shop it is in.
    pub shop: &'a Shop,
    /// The customer's state.
    pub session: &'a Session,
    /// The page to act on.
    pub page: &'a Page,
    /// Why the last action changed nothing, if it did.
    pub noop: Option<&'a NoopReason>,
    /// Turns taken so far.
    pub turn: usize,
}

impl<'a> LaneView<'a> {
    /// What the customer was told; every page but the last shows it.
    pub fn instruction(&self) -> &'a str {
        &self.shop.goals().get(self.session.goal()).instruction
    }

    /// The search for these words, as the shop reads it when it is said: on one line, in lower case.
    /// A policy that did what cannot be said could not be made to do it again from its record.
    pub(crate) fn search(&self, words: &str) -> Action {
        let line = words.replace('\n', " ");
        Action::parse(&format!("search[{line}]"), self.shop.config().compat)
    }
}

/// What a policy decides for one lane.
#[derive(Clone, Debug)]
pub struct Move {
    /// What to do; `None` if the policy cannot go on (no room left in its context).
    pub action: Option<Action>,
    /// The written thought before it, for language models.
    pub thought: Option<String>,
    /// The tokens behind it, for language models.
    pub tokens: Option<TurnTokens>,
}

impl Move {
    /// A move without tokens.
    pub fn of(action: Action) -> Self {
        Self { action: Some(action), thought: None, tokens: None }
    }
}

/// Somebody who shops.
pub trait Policy {
    /// The name used on the command line and in results.
    fn name(&self) -> &'static str;

    /// Called before a batch of `n_lanes` fresh episodes.
    fn begin(&mut self, n_lanes: usize) -> Result<(), AgentError>;

    /// One move for each lane, in the order of `lanes`.
    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError>;
}

/// Uniform over the admissible actions, with a search for one random word of the catalog's titles as one
/// action among the others. It does not read the instruction.
#[derive(Clone, Copy, Debug)]
pub struct RandomPolicy {
    seed: Seed,
}

impl RandomPolicy {
    /// A random customer.
    pub fn new(seed: Seed) -> Self {
        Self { seed }
    }

    fn choose(self, view: &LaneView<'_>) -> Action {
        let at = view.coordinates;
        let coordinates = [at.step, at.shop, u64::from(at.goal.0), at.sample, view.turn as u64];
        let mut rng = self.seed.rng(Purpose::Policy, &coordinates);
        let mut below = |n: usize| rng.random_range(0..n.max(1) as u64) as usize;
        let available = view.page.available_actions();
        let mut clicks: Vec<Action> = available.clicks().collect();
        let choice = below(clicks.len() + usize::from(available.has_search_bar));
        if choice < clicks.len() {
            return clicks.swap_remove(choice);
        }
        let products = view.shop.catalog().products();
        let words: Vec<&str> = products[below(products.len())].title.split_whitespace().collect();
        view.search(words.get(below(words.len())).unwrap_or(&"anything"))
    }
}

impl Policy for RandomPolicy {
    fn name(&self) -> &'static str {
        "random"
    }

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(self.choose(view))).collect())
    }
}

/// The rule agent of the WebShop paper: search the whole instruction, open the first result, buy.
#[derive(Clone, Copy, Debug, Default)]
pub struct RulePolicy;

impl Policy for RulePolicy {
    fn name(&self) -> &'static str {
        "rule"
    }

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        let choose = |view: &LaneView<'_>| match view.page {
            Page::Search(_) => view.search(view.instruction()),
            Page::Results(page) => match page.items.first() {
                Some(item) => Action::Click(item.id.as_str().to_lowercase()),
                None => Action::Click("back to search".into()),
            },
            _ => Action::Click("buy now".into()),
        };
        Ok(lanes.iter().map(|view| Move::of(choose(view))).collect())
    }
}

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

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(Self::choose(view))).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use webshop_env::{EnvConfig, ShopEnv};
    use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData};

    use super::*;

    fn shop() -> Arc<Shop> {
        let data = RawData::embedded(EmbeddedCatalog::Hundred);
        let catalog = Catalog::from_raw(&data, Seed(0)).unwrap();
        let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0)).unwrap();
        Arc::new(Shop::new(catalog, goals).unwrap())
    }

    /// What a random customer says in a fork after the search for lamps.
    fn said(fork: &mut ShopEnv, coordinates: EpisodeCoordinates) -> Vec<String> {
        let mut policy = RandomPolicy::new(Seed(0));
        let mut said = Vec::new();
        for turn in 1..8 {
            let (shop, session, page) = (fork.shop(), fork.session(), fork.page());
            let view = LaneView { lane: 0, coordinates, shop, session, page, noop: None, turn };
            let action = policy.act(&[view]).unwrap()[0].action.clone().unwrap();
            fork.step(&action);
            said.push(action.to_string());
        }
        said
    }

    #[test]
    fn forks_differ_by_their_sample_alone() {
        let mut env = ShopEnv::new(shop(), EnvConfig::default());
        let at = EpisodeCoordinates { step: 0, shop: 0, goal: GoalId(0), sample: 0 };
        env.step(&Action::Search("lamp".into()));
        let mut forks = env.fork(3).into_iter();
        let mut trip = |sample| said(&mut forks.next().unwrap(), at.sampled(sample));
        let first = trip(0);
        assert_eq!(first, trip(0));
        assert_ne!(first, trip(1));
    }
}
