//! Baselines of next-action prediction that use no model.
//!
//! Three predict one action at every step: `terminate`, a click on `buy now`, the most frequent gold action.
//! The fourth searches for the instruction, which it parses from the page; its score is the share of queries
//! that copy the instruction.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use webshop_agent::next_action::{ActionType, NextAction, SEARCH_INPUT, WrittenAction};
use webshop_products::Seed;

use crate::next_action::scores::{NextActionScores, evaluate};
use crate::next_action::table::ScoredRow;

/// The text before and after the instruction in simplified HTML.
const INSTRUCTION: (&str, &str) = ("<p>Instruction:</p>\n<p>", "</p>");

/// The scores of all baselines on these steps, each given as gold action and instruction, in a fixed order.
/// Without steps there is no row of the most frequent action. `seed` is for the bootstrap.
pub fn baselines<'s>(
    steps: impl IntoIterator<Item = (&'s NextAction, Option<&'s str>)>,
    seed: Seed,
) -> Vec<ScoredRow> {
    let (golds, instructions): (Vec<NextAction>, Vec<Option<&str>>) =
        steps.into_iter().map(|(gold, instruction)| (gold.clone(), instruction)).unzip();
    let buy = NextAction::Click { name: "buy now".into() };
    let constants = [
        ("always terminate", Some(NextAction::Terminate {})),
        ("always click buy now", Some(buy)),
        ("most frequent action", most_frequent_action(&golds).cloned()),
    ];
    let constants = constants.into_iter().filter_map(|(name, action)| {
        let action = action?;
        let scores = always(&action, &golds, seed);
        Some(ScoredRow { name: name.into(), action: Some(action), scores })
    });
    let search = |text: &str| {
        let text = text.to_owned();
        WrittenAction::from(&NextAction::TypeAndSubmit { name: SEARCH_INPUT.into(), text })
    };
    let copied: Vec<Option<WrittenAction>> = instructions.into_iter().map(|it| it.map(search)).collect();
    let copying = ScoredRow {
        name: "copied instruction".into(),
        action: None,
        scores: evaluate(&golds, &copied, seed),
    };
    constants.chain([copying]).collect()
}

/// The scores of predicting `action` at every step.
pub fn always(action: &NextAction, golds: &[NextAction], seed: Seed) -> NextActionScores {
    evaluate(golds, &vec![Some(WrittenAction::from(action)); golds.len()], seed)
}

/// The most frequent action; the earliest one of several. `None` without steps.
pub(crate) fn most_frequent_action(golds: &[NextAction]) -> Option<&NextAction> {
    let mut counts: BTreeMap<&NextAction, (usize, Reverse<usize>)> = BTreeMap::new();
    for (idx, gold) in golds.iter().enumerate() {
        counts.entry(gold).or_insert((0, Reverse(idx))).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, rank)| *rank).map(|(action, _)| action)
}

/// The most frequent action type; of several, the first in [`ActionType::ALL`]. `None` without steps.
pub fn majority_type(golds: &[NextAction]) -> Option<ActionType> {
    let count = |kind| golds.iter().filter(|gold| gold.action_type() == kind).count();
    let types = ActionType::ALL.into_iter().filter(|_| !golds.is_empty());
    types.min_by_key(|kind| Reverse(count(*kind)))
}

/// The instruction in a page of simplified HTML; `None` if the page has none.
pub fn instruction_of(page: &str) -> Option<&str> {
    let (before, after) = INSTRUCTION;
    let (_, rest) = page.split_once(before)?;
    rest.split_once(after).map(|(instruction, _)| instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instruction_is_parsed_from_the_page() {
        let page =
            "<p>WebShop</p>\n<p>Instruction:</p>\n<p>a lamp < 5 dollars</p>\n<input name=\"search_input\">\n";
        assert_eq!(instruction_of(page), Some("a lamp < 5 dollars"));
        assert_eq!(instruction_of("<p>a lamp</p>\n"), None);
    }
}
