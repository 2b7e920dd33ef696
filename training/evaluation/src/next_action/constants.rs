//! What one and the same answer to every step is worth: what a model has to beat.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use webshop_agent::next_action::{ActionType, NextAction, WrittenAction};
use webshop_products::Seed;

use crate::next_action::evaluation::{NextActionScores, evaluate};

/// The figures of always answering with `action`.
pub fn always(action: &NextAction, golds: &[NextAction], seed: Seed) -> NextActionScores {
    evaluate(golds, &vec![Some(WrittenAction::from(action)); golds.len()], seed)
}

/// The action that is taken most often, of several the one that is taken first; `None` without steps.
pub fn most_frequent_action(golds: &[NextAction]) -> Option<&NextAction> {
    let mut counts: BTreeMap<&NextAction, (usize, Reverse<usize>)> = BTreeMap::new();
    for (at, gold) in golds.iter().enumerate() {
        counts.entry(gold).or_insert((0, Reverse(at))).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, rank)| *rank).map(|(action, _)| action)
}

/// The type of most actions, of several the first of [`ActionType::ALL`]; `None` without steps.
pub fn majority_type(golds: &[NextAction]) -> Option<ActionType> {
    let count = |kind| golds.iter().filter(|gold| gold.action_type() == kind).count();
    let counted = ActionType::ALL.into_iter().filter(|_| !golds.is_empty());
    counted.min_by_key(|kind| Reverse(count(*kind)))
}
