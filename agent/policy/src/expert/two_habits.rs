//! Demonstrations that know the goal's criteria, with written thoughts or without any.
//!
//! An [`Expert`] searches for the required type, attributes and options in the words and order of the
//! instruction. Then
//!
//! - [`ExpertKind::Thinking`] opens the listed products in turn. On each item page it writes, for each
//!   required attribute, the words of the title, the end of the requirement and whether they are equal; then
//!   the price, the limit and whether the price is within it. For a `rubber sole` for the `guest room` under
//!   $50 it writes of one product `rubber lining sole no` and goes back, and of the next `rubber sole sole
//!   yes guest unknown $034 $050 yes` and buys: the thought copies before it compares, and what it compares
//!   is adjacent. Requirements that the title does not mention are left to the search engine, which indexes
//!   the whole page. The reward is exactly 1; other goals have no such demonstration.
//! - [`ExpertKind::NoThinking`] buys the first result without selecting options, like the rule agent of the
//!   WebShop paper. Most of these episodes fail, as most recorded human episodes do.
//!
//! Demonstrations do not say which kind is better.

use std::sync::Arc;

use webshop_env::{Action, ItemPage, Page, ResultItem, Session, Shop};
use webshop_products::{Goal, GoalId};

use crate::expert::turn::ExpertTurn;
use crate::prompt_format::compact::dollars;

/// The most actions of a demonstration. The default step limit is 15.
const MAX_ACTIONS: usize = 12;

/// How an expert acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpertKind {
    /// Writes a thought before each choice, and buys a product with reward 1.
    Thinking,
    /// Buys the first result.
    NoThinking,
}

/// Writes demonstrations for the goals of a shop.
#[derive(Clone, Copy, Debug)]
pub struct Expert<'a> {
    shop: &'a Shop,
    results_shown: usize,
}

impl<'a> Expert<'a> {
    /// An expert that sees the first `results_shown` products of a results page, as the model does.
    pub fn new(shop: &'a Shop, results_shown: usize) -> Self {
        Self { shop, results_shown }
    }

    /// The turns of an episode for `goal`. `None` if the thinking expert finds no purchase of reward 1, or
    /// the other one no result.
    ///
    /// # Panics
    /// If the goal is not one of the shop's.
    pub fn episode(&self, goal: GoalId, kind: ExpertKind) -> Option<Vec<ExpertTurn>> {
        let goal = self.shop.goals().get(goal);
        let mut episode =
            Demonstration { shop: self.shop, goal, session: Session::start(goal.id), turns: Vec::new() };
        episode.act(String::new(), Action::Search(required_words(goal).join(" ")));
        let mut results = match episode.session.page(self.shop) {
            Page::Results(page) => page.items.into_iter().take(self.results_shown),
            _ => return None,
        };
        while episode.turns.len() < MAX_ACTIONS {
            episode.open(&results.next()?);
            if kind == ExpertKind::NoThinking {
                episode.act(String::new(), Action::Click("buy now".into()));
                return Some(episode.turns);
            }
            let Page::Item(page) = episode.session.page(self.shop) else { return None };
            match episode.compare(&page) {
                (thought, true) => return episode.buy(thought, &page),
                (thought, false) => episode.act(thought, Action::Click("< prev".into())),
            }
        }
        None
    }
}

struct Demonstration<'a> {
    shop: &'a Shop,
    goal: &'a Goal,
    session: Session,
    turns: Vec<ExpertTurn>,
}

impl Demonstration<'_> {
    fn act(&mut self, thought: String, action: Action) {
        self.session.act(self.shop, &action);
        self.turns.push(ExpertTurn { thought, action });
    }

    fn open(&mut self, item: &ResultItem) {
        self.act(String::new(), Action::Click(item.id.as_str().to_lowercase()));
    }

    /// The thought on `page`, and whether the product meets the requirements as far as the page shows.
    fn compare(&self, page: &ItemPage) -> (String, bool) {
        let mut notes = Vec::new();
        let title = page.title.to_lowercase();
        for attribute in in_order_of_instruction(self.goal, &*self.goal.attributes) {
            let note = title_note(&title, &attribute);
            let is_rejected = note.ends_with(" no");
            notes.push(note);
            if is_rejected {
                return (notes.join(" "), false);
            }
        }
        let is_affordable = self.goal.price_limit.is_none_or(|limit| page.highest_price <= limit);
        notes.push(dollars(page.highest_price));
        notes.extend(self.goal.price_limit.map(dollars));
        notes.push(if is_affordable { "yes" } else { "no" }.to_owned());
        (notes.join(" "), is_affordable)
    }

    /// Selects the options in page order and buys. `None` if the reward is below 1.
    fn buy(mut self, thought: String, page: &ItemPage) -> Option<Vec<ExpertTurn>> {
        let purchase = self.shop.best_purchase_of(self.goal, page.product);
        let selections = self.shop.clicks_to_choose(purchase.product, &purchase.selection);
        let clicks = selections.into_iter().chain(["buy now".to_string()]).map(Action::Click);
        let mut thought = Some(thought);
        for click in clicks {
            self.act(thought.take().unwrap_or_default(), click);
        }
        purchase.breakdown.is_success().then_some(self.turns)
    }
}

/// The required type, attributes and option values in the order in which the instruction mentions them; what
/// it does not mention word for word comes last.
pub(crate) fn required_words(goal: &Goal) -> Vec<String> {
    let options = goal.options.iter().map(|option| &option.value);
    in_order_of_instruction(goal, std::iter::once(&goal.query).chain(&*goal.attributes).chain(options))
}

fn in_order_of_instruction<'g>(
    goal: &Goal,
    requirements: impl IntoIterator<Item = &'g Arc<str>>,
) -> Vec<String> {
    let instruction = goal.instruction.to_lowercase();
    let mut placed: Vec<(usize, String)> = requirements
        .into_iter()
        .map(|words| words.to_lowercase())
        .map(|words| (instruction.find(&words).unwrap_or(usize::MAX), words))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, words)| words).collect()
}

/// The comparison of a required `attribute` with `title`, both in lower case: as many words of the title as
/// the attribute has, from its first occurrence or else from that of its first word; then the attribute's
/// words after the first; then `yes` if they are equal, else `no`. If the title lacks the first word, that
/// word and `unknown`.
fn title_note(title: &str, attribute: &str) -> String {
    let required: Vec<&str> = attribute.split_whitespace().collect();
    let words = || title.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let first = required.first().copied().unwrap_or_default();
    let found: Vec<&str> = match words().position(|word| word == first) {
        _ if title.contains(attribute) => required.clone(),
        Some(place) => words().skip(place).take(required.len()).collect(),
        None => return format!("{first} unknown"),
    };
    let result = if found == required { "yes" } else { "no" };
    found.into_iter().chain(required.into_iter().skip(1)).chain([result]).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_copies_the_title_before_it_compares() {
        let title = "nordvale boots, rubber lining, mesh sole";
        assert_eq!(title_note(title, "mesh sole"), "mesh sole sole yes");
        assert_eq!(title_note(title, "rubber sole"), "rubber lining sole no");
        assert_eq!(title_note(title, "leather sole"), "leather unknown");
        assert_eq!(title_note(title, "boots"), "boots yes");
        assert_eq!(title_note("oil-free shampoo", "oil free"), "oil free free yes");
    }
}
