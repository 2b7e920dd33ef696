//! Whether purchases are judged as they must be.

use rayon::prelude::*;
use webshop_agent::Episode;
use webshop_env::{RewardBreakdown, Session};
use webshop_products::{Goal, ProductIdx, Selection};

use crate::env_checks::Check;
use crate::env_checks::trips::Trips;

/// Bought by someone: for what, what, and with which choices.
struct Bought<'a> {
    goal: &'a Goal,
    product: ProductIdx,
    selection: Selection,
    paid: RewardBreakdown,
}

pub(super) fn reward_attribution(trips: &Trips) -> Check {
    let problem = |episode: &Episode| {
        let goal = episode.coordinates.goal.0;
        let last = episode.turns.len().wrapping_sub(1);
        let elsewhere = episode.turns.iter().enumerate().find(|(at, turn)| {
            let buys = *at == last && episode.terminated;
            turn.reward != 0.0 && !buys
        });
        if let Some((at, turn)) = elsewhere {
            return Some(format!("goal {goal}: turn {} pays {} without a purchase", at + 1, turn.reward));
        }
        match (episode.terminated, episode.breakdown) {
            (true, Some(bought)) if recounted(&bought) == episode.reward => None,
            (false, None) if episode.reward == 0.0 => None,
            (_, breakdown) => Some(format!("goal {goal}: {} was paid for {breakdown:?}", episode.reward)),
        }
    };
    Check::unless("reward_attribution", trips.all().find_map(problem), || {
        let n_turns: usize = trips.all().map(|episode| episode.turns.len()).sum();
        let n_bought = trips.all().filter(|episode| episode.terminated).count();
        format!(
            "{n_bought} purchases were paid exactly the share of wishes met times the type, and the {} other turns 0",
            n_turns - n_bought
        )
    })
}

/// The reward, from the parts that a breakdown prints: the formula written a second time.
fn recounted(bought: &RewardBreakdown) -> f64 {
    let met = bought.attribute_matches + bought.option_matches + u32::from(bought.price_ok);
    let wanted = bought.n_attributes + bought.n_options + 1;
    f64::from(met) / f64::from(wanted) * bought.r_type()
}

pub(super) fn verifier_determinism(trips: &Trips) -> Check {
    let purchases: Vec<Bought<'_>> = trips.all().filter_map(|episode| bought(trips, episode)).collect();
    let judge = |bought: &Bought<'_>| trips.shop.reward(bought.goal, bought.product, &bought.selection);
    let reversed = |bought: &Bought<'_>| -> Selection {
        let mut chosen: Vec<_> = bought.selection.iter().collect();
        chosen.reverse();
        chosen.into_iter().collect()
    };
    let on_threads: Vec<RewardBreakdown> = purchases.par_iter().map(judge).collect();
    let differs = purchases.iter().zip(&on_threads).find(|(bought, on_thread)| {
        let in_other_order = trips.shop.reward(bought.goal, bought.product, &reversed(bought));
        [judge(bought), **on_thread, in_other_order].iter().any(|again| *again != bought.paid)
    });
    let counterexample =
        differs.map(|(bought, _)| format!("goal {}: a purchase is judged in two ways", bought.goal.id.0));
    Check::unless("verifier_determinism", counterexample, || {
        format!(
            "{} purchases were judged the same when bought, afresh, with choices in reverse, and on all threads",
            purchases.len()
        )
    })
}

/// What a trip bought, found by taking it again.
fn bought<'a>(trips: &'a Trips, episode: &Episode) -> Option<Bought<'a>> {
    let mut session = Session::start(episode.coordinates.goal);
    for turn in &episode.turns {
        session.act(&trips.shop, &turn.action);
    }
    let (product, paid) = (session.product()?, episode.breakdown?);
    Some(Bought { goal: trips.goal_of(episode), product, selection: session.selection().clone(), paid })
}

pub(super) fn reward_reachability(trips: &Trips) -> Check {
    let goals = trips.shop.goals().goals();
    let reachable: Vec<bool> =
        goals.par_iter().map(|goal| trips.shop.best_purchase(goal).breakdown.is_success()).collect();
    let n_reachable = reachable.iter().filter(|reached| **reached).count();
    let mut worths: Vec<f64> = trips.all().filter(|trip| trip.terminated).map(|trip| trip.reward).collect();
    worths.sort_by(f64::total_cmp);
    worths.dedup();
    let mut measured = format!(
        "{n_reachable} of {} goals have a purchase worth exactly 1; purchases had {} different worths from {:.2} to {:.2}",
        goals.len(),
        worths.len(),
        worths.first().unwrap_or(&0.0),
        worths.last().unwrap_or(&0.0),
    );
    if let Some(at) = reachable.iter().position(|reached| !reached) {
        measured += &format!("; the first other goal is {}", goals[at].id.0);
    }
    // A verifier that pays everybody the same teaches nothing.
    Check::new("reward_reachability", n_reachable == goals.len() && worths.len() > 1, measured)
}
