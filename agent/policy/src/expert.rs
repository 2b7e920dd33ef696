//! Shopping trips to learn from, as a careful or a hasty customer makes them.
//!
//! Both search for what is wanted, in the words and order of the instruction. Then
//!
//! - a [`Manner::Careful`] customer opens the listed candidates in turn, and on each item page writes down what
//!   the title says of each wanted attribute, how what is wanted ends, and whether that is the same; then the
//!   price, the limit, and whether that is in reach. Who wants a `rubber sole` in the `guest room` for less than
//!   $50 writes of one candidate `rubber lining sole no` and goes back, and of the next `rubber sole sole yes
//!   guest unknown $034 $050 yes` and buys: reading comes before judging, the judgment is of two things that
//!   stand side by side, and what the title does not tell is left to the search engine, which has read the whole
//!   page. The trip ends in a purchase of reward exactly 1; a goal for which it does not is not demonstrated so;
//! - a [`Manner::Hasty`] customer opens the first result and buys it as it is, like the rule agent of the
//!   WebShop paper. Most such trips fail, as do most recorded trips of people.
//!
//! Nothing in a demonstration says which manner is better: that is left for the learner to find out.

use std::sync::Arc;

use webshop_env::{Action, ItemPage, Page, Purchase, ResultItem, Session, Shop};
use webshop_products::{Goal, GoalId};

use crate::prompt_format::compact_renderer::{Piece, dollars, weighed};

/// Trips longer than this many actions are not demonstrated; the shop's own limit is 15.
const MAX_ACTIONS: usize = 12;

/// How a trip is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Manner {
    /// Thinks in writing before choosing, and chooses what is wanted.
    Careful,
    /// Buys the first result as it is.
    Hasty,
}

/// One agent turn to imitate.
#[derive(Clone, Debug, PartialEq)]
pub struct DemonstratedTurn {
    /// The written thought, empty if none.
    pub thought: Vec<Piece>,
    /// What is done.
    pub action: Action,
}

impl DemonstratedTurn {
    /// Whether it leaves a candidate for what its title says, and not for its price.
    pub fn refuses_by_title(&self) -> bool {
        let last = self.thought.last().map_or("", Piece::text);
        last.ends_with(" no") && !last.starts_with(" $")
    }
}

/// Writes trips for goals of one shop.
#[derive(Clone, Copy, Debug)]
pub struct Demonstrator<'a> {
    shop: &'a Shop,
    results_shown: usize,
}

impl<'a> Demonstrator<'a> {
    /// A demonstrator that sees the first `results_shown` candidates of a results page, as the model does.
    pub fn new(shop: &'a Shop, results_shown: usize) -> Self {
        Self { shop, results_shown }
    }

    /// The turns of a trip for `goal`, or `None` if this manner of shopping has none to show: a careful one
    /// without a purchase of reward 1, a hasty one without a result.
    pub fn trip(&self, goal: GoalId, manner: Manner) -> Option<Vec<DemonstratedTurn>> {
        let goal = self.shop.goals().get(goal);
        let mut trip = Trip { shop: self.shop, goal, session: Session::start(goal.id), turns: Vec::new() };
        trip.act(Vec::new(), Action::Search(wanted_words(goal).join(" ")));
        let mut candidates = match trip.session.page(self.shop) {
            Page::Results(page) => page.items.into_iter().take(self.results_shown),
            _ => return None,
        };
        while trip.turns.len() < MAX_ACTIONS {
            trip.open(&candidates.next()?);
            if manner == Manner::Hasty {
                trip.act(Vec::new(), Action::Click("buy now".into()));
                return Some(trip.turns);
            }
            let Page::Item(page) = trip.session.page(self.shop) else { return None };
            match trip.judge(&page) {
                (thought, true) => return trip.buy(thought, &page),
                (thought, false) => trip.act(thought, Action::Click("< prev".into())),
            }
        }
        None
    }
}

struct Trip<'a> {
    shop: &'a Shop,
    goal: &'a Goal,
    session: Session,
    turns: Vec<DemonstratedTurn>,
}

