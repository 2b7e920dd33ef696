//! Demonstrations by someone who knows the instruction and the pages, and no hidden goal.
//!
//! A [`BrowsingExpert`] shops like the rule `named-pairs` ([`crate::CandidatePolicy`]), with habits and faults that
//! people have ([`BrowsingHabits`]):
//!
//! - It searches for the instruction without the price clause.
//! - It opens the listed products in the order of the word pairs that title and instruction share, or in the order
//!   of the page.
//! - On an item page it writes each option with the value that the instruction names, or `no`; then the price, the
//!   limit and whether the price is within it. It goes back if the price is too high, and if an option has no named
//!   value, whether or not the instruction wants one; if it [checks options](BrowsingHabits::checks_options), also if
//!   the page lacks a value that the instruction states as `name: value`, for which it writes the name and `no`.
//!   A price that is a range counts by its highest amount, or [by its lowest](BrowsingHabits::by_lowest_price).
//! - It opens the features of some products and writes the phrases of the instruction, each with the words that title
//!   or features have for it and `yes`, or with `no` if they have none. The note ends at the first `no`. Back on the
//!   item page it writes the last word of the note again.
//! - It rejects some of these products, whatever the note says, and buys most of the others: it **rarely rejects by a note
//!   that ends in `no`**.
//! - If it [searches again](BrowsingHabits::searches_again), it opens two products of the first search; where it buys
//!   neither, it searches for the kind of the product and the stated options alone.
//!
//! So few demonstrations show that reading features pays. A learner that rejects products if and only if the note
//! does not end in `yes` does what no demonstrator does for long.

mod habits;
mod notes;

use std::collections::BTreeSet;

use rand::Rng;
use webshop_env::{Action, ItemPage, Page, ResultItem, ResultsPage, Session, Shop};
use webshop_products::{GoalId, ProductIdx};

pub use crate::expert::browsing::habits::BrowsingHabits;
use crate::expert::browsing::notes::{ItemNote, features_note};
use crate::expert::turn::ExpertTurn;
use crate::instruction::{Instruction, stems};

/// How many products are opened after a search.
#[derive(Clone, Copy, Debug)]
struct OpenLimit {
    /// The most products.
    n_products: usize,
    /// The last product is bought in any case. One that is opened after so many actions is the last: if it were put
    /// back, the default limit of 15 steps would leave no room for another with its options. `None` if none is the last.
    last_after: Option<usize>,
}

/// After the only search. There is room to read every product.
const ONLY_SEARCH: OpenLimit = OpenLimit { n_products: 4, last_after: Some(6) };

/// After the first of two searches.
const FIRST_SEARCH: OpenLimit = OpenLimit { n_products: 2, last_after: None };

/// After the second of two.
const SECOND_SEARCH: OpenLimit = OpenLimit { n_products: 3, last_after: Some(10) };

/// Writes demonstrations from instructions and pages alone.
#[derive(Clone, Copy, Debug)]
pub struct BrowsingExpert<'a> {
    shop: &'a Shop,
    results_shown: usize,
    habits: BrowsingHabits,
}

/// A demonstrated episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstrated {
    /// The turns in order; the last one buys.
    pub turns: Vec<ExpertTurn>,
    /// The reward of the purchase, 0 to 1.
    pub reward: f64,
}

impl<'a> BrowsingExpert<'a> {
    /// An expert that sees the first `results_shown` products of a results page, as the model does.
    pub fn new(shop: &'a Shop, results_shown: usize, habits: BrowsingHabits) -> Self {
        Self { shop, results_shown, habits }
    }

