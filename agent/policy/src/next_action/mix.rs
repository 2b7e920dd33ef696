//! What kinds of steps stand in a set of samples, and how often.
//!
//! Successful trips never leave the shop, so [`dead_ends`] looks for pages that ought to be left. Trips click five times
//! for each search; [`paper_mix`] leaves samples out until the three types stand as in the paper's test set.

use std::collections::BTreeSet;

use rand::RngCore;
use webshop_env::Shop;
use webshop_products::{GoalId, Purpose, Seed};

use crate::next_action::action::ActionType;
use crate::next_action::mapping::BuyNowAs;
use crate::next_action::example::Sample;
use crate::next_action::from_episodes::drawn_dead_end;

/// How many of each type there are in the paper's test set, by reconstruction from its figures.
pub const PAPER_MIX: [(ActionType, usize); 3] =
    [(ActionType::Click, 690), (ActionType::TypeAndSubmit, 677), (ActionType::Terminate, 512)];

/// So many searches are tried for a goal before it is given up.
const MAX_TRIES: u64 = 32;

/// What a draw is for, beside the seed.
const DRAWS_SEARCH: u64 = 0;
const DRAWS_SAMPLE: u64 = 1;

/// `n` dead ends of the customers of `goals`, in turn; fewer if there are no more to be found. Each searches for what
/// another goal of the same split wants.
pub fn dead_ends(shop: &Shop, goals: &[GoalId], n: usize, buy_now_as: BuyNowAs, seed: Seed) -> Vec<Sample> {
    let (mut samples, mut known) = (Vec::new(), BTreeSet::new());
    for (attempt, &goal) in (0..MAX_TRIES).flat_map(|attempt| goals.iter().map(move |goal| (attempt, goal))) {
        if samples.len() == n {
            break;
        }
        let mut rng = seed.rng(Purpose::Steps, &[DRAWS_SEARCH, u64::from(goal.0), attempt]);
        let found = drawn_dead_end(shop, goal, buy_now_as, &mut rng);
        samples.extend(found.filter(|sample| known.insert(sample.id.clone())));
    }
    samples
}

/// How many dead ends it takes beside `samples` for a share of `share` of all, which is below 1.
pub fn n_dead_ends(samples: &[Sample], share: f64) -> usize {
    (samples.len() as f64 * share / (1.0 - share)).round() as usize
}

/// How many dead ends it takes beside `samples` for [`paper_mix`] to leave out no more than it must.
pub fn n_dead_ends_of_paper(samples: &[Sample]) -> usize {
    let [clicks, searches, leavings] = PAPER_MIX.map(|(kind, weight)| (count(samples, kind), weight));
    let needed = |(n, weight): (usize, usize)| (n * leavings.1).div_ceil(weight);
    needed(clicks).min(needed(searches)).saturating_sub(leavings.0)
}

/// As many of the samples as can stand in the proportions of [`PAPER_MIX`], rounded down, in their order. Which, is drawn.
/// None if there are none of some type.
pub fn paper_mix(samples: Vec<Sample>, seed: Seed) -> Vec<Sample> {
    let whole: usize = PAPER_MIX.iter().map(|(_, weight)| weight).sum();
    let fits = PAPER_MIX.iter().map(|&(kind, weight)| count(&samples, kind) * whole / weight);
    let total = fits.min().unwrap_or(0);
    let mut kept = BTreeSet::new();
    for (kind, weight) in PAPER_MIX {
        let draw = |at: usize| seed.rng(Purpose::Steps, &[DRAWS_SAMPLE, at as u64]).next_u64();
        let of_kind = (0..samples.len()).filter(|&at| samples[at].action.action_type() == kind);
        let mut drawn: Vec<(u64, usize)> = of_kind.map(|at| (draw(at), at)).collect();
        drawn.sort_unstable();
        kept.extend(drawn.into_iter().take(total * weight / whole).map(|(_, at)| at));
    }
    samples.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, sample)| sample).collect()
}

fn count(samples: &[Sample], kind: ActionType) -> usize {
    samples.iter().filter(|sample| sample.action.action_type() == kind).count()
}
