//! One customer on one trip, as a value.
//!
//! A [`Session`] is a goal and a place in the shop: a few hundred bytes that can be cloned, hashed,
//! compared and stored, so forks, snapshots and replays need nothing else. [`Session::act`] moves
//! it by one [`Action`] and returns the [`Outcome`]; [`Session::page`] shows where it is.
//!
//! Both are total: an action that means nothing here passes the turn. Search results are not part
//! of a session, as they follow from the query; whoever steps often keeps them (see
//! [`crate::ShopEnv`]). There is no step limit here.

use crate::action::{Action, NoopReason};
use crate::compat::Compat;
use crate::page::{
    Detail, DetailPage, DonePage, ItemPage, OptionLabel, OptionList, Page, ResultItem, ResultsPage,
    SearchPage,
};
use crate::reward::RewardBreakdown;
use crate::shop::Shop;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use webshop_products::{GoalId, OptionGroup, Product, ProductIdx, Selection};

/// A page of results lists this many products.
pub const RESULTS_PER_PAGE: usize = 10;

/// One customer on one trip.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    goal: GoalId,
    steps: u32,
    place: Place,
    query: String,
    page_number: u32,
    selection: Selection,
    visited: BTreeSet<ProductIdx>,
}

/// Which page the customer is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Search,
    Results,
    Item(ProductIdx),
    Detail(ProductIdx, Detail),
    Done(ProductIdx),
}

/// What one action brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The purchase's worth, 0 to 1; 0 for every other action.
    pub reward: f64,
    /// Whether this action bought something.
    pub terminated: bool,
    /// Why the action did nothing, if so.
    pub noop: Option<NoopReason>,
    /// How the reward came about, if this action bought something.
    pub breakdown: Option<RewardBreakdown>,
}

impl Outcome {
    fn moved() -> Self {
        Outcome {
            reward: 0.0,
            terminated: false,
            noop: None,
            breakdown: None,
        }
    }

    pub(crate) fn passed(reason: NoopReason) -> Self {
        Outcome {
            noop: Some(reason),
            ..Outcome::moved()
        }
    }

    fn bought(breakdown: RewardBreakdown) -> Self {
        Outcome {
            reward: breakdown.total(),
            terminated: true,
            noop: None,
            breakdown: Some(breakdown),
        }
    }
}

/// The products that the last query listed, kept so that turning a page searches nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastListing {
    query: Option<String>,
    products: Vec<ProductIdx>,
}

impl LastListing {
    fn of(&mut self, shop: &Shop, query: &str) -> Result<&[ProductIdx], NoopReason> {
        if self.query.as_deref() != Some(query) {
            self.products = shop.listing(query)?;
            self.query = Some(query.to_owned());
        }
        Ok(&self.products)
    }

    /// The listing of a query that a session has searched for already.
    fn known(&mut self, shop: &Shop, query: &str) -> &[ProductIdx] {
        self.of(shop, query).unwrap_or_default()
    }
}

impl Session {
    /// A customer at the search bar who wants what `goal` says.
    pub fn start(goal: GoalId) -> Session {
        Session {
            goal,
            steps: 0,
            place: Place::Search,
            query: String::new(),
            page_number: 0,
            selection: Selection::new(),
            visited: BTreeSet::new(),
        }
    }

    /// What the customer wants.
    pub fn goal(&self) -> GoalId {
        self.goal
    }

    /// How many actions were taken, those that did nothing included.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether something was bought.
    pub fn is_done(&self) -> bool {
        matches!(self.place, Place::Done(_))
    }

    /// The last search, if it still matters; empty on the first page.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The product the customer looks at or has bought.
    pub fn product(&self) -> Option<ProductIdx> {
        match self.place {
            Place::Search | Place::Results => None,
            Place::Item(product) | Place::Detail(product, _) | Place::Done(product) => Some(product),
        }
    }

    /// What is chosen of that product.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The name by which addresses call this customer.
    pub fn name(&self) -> String {
        self.goal.0.to_string()
    }

