//! An episode as text for people.
//!
//! [`transcript`] plays actions from the start of a goal and writes the goal, the actions, a summary of each
//! page and the result. Equal episodes give equal texts: no URL, time, path or hash order is in it, and
//! rewards are rounded to four digits. So it serves as a snapshot of an agent or of a change to the shop.
//!
//! It is no observation (agents read the views of a page) and no record for replay (that is a
//! [`crate::Episode`]).

use crate::action::Action;
use crate::page::{ItemPage, Page, ResultsPage};
use crate::session::{Outcome, Session};
use crate::shop::Shop;
use std::fmt::Write;
use webshop_products::{Goal, GoalId};

/// The greatest number of characters after a line's indent; longer lines end in `…`.
const MAX_CHARS: usize = 96;

/// The most products written for a page of results.
const MAX_ITEMS: usize = 5;

/// Writes the episode that `actions`, one text a turn, make from the start of a goal.
///
/// Each line but the instruction is cut after 96 characters and its indent. The text suits snapshot tests with [insta](https://insta.rs):
///
/// ```
/// # use webshop_env::{Shop, transcript};
/// # use webshop_products::{EmbeddedCatalog, GoalId, GoalKind};
/// let shop = Shop::embedded(EmbeddedCatalog::Hundred, GoalKind::Both);
///
/// let actions = [
///     "search[almond trail mix ready to eat]",
///     "click[b0helineri]",
///     "click[features]",
///     "click[< prev]",
///     "click[buy now]",
/// ];
/// insta::assert_snapshot!(transcript(&shop, GoalId(408), &actions), @r"
/// “i need a trail mix made with almond that is ready to eat, and price lower than 70.00 dollars”
/// wanted: almond trail mix (B0HELINERI)
/// attributes: ready to eat
/// at most: $70.00
///
/// 1. search[almond trail mix ready to eat]
///    page 1; found 5
///      B0KAHUTOFU  $6.29  Bootel Almond Trail Mix, with Spare Parts, A Gift for Brothers
///      B0HELINERI  $32.0  Bootel Fojytraick Un-273 Almond Trail Mix, Model Tw-443, for The Office Kitc…
///      B0LAJOGAFI  $7.5  Bootel Drasev Almond Trail Mix, Noostaick Tone On Tone
///      B0JAHARODE  $100.0  Bootel Drasev Almond Trail Mix, Noostaick Tone On Tone
///      B0RODEZIBE  $35.0  Quoobristam Ee-340 Coconut Granola Bars, with Almond Coating, 2022 New Arriv…
///
/// 2. click[b0helineri]
///    B0HELINERI  $32.0  Bootel Fojytraick Un-273 Almond Trail Mix, Model Tw-443, for The Office Kitch…
///
/// 3. click[features]
///    Features of B0HELINERI
///      Our best for a busy morning.
///      Works well for quick breakfast.
///      Dairy free, as it should be.
///      It is also nut free.
///      Made in small batches and checked twice; for movie night and more; we use cocoa where it counts,…
///      See the label for all details.
///      Truly ready to eat.
///
/// 4. click[< prev]
///    B0HELINERI  $32.0  Bootel Fojytraick Un-273 Almond Trail Mix, Model Tw-443, for The Office Kitch…
///
/// 5. click[buy now]
///    bought B0HELINERI []
///    reward 1.0000 = 1 type × (1/1 attributes + 0/0 options + 1/1 price) / 2
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the goal is not one of the shop's.
pub fn transcript(shop: &Shop, goal: GoalId, actions: &[impl AsRef<str>]) -> String {
    let parsed = actions.iter().map(|action| Action::parse(action.as_ref(), shop.config().compat));
    write(shop, goal, actions.iter().map(|action| action.as_ref().to_owned()).zip(parsed))
}

/// [`transcript`] of actions that were taken, such as those of a recording, which are not read by the shop's rules again.
///
/// # Panics
/// If the goal is not one of the shop's.
pub fn transcript_of_actions(shop: &Shop, goal: GoalId, actions: &[Action]) -> String {
    write(shop, goal, actions.iter().map(|action| (action.to_string(), action.clone())))
}

fn write(shop: &Shop, goal: GoalId, actions: impl Iterator<Item = (String, Action)>) -> String {
    let (words, parsed): (Vec<String>, Vec<Action>) = actions.unzip();
    let mut walk = Session::walk(shop, goal, parsed);
    let mut text = requirements(shop.goals().get(goal));
    for (words, number) in words.iter().zip(1..) {
        let Some(transition) = walk.next() else { break };
        line(&mut text, "", &format!("\n{number}. {words}"));
        write_outcome(&mut text, &transition.outcome, walk.page());
    }
    if !walk.session().is_done() {
        line(&mut text, "", "\nNothing was bought.");
    }
    text
}

fn requirements(goal: &Goal) -> String {
    let mut text = format!("“{}”\n", goal.instruction);
    let options: Vec<String> = goal
        .options
        .iter()
        .map(|option| match &option.name {
            Some(name) => format!("{name} = {}", option.value),
            None => option.value.to_string(),
        })
        .collect();
    line(&mut text, "wanted", &format!(": {} ({})", goal.query, goal.asin));
    line(&mut text, "attributes", &format!(": {}", goal.attributes.join(", ")));
    if !options.is_empty() {
        line(&mut text, "options", &format!(": {}", options.join(", ")));
    }
    if let Some(limit) = goal.price_limit {
        line(&mut text, "at most", &format!(": {limit}"));
    }
    text
}

fn write_outcome(text: &mut String, outcome: &Outcome, page: &Page) {
    if let Some(reason) = outcome.noop {
        return line(text, "   ", &format!("nothing happens: {reason}"));
    }
    match page {
        Page::Search(_) => line(text, "   ", "the search bar"),
        Page::Results(page) => write_results(text, page),
        Page::Item(page) => write_item(text, page),
        Page::Detail(page) => {
            line(text, "   ", &format!("{} of {}", page.detail, page.id));
            for words in &page.lines {
                line(text, "     ", words.trim());
            }
        }
        Page::Done(page) => {
            let chosen: Vec<String> =
                page.selection.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            line(text, "   ", &format!("bought {} [{}]", page.id, chosen.join(", ")));
        }
    }
    if let Some(breakdown) = outcome.breakdown {
        line(text, "   ", &format!("reward {breakdown}"));
    }
}

fn write_results(text: &mut String, page: &ResultsPage) {
    let (number, total) = (page.page_number, page.total);
    line(text, "   ", &format!("page {number}; found {total}"));
    for item in page.items.iter().take(MAX_ITEMS) {
        let mark = if item.visited { '*' } else { ' ' };
        let words = format!("{mark}{}  {}  {}", item.id, item.price_tag, item.title);
        line(text, "    ", &words);
    }
    if page.items.len() > MAX_ITEMS {
        line(text, "     ", &format!("and {} more", page.items.len() - MAX_ITEMS));
    }
}

fn write_item(text: &mut String, page: &ItemPage) {
    line(text, "   ", &format!("{}  {}  {}", page.id, page.price_tag, page.title));
    for list in &page.options {
        let values: Vec<String> = list
            .values
            .iter()
            .map(|label| match label.clicked {
                true => format!("[{}]", label.text),
                false => label.text.to_string(),
            })
            .collect();
        line(text, "     ", &format!("{}: {}", list.name, values.join(" · ")));
    }
}

fn line(text: &mut String, indent: &str, words: &str) {
    let mut shown: String = words.chars().take(MAX_CHARS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    writeln!(text, "{indent}{}", shown.trim_end()).expect("a String takes every write");
}
