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
//! - It puts some of these products back, whatever the note says, and buys most of the others: it **rarely heeds a note
//!   that ends in `no`**.
//! - If it [searches again](BrowsingHabits::searches_again), it opens two products of the first search; where it buys
//!   neither, it searches for the kind of the product and the stated options alone.
//!
//! So few demonstrations show that reading features pays. A learner that puts products back if and only if the note
//! does not end in `yes` does what no demonstrator does for long.

use std::collections::BTreeSet;

use rand::Rng;
use serde::{Deserialize, Serialize};
use webshop_env::{Action, DetailPage, ItemPage, Page, ResultItem, ResultsPage, Session, Shop};
use webshop_products::{GoalId, ProductIdx};

use crate::expert::turn::ExpertTurn;
use crate::instruction::phrases::ReadTexts;
use crate::instruction::{Instruction, stems};
use crate::prompt_format::compact::dollars;

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

/// How often a [`BrowsingExpert`] does what. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrowsingHabits {
    /// Share of episodes that open products in the order of shared word pairs; the others in that of the page.
    pub by_pairs: f64,
    /// Share of the products without a reason to go back whose features are read.
    pub reads_features: f64,
    /// Share of the products whose features were read that are put back, whatever the note says.
    pub puts_back: f64,
    /// Share of the others with a note that ends in `no` that are put back because of it.
    pub heeds_notes: f64,
    /// Whether a product is put back if its page lacks an option that the instruction states as `name: value`; else
    /// only the options that the page has count.
    pub checks_options: bool,
    /// Whether a second search follows if none of the first two products was bought.
    pub searches_again: bool,
    /// Whether a price that is a range is judged by its lowest amount, since what the purchase costs is drawn from the
    /// range; else by the highest.
    pub by_lowest_price: bool,
}

impl Default for BrowsingHabits {
    fn default() -> Self {
        Self { by_pairs: 0.5, reads_features: 0.5, heeds_notes: 0.1, ..Self::NONE }
    }
}

impl BrowsingHabits {
    /// All shares are 0, and nothing else is done.
    pub const NONE: Self = Self {
        by_pairs: 0.0,
        reads_features: 0.0,
        puts_back: 0.0,
        heeds_notes: 0.0,
        checks_options: false,
        searches_again: false,
        by_lowest_price: false,
    };

    /// Those of the rule `stated-options`: products are opened in the order of the page, stated options are checked, a
    /// second search follows, ranges of prices count by their lowest amount, and no features are read. Nothing is left
    /// to draws.
    pub const STATED_OPTIONS: Self =
        Self { checks_options: true, searches_again: true, by_lowest_price: true, ..Self::NONE };

    /// Share of the products with this note, by its last word, that are put back.
    fn puts_back_after(&self, verdict: &str) -> f64 {
        let heeded = if verdict == "no" { self.heeds_notes } else { 0.0 };
        self.puts_back + (1.0 - self.puts_back) * heeded
    }
}

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
        let instruction = Instruction::parse(&self.shop.goals().get(goal).instruction);
        let mut browser = Browser::new(self, instruction, goal);
        let results = browser.search(browser.instruction.query().into())?;
        browser.by_pairs = rng.random::<f64>() < self.habits.by_pairs;
        if !self.habits.searches_again {
            browser.open(&results, ONLY_SEARCH, rng);
        } else if !browser.open(&results, FIRST_SEARCH, rng) {
            browser.click("back to search".into());
            let results = browser.search(browser.instruction.kind_and_options())?;
            browser.open(&results, SECOND_SEARCH, rng);
        }
        browser.is_bought().then_some(Demonstrated { turns: browser.turns, reward: browser.reward })
    }
}

/// A demonstration that is being made.
struct Browser<'a> {
    expert: &'a BrowsingExpert<'a>,
    instruction: Instruction,
    session: Session,
    /// Whether products are opened by the word pairs shared with the instruction.
    by_pairs: bool,
    opened: BTreeSet<ProductIdx>,
    /// The stems of the listed titles and of the features that were read.
    seen: BTreeSet<String>,
    turns: Vec<ExpertTurn>,
    reward: f64,
}

impl<'a> Browser<'a> {
    fn new(expert: &'a BrowsingExpert<'a>, instruction: Instruction, goal: GoalId) -> Self {
        let (opened, seen, turns) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        let session = Session::start(goal);
        Self { expert, instruction, session, by_pairs: false, opened, seen, turns, reward: 0.0 }
    }

    /// The results page of a search.
    fn search(&mut self, query: String) -> Option<ResultsPage> {
        self.act(String::new(), Action::Search(query));
        let Page::Results(results) = self.page() else { return None };
        self.seen.extend(results.items.iter().flat_map(|item| stems(&item.title)));
        Some(results)
    }