    /// Takes one action. What means nothing on the page changes nothing but the count of steps.
    pub fn act(&mut self, shop: &Shop, action: &Action) -> Outcome {
        self.act_with(shop, &mut LastListing::default(), action)
    }

    /// The page the customer is on.
    pub fn page(&self, shop: &Shop) -> Page {
        self.page_with(shop, &mut LastListing::default())
    }

    pub(crate) fn act_with(&mut self, shop: &Shop, last: &mut LastListing, action: &Action) -> Outcome {
        self.steps += 1;
        if self.is_done() && shop.config().compat == Compat::Repaired {
            return Outcome::passed(NoopReason::EpisodeOver);
        }
        match action {
            Action::Noop(reason) => Outcome::passed(*reason),
            Action::Search(words) => match last.of(shop, words) {
                Ok(_) => {
                    self.query = words.clone();
                    self.show_results(1);
                    Outcome::moved()
                }
                Err(reason) => Outcome::passed(reason),
            },
            Action::Click(label) => self.click(shop, last, label),
        }
    }

    fn click(&mut self, shop: &Shop, last: &mut LastListing, label: &str) -> Outcome {
        let moved = match self.place {
            Place::Search | Place::Done(_) => false,
            _ if label == "back to search" => {
                let steps = self.steps;
                *self = Session {
                    steps,
                    ..Session::start(self.goal)
                };
                true
            }
            Place::Results => self.click_result(shop, last, label),
            Place::Item(product) if label == "buy now" => {
                let goal = shop.goals().get(self.goal);
                self.place = Place::Done(product);
                return Outcome::bought(shop.reward(goal, product, &self.selection));
            }
            Place::Item(product) => self.click_item(shop, product, label),
            Place::Detail(product, _) if label == "< prev" => {
                self.place = Place::Item(product);
                true
            }
            Place::Detail(..) => false,
        };
        if moved {
            Outcome::moved()
        } else {
            Outcome::passed(NoopReason::NotOnPage)
        }
    }

    fn click_result(&mut self, shop: &Shop, last: &mut LastListing, label: &str) -> bool {
        match label {
            "next >" => self.show_results(self.page_number.saturating_add(1)),
            "< prev" if self.page_number > 1 => self.show_results(self.page_number - 1),
            _ => {
                let listed = page_of(last.known(shop, &self.query), self.page_number);
                let is_it =
                    |product: &&ProductIdx| shop.catalog().get(**product).id.as_str().to_lowercase() == label;
                let Some(&product) = listed.iter().find(is_it) else {
                    return false;
                };
                self.place = Place::Item(product);
                self.visited.insert(product);
            }
        }
        true
    }

    fn click_item(&mut self, shop: &Shop, product: ProductIdx, label: &str) -> bool {
        if label == "< prev" {
            self.show_results(self.page_number);
            return true;
        }
        let shown = if shop.config().shows_attributes { 4 } else { 3 };
        let mut details = Detail::ALL[..shown].iter();
        if let Some(&detail) = details.find(|detail| detail.label().to_lowercase() == label) {
            self.place = Place::Detail(product, detail);
            return true;
        }
        let groups = &shop.catalog().get(product).options;
        match group_to_choose(groups, &self.selection, label, shop.config().compat) {
            Some(group) if label != "search" => {
                self.selection.choose(&group.name, label);
                true
            }
            _ => false,
        }
    }

    /// Opens a page of the present query's results, where nothing is chosen any more.
    fn show_results(&mut self, page_number: u32) {
        self.place = Place::Results;
        self.page_number = page_number;
        self.selection.clear();
    }