impl Trip<'_> {
    fn act(&mut self, thought: Vec<Piece>, action: Action) {
        self.session.act(self.shop, &action);
        self.turns.push(DemonstratedTurn { thought, action });
    }

    fn open(&mut self, item: &ResultItem) {
        self.act(Vec::new(), Action::Click(item.id.as_str().to_lowercase()));
    }

    /// Reads `page` and says whether nothing speaks against it.
    fn judge(&self, page: &ItemPage) -> (Vec<Piece>, bool) {
        let mut thought = Vec::new();
        let title = page.title.to_lowercase();
        for attribute in in_order_of_instruction(self.goal, &*self.goal.attributes) {
            let note = noted(&title, &attribute);
            let is_refused = note.ends_with(" no");
            thought.push(Piece::words(note));
            if is_refused {
                return (thought, false);
            }
        }
        let price = &self.shop.catalog().get(page.product).price;
        let in_reach = self.goal.price_limit.is_none_or(|limit| price.high <= limit);
        let limit = self.goal.price_limit.map_or(String::new(), |limit| format!("{} ", dollars(limit)));
        let verdict = if in_reach { "yes" } else { "no" };
        thought.push(Piece::words(format!("{} {limit}{verdict}", weighed(price))));
        (thought, in_reach)
    }

    /// Chooses the options in page order, buys, and hands the trip over if that was right.
    fn buy(mut self, thought: Vec<Piece>, page: &ItemPage) -> Option<Vec<DemonstratedTurn>> {
        let purchase: Purchase = self.shop.best_purchase_of(self.goal, page.product);
        let choices = self.shop.clicks_to_choose(purchase.product, &purchase.selection);
        let clicks = choices.into_iter().chain(["buy now".to_string()]).map(Action::Click);
        let mut thought = Some(thought);
        for click in clicks {
            self.act(thought.take().unwrap_or_default(), click);
        }
        purchase.breakdown.is_success().then_some(self.turns)
    }
}

/// What the query asks for: the type, the attributes and the option values, each as it is wanted, in the
/// order in which the instruction mentions them; what it does not mention word for word comes last.
pub(crate) fn wanted_words(goal: &Goal) -> Vec<String> {
    let options = goal.options.iter().map(|option| &option.value);
    in_order_of_instruction(goal, std::iter::once(&goal.query).chain(&*goal.attributes).chain(options))
}

fn in_order_of_instruction<'g>(goal: &Goal, wanted: impl IntoIterator<Item = &'g Arc<str>>) -> Vec<String> {
    let instruction = goal.instruction.to_lowercase();
    let mut placed: Vec<(usize, String)> = wanted
        .into_iter()
        .map(|words| words.to_lowercase())
        .map(|words| (instruction.find(&words).unwrap_or(usize::MAX), words))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, words)| words).collect()
}

/// What is noted of a wanted `attribute` after reading `title`, both in lower case: as many words as it has from the
/// place where it stands, or else from the first place where its first word does; then its words after the first; and
/// whether they are the same. Where not even the first word stands, that word and "unknown".
fn noted(title: &str, attribute: &str) -> String {
    let wanted: Vec<&str> = attribute.split_whitespace().collect();
    let words = || title.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let first = wanted.first().copied().unwrap_or_default();
    let read: Vec<&str> = match words().position(|word| word == first) {
        _ if title.contains(attribute) => wanted.clone(),
        Some(place) => words().skip(place).take(wanted.len()).collect(),
        None => return format!("{first} unknown"),
    };
    let verdict = if read == wanted { "yes" } else { "no" };
    read.into_iter().chain(wanted.into_iter().skip(1)).chain([verdict]).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_read_before_it_is_judged() {
        let title = "nordvale boots, rubber lining, mesh sole";
        assert_eq!(noted(title, "mesh sole"), "mesh sole sole yes");
        assert_eq!(noted(title, "rubber sole"), "rubber lining sole no");
        assert_eq!(noted(title, "leather sole"), "leather unknown");
        assert_eq!(noted(title, "boots"), "boots yes");
        assert_eq!(noted("oil-free shampoo", "oil free"), "oil free free yes");
    }
}
