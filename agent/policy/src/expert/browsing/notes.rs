//! What a browsing expert writes on item pages and on features pages.

use std::collections::BTreeSet;

use webshop_env::{DetailPage, ItemPage};

use crate::expert::browsing::habits::BrowsingHabits;
use crate::instruction::phrases::ReadTexts;
use crate::instruction::{Instruction, stems};
use crate::prompt_format::compact::dollars;

/// What is written on an item page.
pub(super) struct ItemNote {
    pub(super) text: String,
    /// Whether each option has a named value, every stated option is there if they are checked, and the price is within
    /// the limit.
    pub(super) is_fitting: bool,
    /// The named values, in the order of the page.
    pub(super) selected: Vec<String>,
}

impl ItemNote {
    pub(super) fn of(page: &ItemPage, instruction: &Instruction, habits: BrowsingHabits) -> Self {
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
pub(super) fn features_note(
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
pub(super) fn words_from(lines: &[&str], phrase: &[String]) -> Option<String> {
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
