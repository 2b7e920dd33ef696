//! The state of one episode as a value.
//!
//! A [`Session`] is a goal and a place in the shop: a few hundred bytes that can be cloned, hashed, compared
//! and stored, so forks, snapshots and replays need nothing else. [`Session::act`] takes one [`Action`] and
//! returns the [`Outcome`]; [`Session::page`] is the current page. [`Session::snapshot`] and
//! [`Session::restore`] convert it to bytes and back, [`Session::fork`] copies it, [`Session::digest`] is its
//! digest, and [`Session::walk`] takes a list of actions.
//!
//! Every action is accepted: one without a meaning on the page is a no-op. Search results are not part of a
//! session, because they follow from the query; [`crate::ShopEnv`] caches them. There is no step limit here.

pub(crate) mod address;
pub(crate) mod envelope;
mod render;
mod results;
mod snapshot;
mod walk;

pub(crate) use results::LastListing;
pub(crate) use snapshot::Fields;
pub use walk::{Transition, Walk};

use crate::action::{Action, NoopReason};
use crate::original::compat::Compat;
use crate::page::Detail;
use crate::reward::RewardBreakdown;
use crate::shop::Shop;
use results::listing_page;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use webshop_products::{GoalId, OptionGroup, ProductIdx, Selection};

/// The number of products on a page of results.
pub const RESULTS_PER_PAGE: usize = 10;

/// The state of one episode.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    goal: GoalId,
    /// The name in URLs, if not the goal's number.
    name: Option<Box<str>>,
    steps: u32,
    place: Place,
    query: Arc<str>,
    page_number: u32,
    selection: Selection,
    visited: BTreeSet<ProductIdx>,
}

/// The kind of the current page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    Search,
    Results,
    Item(ProductIdx),
    Detail(ProductIdx, Detail),
    Done(ProductIdx),
}

/// The outcome of one action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The reward of a purchase, 0 to 1; 0 for every other action.
    pub reward: f64,
    /// Whether this action bought something.
    pub terminated: bool,
    /// Why the action did nothing; `None` if it did something.
    pub noop: Option<NoopReason>,
    /// How the reward came about; `None` without a purchase.
    pub breakdown: Option<RewardBreakdown>,
}

impl Outcome {
    const MOVED: Outcome = Outcome { reward: 0.0, terminated: false, noop: None, breakdown: None };

    pub(crate) fn noop(reason: NoopReason) -> Self {
        Outcome { noop: Some(reason), ..Outcome::MOVED }
    }

    fn bought(breakdown: RewardBreakdown) -> Self {
        Outcome { reward: breakdown.total(), terminated: true, noop: None, breakdown: Some(breakdown) }
    }
}

impl Session {
    /// The start of an episode for `goal`: at the search bar.
    pub fn start(goal: GoalId) -> Session {
        Session {
            goal,
            name: None,
            steps: 0,
            place: Place::Search,
            query: Arc::default(),
            page_number: 0,
            selection: Selection::new(),
            visited: BTreeSet::new(),
        }
    }

    /// Like [`Session::start`], with a name for URLs.
    pub fn start_as(name: &str, goal: GoalId) -> Session {
        Session { name: Some(name.into()), ..Session::start(goal) }
    }

    /// A session of the first goal on an item page, without a selection and a query.
    pub(crate) fn before(product: ProductIdx) -> Session {
        Session { place: Place::Item(product), page_number: 1, ..Session::start(GoalId(0)) }
    }

    /// The goal.
    pub fn goal(&self) -> GoalId {
        self.goal
    }

    /// The number of actions taken, no-ops included.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether the current page is the one after a purchase.
    pub fn is_done(&self) -> bool {
        matches!(self.place, Place::Done(_))
    }

    /// How the reward of the purchase came about; `None` before it. `shop` must be that of the session.
    pub fn purchase(&self, shop: &Shop) -> Option<RewardBreakdown> {
        match self.place {
            Place::Done(product) => Some(shop.reward_by_id(self.goal, product, &self.selection)),
            _ => None,
        }
    }

    /// The last query; empty at the search bar.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The product of the current page; `None` at the search bar and on results.
    pub fn product(&self) -> Option<ProductIdx> {
        match self.place {
            Place::Search | Place::Results => None,
            Place::Item(product) | Place::Detail(product, _) | Place::Done(product) => Some(product),
        }
    }

