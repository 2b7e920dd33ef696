//! Rules that compare candidates: the products listed on the first results page within the price limit.
//!
//! A [`CandidatePolicy`] searches for the instruction without its price clause and opens candidates in the order
//! of the word pairs that title and instruction share, ties in the order of the page. It rejects a candidate if
//! a list of options has no value that the instruction names. [`CandidatePolicy::named_features`] also reads the
//! features, and the description if needed and if enough steps are left, and rejects a candidate if a phrase of
//! the instruction is in neither title nor text ([`crate::instruction::phrases`]). If no candidate is left, or no
//! step to reject one, it buys the best: the one with the fewest lists without a named value, then the fewest
//! missing words, then the first.
//!
//! It reads the instruction and the pages of the episode, nothing else: no goal, no catalog. It makes no random
//! draws. Its memory holds what the pages showed, so that an episode can be taken over at any turn.

use std::collections::BTreeSet;

use webshop_env::{Action, Detail, ItemPage, Page, ResultItem, ResultsPage};
use webshop_products::ProductIdx;

use crate::episode::Turn;
use crate::error::AgentError;
use crate::instruction::phrases::ReadTexts;
use crate::instruction::{Instruction, Named, stems};
use crate::policies::policy::{Decision, LaneView, Policy};

/// The most candidates that are opened.
const MAX_CANDIDATES: usize = 5;

/// A rule that opens candidates until one fits.
#[derive(Clone, Debug)]
pub struct CandidatePolicy {
    /// The pages about a product that are read, in this order.
    details: &'static [Detail],
    lanes: Vec<Memory>,
}

/// What the pages of an episode have shown.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// In the order in which they are opened.
    candidates: Vec<Candidate>,
    /// The stems of listed titles and of the texts that were read.
    seen: BTreeSet<String>,
}

/// A listed product.
#[derive(Clone, Debug)]
struct Candidate {
    product: ProductIdx,
    /// The label of its link.
    label: String,
    texts: ReadTexts,
    read: Vec<Detail>,
    /// Clicks on its options so far.
    n_clicked: usize,
    /// Why it was rejected; `None` if it was not.
    rejection: Option<Rejection>,
}

/// What a candidate lacks. Candidates are compared in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rejection {
    /// Lists of options without a named value.
    n_unnamed: usize,
    /// Words of the instruction's phrases that no text has.
    n_missing: usize,
    /// Clicks to select the named values.
    n_clicks: usize,
}

impl CandidatePolicy {
    /// The policy that reads titles, prices and options.
    pub fn named_pairs() -> Self {
        Self { details: &[], lanes: Vec::new() }
    }

    /// The policy that also reads features and descriptions.
    pub fn named_features() -> Self {
        Self { details: &[Detail::Features, Detail::Description], lanes: Vec::new() }
    }

    fn choose(&mut self, view: &LaneView<'_>) -> Action {
        let details = self.details;
        let instruction = Instruction::parse(view.instruction());
        let n_left = (view.max_steps as usize).saturating_sub(view.turn);
        let memory = &mut self.lanes[view.lane];
        memory.observe(view.page, &instruction);
        match view.page {
            Page::Search(_) => view.search(instruction.query()),
            Page::Results(_) => match memory.next(n_left) {
                Some(candidate) => Action::Click(memory.candidates[candidate].label.clone()),
                None => click("back to search"),
            },
            Page::Item(page) => memory.on_item(page, &instruction, details, n_left),
            Page::Detail(_) => click("< prev"),
            Page::Done(_) => click("back to search"),
        }
    }
}

impl Memory {
    /// Adds what a page shows.
    fn observe(&mut self, page: &Page, instruction: &Instruction) {
        match page {
            Page::Results(page) if self.candidates.is_empty() => {
                self.candidates = candidates(page, instruction);
                self.seen.extend(page.items.iter().flat_map(|item| stems(&item.title)));
            }
            Page::Item(page) if self.place(page.product).is_none() => {
                let label = page.id.as_str().to_lowercase();
                self.candidates.push(Candidate::new(page.product, label, &page.title));
            }
            Page::Detail(page) => {
                let place = self.place(page.product);
                if let Some(candidate) = place.map(|place| &mut self.candidates[place])
                    && !candidate.read.contains(&page.detail)
                {
                    candidate.read.push(page.detail);
                    candidate.texts.read(&page.lines);
                    self.seen.extend(page.lines.iter().flat_map(|line| stems(line)));
                }
            }
            _ => (),
        }
    }

