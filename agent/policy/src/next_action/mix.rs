//! The mix of action types in a set of examples.
//!
//! Successful episodes never contain `terminate`, so [`terminate_examples`] searches for pages on which it is
//! right. Episodes have five clicks for each search; [`paper_mix`] leaves out examples until the three types
//! have the proportions of the paper's test set.

use std::collections::BTreeSet;

use rand::RngCore;
use webshop_env::Shop;
use webshop_products::{GoalId, Purpose, Seed};

use crate::next_action::action::ActionType;
use crate::next_action::example::Example;
use crate::next_action::from_episodes::draw_terminate_example;
use crate::next_action::mapping::BuyNowAs;

/// The number of examples of each type in the paper's test set, reconstructed from its figures.
pub const PAPER_MIX: [(ActionType, usize); 3] =
    [(ActionType::Click, 690), (ActionType::TypeAndSubmit, 677), (ActionType::Terminate, 512)];

/// The number of searches tried for each goal.
const MAX_TRIES: u64 = 32;

/// The draws of this module. `webshop-training` draws with the same tag and other first coordinates, 2 and 3.
const STEPS: Purpose = Purpose::new("steps");

/// First coordinates of the draws.
const DRAWS_SEARCH: u64 = 0;
const DRAWS_SUBSET: u64 = 1;

/// `n` `terminate` examples for `goals` in turn, or fewer if no more are found. Each searches for the
/// requirements of another goal of the same split.
pub fn terminate_examples(
    shop: &Shop,
    goals: &[GoalId],
    n: usize,
    buy_now_as: BuyNowAs,
    seed: Seed,
) -> Vec<Example> {
    let (mut examples, mut known) = (Vec::new(), BTreeSet::new());
    for (attempt, &goal) in (0..MAX_TRIES).flat_map(|attempt| goals.iter().map(move |goal| (attempt, goal))) {
        if examples.len() == n {
            break;
        }
        let mut rng = seed.rng(STEPS, &[DRAWS_SEARCH, u64::from(goal.0), attempt]);
        let found = draw_terminate_example(shop, goal, buy_now_as, &mut rng);
        examples.extend(found.filter(|example| known.insert(example.id.clone())));
    }
    examples
}

/// The number of `terminate` examples to add to `examples` for them to be this share of all, below 1.
pub fn n_terminate_examples(examples: &[Example], share: f64) -> usize {
    (examples.len() as f64 * share / (1.0 - share)).round() as usize
}

/// The smallest number of `terminate` examples to add to `examples` with which [`paper_mix`] keeps the most.
pub fn n_terminate_examples_of_paper(examples: &[Example]) -> usize {
    let [clicks, searches, terminations] = PAPER_MIX.map(|(kind, weight)| (count(examples, kind), weight));
    let needed = |(n, weight): (usize, usize)| (n * terminations.1).div_ceil(weight);
    needed(clicks).min(needed(searches)).saturating_sub(terminations.0)
}

/// The largest random subset of the examples in the proportions of [`PAPER_MIX`], rounded down, in their
/// order. Empty if a type has no examples.
pub fn paper_mix(examples: Vec<Example>, seed: Seed) -> Vec<Example> {
    let whole: usize = PAPER_MIX.iter().map(|(_, weight)| weight).sum();
    let fits = PAPER_MIX.iter().map(|&(kind, weight)| count(&examples, kind) * whole / weight);
    let total = fits.min().unwrap_or(0);
    let mut kept = BTreeSet::new();
    for (kind, weight) in PAPER_MIX {
        let draw = |at: usize| seed.rng(STEPS, &[DRAWS_SUBSET, at as u64]).next_u64();
        let of_kind = (0..examples.len()).filter(|&at| examples[at].action.action_type() == kind);
        let mut drawn: Vec<(u64, usize)> = of_kind.map(|at| (draw(at), at)).collect();
        drawn.sort_unstable();
        kept.extend(drawn.into_iter().take(total * weight / whole).map(|(_, at)| at));
    }
    examples.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, example)| example).collect()
}

fn count(examples: &[Example], kind: ActionType) -> usize {
    examples.iter().filter(|example| example.action.action_type() == kind).count()
}