    /// The option values selected for that product.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The number of the current or last page of results; `None` at the search bar.
    pub fn page_number(&self) -> Option<u32> {
        (self.place != Place::Search).then_some(self.page_number)
    }

    /// The products opened since the search bar, in catalog order.
    pub fn visited(&self) -> impl ExactSizeIterator<Item = ProductIdx> {
        self.visited.iter().copied()
    }

    /// The name in URLs: the goal's number, unless [`Session::start_as`] gave another.
    pub fn name(&self) -> String {
        match &self.name {
            Some(name) => name.to_string(),
            None => self.goal.0.to_string(),
        }
    }

    /// Takes one action. A no-op changes only the number of steps.
    pub fn act(&mut self, shop: &Shop, action: &Action) -> Outcome {
        self.act_with(shop, &mut LastListing::default(), action)
    }

    pub(crate) fn act_with(&mut self, shop: &Shop, last: &mut LastListing, action: &Action) -> Outcome {
        self.steps = self.steps.saturating_add(1);
        if self.is_done() && shop.config().compat == Compat::Repaired {
            return Outcome::noop(NoopReason::EpisodeOver);
        }
        match action {
            Action::Noop(reason) => Outcome::noop(*reason),
            Action::Search(words) => {
                let words: Arc<str> = words.as_str().into();
                match last.open(shop, &words) {
                    Ok(_) => {
                        self.query = words;
                        self.show_results(1);
                        Outcome::MOVED
                    }
                    Err(reason) => Outcome::noop(reason),
                }
            }
            Action::Click(label) => self.click(shop, last, label),
        }
    }

    fn click(&mut self, shop: &Shop, last: &mut LastListing, label: &str) -> Outcome {
        let moved = match (self.place, label) {
            (Place::Search | Place::Done(_), _) | (_, "search") => false,
            (Place::Results, _) => {
                return self.click_result(shop, last, label).map_or_else(Outcome::noop, |()| Outcome::MOVED);
            }
            (Place::Item(product), "buy now") => {
                self.place = Place::Done(product);
                return Outcome::bought(shop.reward_by_id(self.goal, product, &self.selection));
            }
            (_, "back to search") => {
                self.start_over();
                true
            }
            (_, "< prev") => {
                self.go_back(shop, last);
                true
            }
            (Place::Item(product), _) => self.click_item(shop, last, product, label),
            (Place::Detail(..), _) => false,
        };
        if moved { Outcome::MOVED } else { Outcome::noop(NoopReason::NotOnPage) }
    }

    fn start_over(&mut self) {
        *self = Session { steps: self.steps, name: self.name.take(), ..Session::start(self.goal) };
    }

    /// Goes back from an item page or a detail page.
    fn go_back(&mut self, shop: &Shop, last: &mut LastListing) {
        let seems = match shop.config().compat {
            Compat::Repaired => self.place,
            Compat::Original => self.place_by_address(shop),
        };
        match seems {
            Place::Results => self.turn_to(shop, last, self.page_number.saturating_sub(1)),
            Place::Detail(product, _) => self.place = Place::Item(product),
            _ => self.turn_to(shop, last, self.page_number),
        }
    }

    /// The page that the original assumes: the first of its pages whose name is in the URL, possibly in the
    /// query or in a selected value.
    fn place_by_address(&self, shop: &Shop) -> Place {
        let address = self.page(shop).url(&self.name());
        match self.place {
            Place::Item(_) | Place::Detail(..) if address.contains("search_results") => Place::Results,
            Place::Detail(product, _) if address.contains("item_page") => Place::Item(product),
            place => place,
        }
    }