    pub(crate) fn page_with(&self, shop: &Shop, last: &mut LastListing) -> Page {
        let instruction = shop.goals().get(self.goal).instruction.clone();
        match self.place {
            Place::Search => Page::Search(SearchPage { instruction }),
            Place::Results => Page::Results(self.results_page(shop, last, instruction)),
            Place::Item(at) => Page::Item(self.item_page(shop, at, instruction)),
            Place::Detail(at, detail) => {
                let product = shop.catalog().get(at);
                Page::Detail(DetailPage {
                    instruction,
                    query: self.query.clone(),
                    page_number: self.page_number,
                    product: at,
                    id: product.id.clone(),
                    selection: self.selection.clone(),
                    detail,
                    lines: detail_lines(product, detail),
                })
            }
            Place::Done(at) => {
                let goal = shop.goals().get(self.goal);
                Page::Done(DonePage {
                    product: at,
                    id: shop.catalog().get(at).id.clone(),
                    selection: self.selection.clone(),
                    reward: shop.reward(goal, at, &self.selection).total(),
                })
            }
        }
    }

    fn results_page(&self, shop: &Shop, last: &mut LastListing, instruction: String) -> ResultsPage {
        let products = last.known(shop, &self.query);
        let items = page_of(products, self.page_number).iter().map(|&at| {
            let product = shop.catalog().get(at);
            ResultItem {
                product: at,
                id: product.id.clone(),
                title: product.title.clone(),
                price_tag: product.price.tag.clone(),
                visited: self.visited.contains(&at),
            }
        });
        ResultsPage {
            instruction,
            query: self.query.clone(),
            page_number: self.page_number,
            total: products.len(),
            items: items.collect(),
        }
    }

    fn item_page(&self, shop: &Shop, at: ProductIdx, instruction: String) -> ItemPage {
        let product = shop.catalog().get(at);
        let options = product.options.iter().map(|group| {
            let chosen = self.selection.get(&group.name);
            let values = group.values.iter().map(|value| OptionLabel {
                clicked: chosen == Some(value.text.as_str()),
                text: value.text.clone(),
            });
            OptionList {
                name: group.name.clone(),
                values: values.collect(),
            }
        });
        ItemPage {
            instruction,
            query: self.query.clone(),
            page_number: self.page_number,
            product: at,
            id: product.id.clone(),
            title: product.title.clone(),
            price_tag: product.price.tag.clone(),
            options: options.collect(),
            selection: self.selection.clone(),
            shows_attributes: shop.config().shows_attributes,
        }
    }
}

/// The slice of a listing that a page shows; empty past the end.
fn page_of(products: &[ProductIdx], page_number: u32) -> &[ProductIdx] {
    let before = (page_number as usize)
        .saturating_sub(1)
        .saturating_mul(RESULTS_PER_PAGE);
    let rest = products.get(before..).unwrap_or_default();
    &rest[..rest.len().min(RESULTS_PER_PAGE)]
}

/// Which group a clicked value goes to. The original knows only the last that has it; so that the
/// others can be reached too, a further click moves on to the last that does not hold it yet.
fn group_to_choose<'a>(
    groups: &'a [OptionGroup],
    selection: &Selection,
    label: &str,
    compat: Compat,
) -> Option<&'a OptionGroup> {
    let has_label = |group: &&OptionGroup| group.values.iter().any(|value| value.text == label);
    let last = groups.iter().rfind(has_label)?;
    let open = groups
        .iter()
        .filter(has_label)
        .rfind(|group| selection.get(&group.name) != Some(label));
    match compat {
        Compat::Repaired => open.or(Some(last)),
        Compat::Original => Some(last),
    }
}

fn detail_lines(product: &Product, detail: Detail) -> Vec<String> {
    let indented = |lines: &[String]| lines.iter().map(|line| format!(" {line}")).collect();
    match detail {
        Detail::Description => vec![product.description.clone()],
        Detail::Features => indented(&product.bullets),
        Detail::Reviews => Vec::new(),
        Detail::Attributes => {
            let mut lines: Vec<String> = indented(&product.attributes);
            lines.push(product.department.clone());
            lines.push(product.query.clone());
            lines.push(product.product_category.clone());
            lines
        }
    }
}
