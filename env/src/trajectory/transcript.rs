//! A whole trip, told for people.
//!
//! [`transcript`] replays a trip from the start of a goal and writes down what was wanted, what was
//! said, what each page showed in short, and what came of it. The same trip always gives the same
//! text: no address, time, path or order of a hash map is in it, and rewards are rounded to four
//! digits. So it serves as a snapshot, of an agent or of a change to the shop.
//!
//! It is no observation: agents read the views of a page. Nor is it a record to make a trip again
//! from: that is a [`crate::Trip`].

use crate::action::Action;
use crate::page::{ItemPage, Page, ResultsPage};
use crate::session::{LastListing, Outcome, Session};
use crate::shop::Shop;
use std::fmt::Write;
use webshop_products::{Goal, GoalId};

/// Longer texts end in `…`.
const MAX_CHARS: usize = 96;

/// Of a page of results this many products are told.
const MAX_ITEMS: usize = 5;

/// Tells the trip that these words, one utterance a turn, make from the start of a goal of this shop.
///
/// Each line is cut after 96 characters. A test that pins what an agent does in the shop is one
/// line long; [insta](https://insta.rs) keeps the text, here inline and else in a file:
///
/// ```
/// # use webshop_env::{Shop, transcript};
/// # use webshop_products::{Catalog, EmbeddedCatalog, GoalId, GoalKind, GoalSet, RawData, Seed};
/// let data = RawData::embedded(EmbeddedCatalog::Hundred);
/// let catalog = Catalog::from_raw(&data, Seed(0))?;
/// let goals = GoalSet::from_raw(&data, &catalog, GoalKind::Both, Seed(0))?;
/// let shop = Shop::new(catalog, goals)?;
///
/// let said = ["search[pasta sauce garlic flakes pepper paste]", "click[b0lufehiro]", "click[buy now]"];
/// insta::assert_snapshot!(transcript(&shop, GoalId(1236), &said), @r"
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
/// If the goal is none of this shop's.
pub fn transcript(shop: &Shop, goal: GoalId, utterances: &[impl AsRef<str>]) -> String {
    let mut session = Session::start(goal);
    let mut last = LastListing::default();
    let mut text = wishes(shop.goals().get(goal));
    for (at, utterance) in utterances.iter().enumerate() {
        let action = Action::parse(utterance.as_ref(), shop.config().compat);
        let outcome = session.act_with(shop, &mut last, &action);
        line(&mut text, "", &format!("\n{}. {}", at + 1, utterance.as_ref()));
        tell_outcome(&mut text, &outcome, &session.page_with(shop, &mut last));
    }
    if !session.is_done() {
        line(&mut text, "", "\nNothing was bought.");
    }
    text
}

fn wishes(goal: &Goal) -> String {
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

fn tell_outcome(text: &mut String, outcome: &Outcome, page: &Page) {
    if let Some(reason) = outcome.noop {
        return line(text, "   ", &format!("nothing happens: {reason}"));
    }
    match page {
        Page::Search(_) => line(text, "   ", "the search bar"),
        Page::Results(page) => tell_results(text, page),
        Page::Item(page) => tell_item(text, page),
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

fn tell_results(text: &mut String, page: &ResultsPage) {
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

fn tell_item(text: &mut String, page: &ItemPage) {
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
