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

/// The greatest length of a line; longer ones end in `…`.
const MAX_CHARS: usize = 96;

/// The most products written for a page of results.
const MAX_ITEMS: usize = 5;

/// Writes the episode that `actions`, one text a turn, make from the start of a goal.
///
/// Each line is cut after 96 characters. The text suits snapshot tests with [insta](https://insta.rs):
///
/// ```
/// # use webshop_env::{Shop, transcript};
/// # use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};
/// let data = RawData::embedded(EmbeddedCatalog::Hundred);
/// let catalog = Catalog::from_raw(&data, Seed(0))?;
/// let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
/// let shop = Shop::new(catalog, goals)?;
///
/// let actions = ["search[pasta sauce garlic flakes pepper paste]", "click[b0lufehiro]", "click[buy now]"];
/// insta::assert_snapshot!(transcript(&shop, GoalId(1236), &actions), @r"
/// “a pasta sauce with garlic flakes and pepper paste, and price lower than 90.00 dollars”
/// wanted: pasta sauce (B0LUFEHIRO)
/// attributes: garlic flakes, pepper paste
/// at most: $90.00
///
/// 1. search[pasta sauce garlic flakes pepper paste]
///    page 1; found 4
///      B0BEHEDABU  $73.29  Orlafield Tomato Pasta Sauce, Garlic Paste, Pepper Flakes
///      B0DABUDOTI  $117.0  Orlafield Tomato Pasta Sauce, Pepper Paste, Garlic Flakes
///      B0GIPUGOZA  $30.0  Orlafield Tomato Pasta Sauce, Pepper Paste, Garlic Flakes
///      B0LUFEHIRO  $73.29  Orlafield Tomato Pasta Sauce, Pepper Paste, Garlic Flakes
///
/// 2. click[b0lufehiro]
///    B0LUFEHIRO  $73.29  Orlafield Tomato Pasta Sauce, Pepper Paste, Garlic Flakes
///
/// 3. click[buy now]
///    bought B0LUFEHIRO []
///    reward 1.0000 = 1 type × (2/2 attributes + 0/0 options + 1/1 price) / 3
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// If the goal is not one of the shop's.
pub fn transcript(shop: &Shop, goal: GoalId, actions: &[impl AsRef<str>]) -> String {
    let parsed = actions.iter().map(|action| Action::parse(action.as_ref(), shop.config().compat));
    let mut walk = Session::walk(shop, goal, parsed);
    let mut text = requirements(shop.goals().get(goal));
    for (action, number) in actions.iter().zip(1..) {
        let Some(transition) = walk.next() else { break };
        line(&mut text, "", &format!("\n{number}. {}", action.as_ref()));
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