    fn place(&self, product: ProductIdx) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.product == product)
    }

    /// The best candidate that was rejected.
    fn best(&self) -> Option<(usize, Rejection)> {
        let judged = self.candidates.iter().enumerate();
        judged.filter_map(|(place, of)| Some((place, of.rejection?))).min_by_key(|(_, rejection)| *rejection)
    }

    /// The candidate to open from the results page with `n_left` steps left: the next one if it can be rejected in
    /// time, else the best one.
    fn next(&self, n_left: usize) -> Option<usize> {
        let n_opened = self.candidates.iter().filter(|of| of.rejection.is_some()).count();
        let unopened = self.candidates.iter().position(|of| of.rejection.is_none());
        let unopened = unopened.filter(|_| n_opened < MAX_CANDIDATES);
        let Some((best, rejection)) = self.best() else { return unopened };
        // Open, go back, open the best one, select its options, buy.
        let can_return = n_left >= 4 + rejection.n_clicks;
        unopened.filter(|_| can_return).or(Some(best))
    }

    /// The steps that must be left to read a page about candidate `place` and buy a product without options. The
    /// description, which seldom says more, must leave the steps to read the features of all other candidates.
    fn n_needed_to_read(&self, detail: Detail, place: usize) -> usize {
        let is_unopened = |(other, of): &(usize, &Candidate)| *other != place && of.rejection.is_none();
        let n_unopened = self.candidates.iter().enumerate().filter(is_unopened).count();
        let n_opened = self.candidates.len() - n_unopened;
        let n_others = match detail {
            Detail::Description => n_unopened.min(MAX_CANDIDATES.saturating_sub(n_opened)),
            _ => 0,
        };
        // Read, go back, buy; and open, read, go back twice.
        3 + 4 * n_others
    }

    /// The action on an item page: read, reject, select or buy.
    fn on_item(
        &mut self,
        page: &ItemPage,
        instruction: &Instruction,
        details: &[Detail],
        n_left: usize,
    ) -> Action {
        let place = self.place(page.product).expect("the page was observed");
        let choices = Choices::of(page, instruction);
        let n_clicks = choices.pending.len();
        let candidate = &self.candidates[place];
        if candidate.rejection.is_none() {
            let n_missing = if details.is_empty() {
                0
            } else {
                choices.n_missing(page, instruction, &candidate.texts, &self.seen)
            };
            let unread = details.iter().find(|detail| !candidate.read.contains(detail));
            let is_unread = candidate.read.is_empty() && unread.is_some();
            let unread = unread.filter(|detail| n_left >= self.n_needed_to_read(**detail, place) + n_clicks);
            if choices.n_unnamed == 0
                && n_missing > 0
                && let Some(detail) = unread
            {
                return click(&detail.label().to_lowercase());
            }
            // A candidate that there is no step left to read is the last and cannot be judged.
            if choices.n_unnamed > 0 || n_missing > 0 && !is_unread {
                self.candidates[place].rejection =
                    Some(Rejection { n_unnamed: choices.n_unnamed, n_missing, n_clicks });
                let next = self.next(n_left.saturating_sub(1));
                let n_clicks = self.best().map_or(0, |(_, best)| best.n_clicks);
                // Go back, open, select, buy.
                if next != Some(place) && n_left >= 3 + n_clicks {
                    return click("< prev");
                }
            }
        }
        let candidate = &mut self.candidates[place];
        // A value that two lists share is selected in the second by another click. One that cannot be selected
        // must not be clicked forever.
        match choices.pending.first().filter(|_| candidate.n_clicked < 2 * page.options.len()) {
            None => click("buy now"),
            Some(value) => {
                candidate.n_clicked += 1;
                click(value)
            }
        }
    }
}

/// What the instruction says of the options of a page.
struct Choices<'a> {
    named: Vec<Named>,
    /// Lists without a named value.
    n_unnamed: usize,
    /// The named values that are not selected: of each list the one that is named last.
    pending: Vec<&'a str>,
}

impl<'a> Choices<'a> {
    fn of(page: &'a ItemPage, instruction: &Instruction) -> Self {
        let named = instruction.named_on(page);
        let (mut n_unnamed, mut pending) = (0, Vec::new());
        for (list, options) in page.options.iter().enumerate() {
            match named.iter().rfind(|of| of.list == list).map(|of| &options.values[of.value]) {
                None => n_unnamed += 1,
                Some(label) if label.clicked => (),
                Some(label) => pending.push(&*label.text),
            }
        }
        Self { named, n_unnamed, pending }
    }

    /// The words of the instruction's phrases that `texts` lack.
    fn n_missing(
        &self,
        page: &ItemPage,
        instruction: &Instruction,
        texts: &ReadTexts,
        seen: &BTreeSet<String>,
    ) -> usize {
        let names: Vec<&str> = page.options.iter().map(|list| &*list.name).collect();
        instruction.phrases(&self.named, &names).iter().map(|phrase| texts.n_missing(phrase, seen)).sum()
    }
}

impl Candidate {
    fn new(product: ProductIdx, label: String, title: &str) -> Self {
        let texts = ReadTexts::of_title(title);
        Self { product, label, texts, read: Vec::new(), n_clicked: 0, rejection: None }
    }
}

/// The listed products within the price limit in the order in which they are opened; all of them if none is.
fn candidates(page: &ResultsPage, instruction: &Instruction) -> Vec<Candidate> {
    let is_affordable = |limit| page.items.iter().filter(move |item| item.highest_price <= limit);
    let mut items: Vec<_> = match instruction.limit() {
        Some(limit) if is_affordable(limit).next().is_some() => is_affordable(limit).collect(),
        _ => page.items.iter().collect(),
    };
    items.sort_by_key(|item| std::cmp::Reverse(instruction.shared_pairs(&item.title)));
    let candidate =
        |item: &&ResultItem| Candidate::new(item.product, item.id.as_str().to_lowercase(), &item.title);
    items.iter().map(candidate).collect()
}

fn click(label: &str) -> Action {
    Action::Click(label.into())
}

impl Policy for CandidatePolicy {
    fn name(&self) -> &'static str {
        if self.details.is_empty() { "named-pairs" } else { "named-features" }
    }

    fn begin_rollout(&mut self, n_lanes: usize) -> Result<(), AgentError> {
        self.lanes = vec![Memory::default(); n_lanes];
        Ok(())
    }

    fn begin_episode(&mut self, lane: usize) {
        self.lanes[lane] = Memory::default();
    }

    fn replay_turn(&mut self, view: &LaneView<'_>, _turn: &Turn) -> Result<(), AgentError> {
        self.lanes[view.lane].observe(view.page, &Instruction::parse(view.instruction()));
        Ok(())
    }

    fn act(&mut self, lanes: &[LaneView<'_>]) -> Result<Vec<Decision>, AgentError> {
        Ok(lanes.iter().map(|view| Decision::act(self.choose(view))).collect())
    }
}

#[cfg(test)]
mod tests;
