//! Who acts: the policies that need no model.
//!
//! A [`Policy`] is shown the lanes that wait for a move and answers one [`Move`] for each, in order. It
//! may use what a customer sees (the page) and, if it says so in its name, more: the oracle knows the
//! hidden goal. A [`PagePolicy`] makes do with what any shop's page shows, so it can shop at a site too.
//! All randomness comes from the seed and the lane's own coordinates.

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use webshop_env::{Action, AvailableActions, Compat, ForeignPage, NodeKind, NoopReason, Page, Session, Shop};
use webshop_products::{Purpose, Seed};

use crate::dialect::Utterance;
use crate::episode::{EpisodeCoordinates, PromptStamp, TurnTokens};
use crate::error::AgentError;
use crate::generate::StopReason;

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
    /// Turns after which the episode is cut.
    pub max_steps: u32,
}

impl<'a> LaneView<'a> {
    /// What the customer was told; every page but the last shows it.
    pub fn instruction(&self) -> &'a str {
        &self.shop.goals().get(self.session.goal()).instruction
    }

    /// What the page shows of itself.
    pub fn seen(&self) -> SeenPage {
        let products = match self.page {
            Page::Results(page) => page.items.iter().map(|item| item.id.as_str().to_lowercase()).collect(),
            _ => Vec::new(),
        };
        SeenPage {
            instruction: self.instruction().to_owned(),
            available: self.page.available_actions(),
            products,
            rules: self.shop.config().compat,
        }
    }

    /// The search for these words, as the shop reads it when it is said.
    pub(crate) fn search(&self, words: &str) -> Action {
        said_search(words, self.shop.config().compat)
    }
}

/// What a page shows of itself, be it our shop's or a site's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPage {
    /// What the customer was told.
    pub instruction: String,
    /// What can be done.
    pub available: AvailableActions,
    /// The labels of the listed products, first to last; none but on a page of results.
    pub products: Vec<String>,
    /// By which what is said is read.
    pub rules: Compat,
}

impl SeenPage {
    /// The page of a site, to a customer who was told `instruction`.
    pub fn of_site(page: &ForeignPage, instruction: &str) -> Self {
        let links = page.nodes.iter().filter(|node| node.kind == NodeKind::Link);
        Self {
            instruction: instruction.to_owned(),
            available: page.available_actions.clone(),
            products: links.map(|link| link.text.to_lowercase()).collect(),
            // A site gets the words themselves, so it reads whatever can be said.
            rules: Compat::Repaired,
        }
    }

    fn search(&self, words: &str) -> Action {
        said_search(words, self.rules)
    }
}

/// The search for these words, as it is read when it is said: on one line, in lower case. A policy that
/// did what cannot be said could not be made to do it again from its record.
fn said_search(words: &str, rules: Compat) -> Action {
    let line = words.replace('\n', " ");
    Action::parse(&format!("search[{line}]"), rules)
}

/// What a policy decides for one lane.
#[derive(Clone, Debug)]
pub struct Move {
    /// What to do; `None` if the policy cannot go on (no room left in its context).
    pub action: Option<Action>,
    /// The written thought before it, for language models.
    pub thought: Option<String>,
    /// The whole answer as it was written, for language models.
    pub answer: Option<String>,
    /// Whether the answer has the form that its dialect asks for.
    pub is_well_formed: bool,
    /// Whether the customer leaves the shop; the action is then none.
    pub leaves: bool,
    /// Why the answer ended, as far as that is known.
    pub stop: Option<StopReason>,
    /// The tokens behind it, for language models.
    pub tokens: Option<TurnTokens>,
}

impl Move {
    /// A move without words or tokens.
    pub fn of(action: Action) -> Self {
        Self {
            action: Some(action),
            thought: None,
            answer: None,
            is_well_formed: true,
            leaves: false,
            stop: None,
            tokens: None,
        }
    }

    /// Nothing more can be done.
    pub fn none() -> Self {
        Self { action: None, ..Self::of(Action::Noop(NoopReason::Malformed)) }
    }

    /// A written answer and what it was understood as.
    pub fn said(answer: String, utterance: Utterance, tokens: Option<TurnTokens>) -> Self {
        Self {
            action: Some(utterance.action),
            thought: utterance.thought,
            answer: Some(answer),
            is_well_formed: utterance.is_well_formed,
            leaves: utterance.leaves,
            stop: tokens.as_ref().map(|tokens| tokens.completion.stop),
            tokens,
        }
    }
}

/// Somebody who shops.
pub trait Policy {
    /// The name used on the command line and in results.
    fn name(&self) -> &'static str;