    /// An episode for `goal`, of which only the instruction is read; `rng` decides between the habits. `None` if
    /// a search has no result.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn episode(&self, goal: GoalId, rng: &mut impl Rng) -> Option<Demonstrated> {
        self.finish(goal, &[], rng)
    }

    /// The rest of an episode for `goal` after the actions `so_far` of someone else. On an item page it begins with the
    /// note on that product. The products that were opened and the searches count as its own. `None` if a search has no
    /// result, and if the actions end on a description, on features, or in a purchase.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn finish(&self, goal: GoalId, so_far: &[Action], rng: &mut impl Rng) -> Option<Demonstrated> {
        let instruction = Instruction::parse(&self.shop.goals().get(goal).instruction);
        let mut browser = Browser::new(self, instruction, goal);
        so_far.iter().for_each(|action| browser.follow(action));
        let can_go_on = !matches!(browser.page(), Page::Detail(_) | Page::Done(_));
        browser.by_pairs = rng.random::<f64>() < self.habits.by_pairs;
        let is_bought = can_go_on && browser.finish(rng);
        is_bought.then_some(Demonstrated { turns: browser.turns, reward: browser.reward })
    }
}

/// A demonstration that is being made.
struct Browser<'a> {
    expert: &'a BrowsingExpert<'a>,
    instruction: Instruction,
    session: Session,
    /// Whether products are opened by the word pairs shared with the instruction.
    by_pairs: bool,
    /// Searches so far, by anyone.
    n_searches: usize,
    /// Products that someone else opened since the last search.
    n_opened_before: usize,
    opened: BTreeSet<ProductIdx>,
    /// The stems of the listed titles and of the features that were read.
    seen: BTreeSet<String>,
    turns: Vec<ExpertTurn>,
    reward: f64,
}

impl<'a> Browser<'a> {
    fn new(expert: &'a BrowsingExpert<'a>, instruction: Instruction, goal: GoalId) -> Self {
        Self {
            expert,
            instruction,
            session: Session::start(goal),
            by_pairs: false,
            n_searches: 0,
            n_opened_before: 0,
            opened: BTreeSet::new(),
            seen: BTreeSet::new(),
            turns: Vec::new(),
            reward: 0.0,
        }
    }

    /// Takes an action of someone else.
    fn follow(&mut self, action: &Action) {
        if self.session.act(self.expert.shop, action).noop.is_some() {
            return;
        }
        let page = self.page();
        self.see(&page);
        match (&page, action) {
            (Page::Results(_), Action::Search(_)) => {
                (self.n_searches, self.n_opened_before) = (self.n_searches + 1, 0)
            }
            (Page::Item(item), _) => self.n_opened_before += usize::from(self.opened.insert(item.product)),
            _ => {}
        }
    }

    /// Goes on until a purchase, and whether there was one. The page is not a product's description or features.
    fn finish(&mut self, rng: &mut impl Rng) -> bool {
        if let Page::Item(page) = self.page() {
            let limit = self.limit();
            let is_last = |last| self.n_opened_before >= limit.n_products || self.n_actions() > last;
            let is_last = limit.last_after.is_some_and(is_last);
            self.buy_or_go_back(page, is_last, rng);
        }
        while !self.is_bought() {
            let listed = match self.page() {
                Page::Results(listed) => Some(listed),
                _ => self.search(),
            };
            let Some(listed) = listed else { return false };
            let limit = self.limit();
            if !self.open_until_bought(&listed, limit, rng) {
                if limit.last_after.is_some() {
                    return false;
                }
                self.click("back to search".into());
            }
        }
        true
    }

    /// How many products are opened after the last search.
    fn limit(&self) -> OpenLimit {
        match (self.expert.habits.searches_again, self.n_searches) {
            (false, _) => ONLY_SEARCH,
            (true, 0 | 1) => FIRST_SEARCH,
            (true, _) => SECOND_SEARCH,
        }
    }

    /// The results page of the next search.
    fn search(&mut self) -> Option<ResultsPage> {
        let is_again = self.expert.habits.searches_again && self.n_searches > 0;
        let query =
            if is_again { self.instruction.kind_and_options() } else { self.instruction.query().into() };
        self.act(String::new(), Action::Search(query));
        (self.n_searches, self.n_opened_before) = (self.n_searches + 1, 0);
        let page = self.page();
        self.see(&page);
        let Page::Results(results) = page else { return None };
        Some(results)
    }