    /// Opens products until one is bought, and whether one was. Products that were opened before are left out, unless
    /// there are no others.
    fn open(&mut self, results: &ResultsPage, limit: OpenLimit, rng: &mut impl Rng) -> bool {
        let shown = results.items.iter().take(self.expert.results_shown);
        let (mut items, again): (Vec<&ResultItem>, Vec<&ResultItem>) =
            shown.partition(|item| !self.opened.contains(&item.product));
        if items.is_empty() {
            items = again;
        }
        if self.by_pairs {
            items.sort_by_key(|item| std::cmp::Reverse(self.instruction.shared_pairs(&item.title)));
        }
        items.truncate(limit.n_products);
        for (place, item) in items.iter().enumerate() {
            let n_actions = self.turns.len();
            let is_last = limit.last_after.is_some_and(|last| place + 1 == items.len() || n_actions >= last);
            self.click(item.id.as_str().to_lowercase());
            self.opened.insert(item.product);
            if self.judge(is_last, rng) || is_last {
                break;
            }
        }
        self.is_bought()
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

    /// Buys the open product, or goes back to the results and returns false. The last one is bought in any case.
    fn judge(&mut self, is_last: bool, rng: &mut impl Rng) -> bool {
        let habits = self.expert.habits;
        let Page::Item(page) = self.page() else { return false };
        let note = ItemNote::of(&page, &self.instruction, habits);
        if !note.is_fitting && !is_last {
            self.act(note.text, Action::Click("< prev".into()));
            return false;
        }
        let mut thought = note.text;
        if note.is_fitting && rng.random::<f64>() < habits.reads_features {
            self.act(std::mem::take(&mut thought), Action::Click("features".into()));
            let Page::Detail(features) = self.page() else { return false };
            self.seen.extend(features.lines.iter().flat_map(|line| stems(line)));
            let note = features_note(&self.instruction, &page, &features, &self.seen);
            thought = note.split(' ').next_back().unwrap_or_default().into();
            self.act(note, Action::Click("< prev".into()));
            if !is_last && rng.random::<f64>() < habits.puts_back_after(&thought) {
                self.act(thought, Action::Click("< prev".into()));
                return false;
            }
        }
        for label in note.selected.into_iter().chain(["buy now".into()]) {
            self.act(std::mem::take(&mut thought), Action::Click(label));
        }
        true
    }
}

/// What is written on an item page.
struct ItemNote {
    text: String,
    /// Whether each option has a named value, every stated option is there if they are checked, and the price is within
    /// the limit.
    is_fitting: bool,
    /// The named values, in the order of the page.
    selected: Vec<String>,
}

impl ItemNote {
    fn of(page: &ItemPage, instruction: &Instruction, habits: BrowsingHabits) -> Self {
        let named = instruction.named_on(page);
        let (mut words, mut selected) = (Vec::new(), Vec::new());
        for (list, options) in page.options.iter().enumerate() {
            let value = named.iter().rfind(|of| of.list == list).map(|of| &*options.values[of.value].text);
            words.push(format!("{} {}", options.name, value.unwrap_or("no")));
            selected.extend(value.map(String::from));
        }
        let mut is_fitting = selected.len() == page.options.len();
        let stated = if habits.checks_options { instruction.stated_options() } else { Vec::new() };
        for option in stated {
            if !selected.iter().any(|value| value.to_lowercase() == option.value) {
                let missing = format!("{} no", option.name);
                if !words.contains(&missing) {
                    words.push(missing);
                }
                is_fitting = false;
            }
        }
        if is_fitting {
            let price = if habits.by_lowest_price { page.lowest_price } else { page.highest_price };
            let is_affordable = instruction.limit().is_none_or(|limit| price <= limit);
            words.push(dollars(price));
            words.extend(instruction.limit().map(dollars));
            words.push(if is_affordable { "yes" } else { "no" }.into());
            is_fitting = is_affordable;
        }
        Self { text: words.join(" "), is_fitting, selected }
    }
}

/// What is written on the features page of the product of `item`, given the stems of all pages so far.
fn features_note(
    instruction: &Instruction,
    item: &ItemPage,
    features: &DetailPage,
    seen: &BTreeSet<String>,
) -> String {
    let mut texts = ReadTexts::of_title(&item.title);
    texts.read(&features.lines);
    let pages: Vec<&str> =
        std::iter::once(&*item.title).chain(features.lines.iter().map(String::as_str)).collect();
    let names: Vec<&str> = item.options.iter().map(|list| &*list.name).collect();
    let mut notes = Vec::new();
    for phrase in instruction.phrases(&instruction.named_on(item), &names) {
        let missing = texts.missing(&phrase, seen);
        let found = words_from(&pages, &phrase.texts[missing.first().copied().unwrap_or(0)..]);
        notes.push(phrase.texts.join(" "));
        let is_found = missing.is_empty() || found.is_some();
        notes.extend(found);
        notes.push(if is_found { "yes" } else { "no" }.into());
        if !is_found {
            break;
        }
    }
    if notes.is_empty() { "yes".into() } else { notes.join(" ") }
}

/// As many words as `phrase` has, from the first word of the first clause of `lines` that begins like it; fewer at
/// the end of the clause. `None` if no clause has its first word.
fn words_from(lines: &[&str], phrase: &[String]) -> Option<String> {
    let first = stems(phrase.first()?);
    lines.iter().flat_map(|line| line.split([';', '.'])).find_map(|clause| {
        let clause = clause.to_lowercase();
        let words: Vec<&str> = clause
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .collect();
        let place = words.iter().position(|word| stems(word) == first)?;
        Some(words[place..].iter().take(phrase.len()).copied().collect::<Vec<_>>().join(" "))
    })
}

#[cfg(test)]
mod tests;
