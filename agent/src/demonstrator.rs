//! Shopping trips to learn from, as a careful or a hasty customer makes them.
//!
//! Both search for what is wanted, in the words and order of the instruction. Then
//!
//! - a [`Manner::Careful`] customer makes the oracle's purchase in steps that follow from what the page shows,
//!   so that they can be imitated: goes through the listed candidates in page order and writes down for each
//!   wanted attribute what its title says there and whether that is it, then its price, the limit, and
//!   whether that is in reach, stopping at the first candidate that has all. Who wants a `rubber sole` writes
//!   `⟨mark 1⟩ rubber lining no ⟨mark 2⟩ rubber sole yes $034 $050 yes`: reading comes before judging. One
//!   that turns out to lack a wanted option is left again and the list continued. The trip ends in a purchase
//!   of reward exactly 1; a goal for which it does not is not demonstrated so;
//! - a [`Manner::Hasty`] customer opens the first result and buys it as it is, like the rule agent of the
//!   WebShop paper. Most such trips fail, as do most recorded trips of people.
//!
//! Nothing in a demonstration says which manner is better: that is left for the learner to find out.

use webshop_env::{Action, Page, Purchase, ResultItem, ResultsPage, Session, Shop};
use webshop_products::{Goal, GoalId, ProductIdx};

use crate::prompt::{Piece, dollars, mark, weighed};

/// Trips longer than this many actions are not demonstrated; the shop's own limit is 15.
const MAX_ACTIONS: usize = 12;
/// Result pages a customer turns at most.
const MAX_PAGES: u32 = 2;

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
        let mut trip = Trip {
            shop: self.shop,
            goal,
            session: Session::start(goal.id),
            turns: Vec::new(),
            results_shown: self.results_shown,
            judged: 0,
        };
        trip.act(Vec::new(), Action::Search(wanted_words(goal).join(" ")));
        while trip.turns.len() < MAX_ACTIONS {
            match trip.session.page(self.shop) {
                Page::Results(page) if manner == Manner::Hasty => {
                    trip.open(Vec::new(), page.items.first()?);
                    trip.act(Vec::new(), Action::Click("buy now".into()));
                    return Some(trip.turns);
                }
                Page::Results(page) => trip.choose(&page)?,
                Page::Item(page) => {
                    let purchase = self.shop.best_purchase_of(goal, page.product);
                    if purchase.breakdown.is_success() {
                        return trip.buy(&purchase);
                    }
                    trip.act(Vec::new(), Action::Click("< prev".into()));
                }
                _ => return None,
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
    results_shown: usize,
    /// Candidates of the current results page already judged.
    judged: usize,
}

impl Trip<'_> {
    fn act(&mut self, thought: Vec<Piece>, action: Action) {
        self.session.act(self.shop, &action);
        self.turns.push(DemonstratedTurn { thought, action });
    }

    fn open(&mut self, thought: Vec<Piece>, item: &ResultItem) {
        self.act(thought, Action::Click(item.id.as_str().to_lowercase()));
    }

    /// One careful turn on a results page: opens a candidate or turns the page.
    fn choose(&mut self, page: &ResultsPage) -> Option<()> {
        let (thought, choice) = self.judge(page);
        match choice {
            Some(k) => self.open(thought, &page.items[k]),
            None if page.page_number < MAX_PAGES => {
                self.judged = 0;
                self.act(thought, Action::Click("next >".into()));
            }
            None => return None,
        }
        Some(())
    }

    /// Goes through the candidates not judged yet, in page order, up to the first that has all.
    fn judge(&mut self, page: &ResultsPage) -> (Vec<Piece>, Option<usize>) {
        let mut thought = Vec::new();
        for (k, item) in page.items.iter().enumerate().take(self.results_shown).skip(self.judged) {
            self.judged = k + 1;
            thought.push(Piece::special(mark(k + 1)));
            if self.has_all(item.product, &item.title.to_lowercase(), &mut thought) {
                return (thought, Some(k));
            }
        }
        (thought, None)
    }

    /// Writes the line about one candidate and says whether nothing is missing.
    fn has_all(&self, product: ProductIdx, title: &str, thought: &mut Vec<Piece>) -> bool {
        for attribute in in_order_of_instruction(self.goal, self.goal.attributes.iter()) {
            let read = what_is_read(title, &attribute);
            let present = title.contains(&attribute);
            thought.push(Piece::words(format!("{read} {}", yes_or_no(present))));
            if !present {
                return false;
            }
        }
        let price = &self.shop.catalog().get(product).price;
        let in_reach = self.goal.price_limit.is_none_or(|limit| price.high <= limit);
        let limit = self.goal.price_limit.map_or(String::new(), |limit| format!("{} ", dollars(limit)));
        thought.push(Piece::words(format!("{} {limit}{}", weighed(price), yes_or_no(in_reach))));
        in_reach
    }

    /// Chooses the options in page order, buys, and hands the trip over.
    fn buy(mut self, purchase: &Purchase) -> Option<Vec<DemonstratedTurn>> {
        for label in self.shop.clicks_to_choose(purchase.product, &purchase.selection) {
            self.act(Vec::new(), Action::Click(label));
        }
        let action = Action::Click("buy now".into());
        let outcome = self.session.act(self.shop, &action);
        self.turns.push(DemonstratedTurn { thought: Vec::new(), action });
        outcome.breakdown?.is_success().then_some(self.turns)
    }
}

/// What the query asks for: the type, the attributes and the option values, each as it is wanted, in the
/// order in which the instruction mentions them; what it does not mention word for word comes last.
fn wanted_words(goal: &Goal) -> Vec<String> {
    let options = goal.options.iter().map(|option| &option.value);
    in_order_of_instruction(goal, std::iter::once(&goal.query).chain(&goal.attributes).chain(options))
}

fn in_order_of_instruction<'g>(goal: &Goal, wanted: impl Iterator<Item = &'g String>) -> Vec<String> {
    let instruction = goal.instruction.to_lowercase();
    let mut placed: Vec<(usize, String)> = wanted
        .map(|words| words.to_lowercase())
        .map(|words| (instruction.find(&words).unwrap_or(usize::MAX), words))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, words)| words).collect()
}

/// What stands in `title` where `attribute` is looked for: the attribute itself, else as many words from the
/// first place where its first word stands, else nothing but that word. Both in lower case.
fn what_is_read(title: &str, attribute: &str) -> String {
    if title.contains(attribute) {
        return attribute.to_string();
    }
    let wanted: Vec<&str> = attribute.split_whitespace().collect();
    let words = || title.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    match words().position(|word| Some(&word) == wanted.first()) {
        Some(place) => words().skip(place).take(wanted.len()).collect::<Vec<_>>().join(" "),
        None => wanted.first().copied().unwrap_or_default().to_string(),
    }
}

fn yes_or_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_read_before_it_is_judged() {
        let title = "nordvale boots, rubber lining, mesh sole";
        assert_eq!(what_is_read(title, "mesh sole"), "mesh sole");
        assert_eq!(what_is_read(title, "rubber sole"), "rubber lining");
        assert_eq!(what_is_read(title, "leather sole"), "leather");
    }
}