    /// Keeps the words of a page.
    fn see(&mut self, page: &Page) {
        match page {
            Page::Results(results) => {
                self.seen.extend(results.items.iter().flat_map(|item| stems(&item.title)))
            }
            Page::Detail(detail) => self.seen.extend(detail.lines.iter().flat_map(|line| stems(line))),
            _ => {}
        }
    }

    /// Opens products until one is bought, and whether one was. Products that were opened before are left out, unless
    /// there are no others.
    fn open_until_bought(&mut self, results: &ResultsPage, limit: OpenLimit, rng: &mut impl Rng) -> bool {
        let shown = results.items.iter().take(self.expert.results_shown);
        let (mut items, again): (Vec<&ResultItem>, Vec<&ResultItem>) =
            shown.partition(|item| !self.opened.contains(&item.product));
        if items.is_empty() {
            items = again;
        }
        if self.by_pairs {
            items.sort_by_key(|item| std::cmp::Reverse(self.instruction.shared_pairs(&item.title)));
        }
        let at_least = usize::from(limit.last_after.is_some());
        items.truncate(limit.n_products.saturating_sub(self.n_opened_before).max(at_least));
        for (place, item) in items.iter().enumerate() {
            let n_actions = self.n_actions();
            let is_last = limit.last_after.is_some_and(|last| place + 1 == items.len() || n_actions >= last);
            self.click(item.id.as_str().to_lowercase());
            self.opened.insert(item.product);
            let Page::Item(page) = self.page() else { return false };
            if self.buy_or_go_back(page, is_last, rng) || is_last {
                break;
            }
        }
        self.is_bought()
    }

    /// Actions so far, by anyone.
    fn n_actions(&self) -> usize {
        self.session.steps() as usize
    }

    fn act(&mut self, thought: String, action: Action) {
        let outcome = self.session.act(self.expert.shop, &action);
        self.reward = outcome.reward;
        self.turns.push(ExpertTurn { thought, action });
    }

    fn click(&mut self, label: String) {
        self.act(String::new(), Action::Click(label));
    }

    fn page(&self) -> Page {
        self.session.page(self.expert.shop)
    }

    fn is_bought(&self) -> bool {
        self.session.is_done()
    }

    /// Buys the product of `page`, the open one, or goes back to the results and returns false. The last one is bought in
    /// any case.
    fn buy_or_go_back(&mut self, page: ItemPage, is_last: bool, rng: &mut impl Rng) -> bool {
        let habits = self.expert.habits;
        let note = ItemNote::of(&page, &self.instruction, habits);
        if !note.is_fitting && !is_last {
            self.act(note.text, Action::Click("< prev".into()));
            return false;
        }
        let mut thought = note.text;
        if note.is_fitting && rng.random::<f64>() < habits.reads_features {
            self.act(std::mem::take(&mut thought), Action::Click("features".into()));
            let shown = self.page();
            self.see(&shown);
            let Page::Detail(features) = shown else { return false };
            let note = features_note(&self.instruction, &page, &features, &self.seen);
            thought = note.split(' ').next_back().unwrap_or_default().into();
            self.act(note, Action::Click("< prev".into()));
            if !is_last && rng.random::<f64>() < habits.rejects_after(&thought) {
                self.act(thought, Action::Click("< prev".into()));
                return false;
            }
        }
        let to_select = note.selected.into_iter().filter(|value| !is_selected(&page, value));
        for label in to_select.chain(["buy now".into()]) {
            self.act(std::mem::take(&mut thought), Action::Click(label));
        }
        true
    }
}

/// Whether an option of `page` has this value selected.
fn is_selected(page: &ItemPage, value: &str) -> bool {
    page.options.iter().flat_map(|list| &list.values).any(|one| one.clicked && *one.text == *value)
}

#[cfg(test)]
mod tests;