    fn click_result(&mut self, shop: &Shop, last: &mut LastListing, label: &str) -> Result<(), NoopReason> {
        let listed = listing_page(last.known(shop, &self.query), self.page_number);
        let id = |product| shop.catalog().get(product).id.as_str();
        let link = listed.iter().copied().find(|&product| is_lower_case_of(label, id(product)));
        match (label, link) {
            ("back to search", _) => self.start_over(),
            ("next >", _) => self.turn_to(shop, last, self.page_number.saturating_add(1)),
            ("< prev", _) if self.page_number > 1 => self.turn_to(shop, last, self.page_number - 1),
            (_, None) => return Err(NoopReason::NotOnPage),
            (_, Some(product)) if shop.config().compat == Compat::Repaired => self.open(product),
            // The original takes a link with a button's name for the button, and looks the others up in upper
            // case.
            ("< prev", _) => self.turn_to(shop, last, self.page_number.saturating_sub(1)),
            ("buy now" | "description" | "features" | "reviews" | "attributes", _) => {
                return Err(NoopReason::NoSuchProduct);
            }
            _ => {
                let called = shop.catalog().find(&label.to_uppercase());
                self.open(called.ok_or(NoopReason::NoSuchProduct)?);
            }
        }
        Ok(())
    }

    fn open(&mut self, product: ProductIdx) {
        self.place = Place::Item(product);
        self.visited.insert(product);
    }

    fn click_item(&mut self, shop: &Shop, last: &mut LastListing, product: ProductIdx, label: &str) -> bool {
        let config = shop.config();
        let groups = &shop.catalog().get(product).options;
        let group = group_to_choose(groups, &self.selection, label, config.compat);
        let is_original = config.compat == Compat::Original;
        if is_original
            && group.is_some()
            && label == "next >"
            && self.place_by_address(shop) == Place::Results
        {
            self.turn_to(shop, last, self.page_number.saturating_add(1));
            return true;
        }
        let named = Detail::ALL.into_iter().find(|detail| is_lower_case_of(label, detail.label()));
        // The original takes a value `attributes` for the button, even if there is no button.
        let is_button = |detail: &Detail| {
            *detail != Detail::Attributes || config.shows_attributes || (is_original && group.is_some())
        };
        match (named.filter(is_button), group) {
            (Some(detail), _) => self.place = Place::Detail(product, detail),
            (None, Some(group)) => self.selection.choose(&group.name, label),
            (None, None) => return false,
        }
        true
    }

    /// Opens a page of the current query's results, drawing random results again.
    fn turn_to(&mut self, shop: &Shop, last: &mut LastListing, page_number: u32) {
        last.turn(shop, &self.query);
        self.show_results(page_number);
    }

    /// Opens a page of the current query's results and clears the selection.
    fn show_results(&mut self, page_number: u32) {
        self.place = Place::Results;
        self.page_number = page_number;
        self.selection.clear();
    }
}

/// Whether `text` in lower case is `label`.
fn is_lower_case_of(label: &str, text: &str) -> bool {
    match text.is_ascii() {
        true => {
            text.len() == label.len() && text.bytes().map(|byte| byte.to_ascii_lowercase()).eq(label.bytes())
        }
        false => text.to_lowercase() == label,
    }
}

/// Whether a click on an item page can select an option value of this text: an action can contain it, and no button
/// of the page has its name.
pub(crate) fn is_selectable(text: &str, compat: Compat, shows_attributes: bool) -> bool {
    let is_detail = |detail: Detail| {
        let is_button = detail != Detail::Attributes || shows_attributes || compat == Compat::Original;
        is_button && is_lower_case_of(text, detail.label())
    };
    let is_button = matches!(text, "search" | "buy now" | "back to search" | "< prev");
    let click = Action::Click(text.to_owned());
    !is_button
        && !Detail::ALL.into_iter().any(is_detail)
        && Action::parse(&click.to_string(), compat) == click
}

/// The group in which a clicked value is selected. In the original it is the last group that has the value.
/// The repaired rules take the last of these in which the value is not selected yet, so that all can be
/// reached.
pub(crate) fn group_to_choose<'a>(
    groups: &'a [OptionGroup],
    selection: &Selection,
    label: &str,
    compat: Compat,
) -> Option<&'a OptionGroup> {
    let has_label = |group: &&OptionGroup| group.values.iter().any(|value| *value.text == *label);
    let is_open = |group: &&OptionGroup| selection.get(&group.name) != Some(label);
    let mut from_the_last = groups.iter().rev().filter(has_label);
    let last = from_the_last.next()?;
    match compat {
        Compat::Repaired if !is_open(&last) => from_the_last.find(is_open).or(Some(last)),
        _ => Some(last),
    }
}