    /// Called once before anything is played on `n_lanes` lanes.
    fn begin(&mut self, n_lanes: usize) -> Result<(), AgentError>;

    /// Called before the first move of every episode, with the lane it is played on. Whoever remembers something
    /// of a lane forgets it here.
    fn enter(&mut self, _lane: usize) {}

    /// One move for each lane, in the order of `lanes`.
    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError>;

    /// How the policy is spoken to; `None` for those who do not read.
    fn prompt(&self) -> Option<PromptStamp> {
        None
    }
}

/// Somebody who can shop wherever pages are shown, as nothing else is needed.
pub trait PagePolicy: Policy {
    /// What to do on a page after `turn` turns of the trip at `coordinates`.
    fn choose(&self, seen: &SeenPage, coordinates: EpisodeCoordinates, turn: usize) -> Action;
}

/// Uniform over the admissible actions, with a search for one random word as one action among the others:
/// a word of the catalog's titles, so that the instruction is not read; or of the instruction, where pages
/// are all there is.
#[derive(Clone, Copy, Debug)]
pub struct RandomPolicy {
    seed: Seed,
}

impl RandomPolicy {
    /// A random customer.
    pub fn new(seed: Seed) -> Self {
        Self { seed }
    }

    /// Where this turn's draws come from.
    fn rng(self, at: EpisodeCoordinates, turn: usize) -> ChaCha8Rng {
        let coordinates = [at.step, at.shop, u64::from(at.goal.0), at.sample, turn as u64];
        self.seed.rng(Purpose::Policy, &coordinates)
    }

    fn choose_in(self, view: &LaneView<'_>) -> Action {
        let rng = &mut self.rng(view.coordinates, view.turn);
        click_or_search(&view.page.available_actions(), rng).unwrap_or_else(|| {
            let products = view.shop.catalog().products();
            view.search(word_of(&products[below(products.len(), rng)].title, rng))
        })
    }
}

/// A click, or nothing where the draw fell on a search.
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

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        Ok(lanes.iter().map(|view| Move::of(self.choose_in(view))).collect())
    }
}

impl PagePolicy for RandomPolicy {
    fn choose(&self, seen: &SeenPage, coordinates: EpisodeCoordinates, turn: usize) -> Action {
        let rng = &mut self.rng(coordinates, turn);
        let click = click_or_search(&seen.available, rng);
        click.unwrap_or_else(|| seen.search(word_of(&seen.instruction, rng)))
    }
}

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

    fn begin(&mut self, _n_lanes: usize) -> Result<(), AgentError> {
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Move>, AgentError> {
        let choose = |view: &LaneView<'_>| self.choose(&view.seen(), view.coordinates, view.turn);
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
    use std::collections::BTreeSet;
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
            let view =
                LaneView { lane: 0, coordinates, shop, session, page, noop: None, turn, max_steps: 15 };
            let action = policy.act(&[view]).unwrap()[0].action.clone().unwrap();
            fork.step(&action);
            said.push(action.to_string());
        }
        said
    }

    /// What is done on a page that offers this, of a shop that lists a product or none.
    fn chosen(policy: impl PagePolicy, clickables: &[&str], product: Option<&str>) -> String {
        let seen = SeenPage {
            instruction: "A lamp\nin Red".into(),
            available: AvailableActions {
                has_search_bar: clickables == ["search"],
                clickables: clickables.iter().map(|&label| label.to_owned()).collect(),
            },
            products: product.into_iter().map(str::to_owned).collect(),
            rules: Compat::Repaired,
        };
        let at = EpisodeCoordinates { step: 0, shop: 0, goal: GoalId(0), sample: 0 };
        policy.choose(&seen, at, 0).to_string()
    }

    #[test]
    fn the_rule_agent_needs_no_more_than_what_can_be_clicked() {
        let check = |clickables: &[&str], product, expected| {
            assert_eq!(chosen(RulePolicy, clickables, product), expected);
        };
        check(&["search"], None, "search[a lamp in red]");
        check(&["back to search", "b0", "b1"], Some("b0"), "click[b0]");
        check(&["back to search", "next >"], None, "click[back to search]");
        check(&["back to search", "buy now", "red"], None, "click[buy now]");
    }

    #[test]
    fn where_pages_are_all_there_is_random_customers_search_for_words_of_the_instruction() {
        let said = |seed| chosen(RandomPolicy::new(Seed(seed)), &["search"], None);
        let searches = BTreeSet::from_iter((0..40).map(said));
        assert!(
            searches.iter().eq(["search[a]", "search[in]", "search[lamp]", "search[red]"]),
            "{searches:?}"
        );
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
