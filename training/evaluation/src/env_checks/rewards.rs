//! Checks of the reward: where it is paid, and that it is a function of the purchase.

use rayon::prelude::*;
use webshop_agent::Episode;
use webshop_env::{RewardBreakdown, Session};
use webshop_products::{Goal, ProductIdx, Selection};

use crate::env_checks::check::Check;
use crate::env_checks::episodes::Episodes;

/// A purchase of an episode.
struct Purchase<'a> {
    goal: &'a Goal,
    product: ProductIdx,
    selection: Selection,
    breakdown: RewardBreakdown,
}

pub(super) fn reward_attribution(episodes: &Episodes) -> Check {
    let problem = |episode: &Episode| {
        let goal = episode.meta.coordinates.goal.0;
        let last = episode.turns.len().wrapping_sub(1);
        let unearned = episode.turns.iter().enumerate().find(|(idx, turn)| {
            let buys = *idx == last && episode.terminated;
            turn.reward != 0.0 && !buys
        });
        if let Some((idx, turn)) = unearned {
            return Some(format!(
                "goal {goal}: turn {} has reward {} without a purchase",
                idx + 1,
                turn.reward
            ));
        }
        match (episode.terminated, episode.breakdown) {
            (true, Some(breakdown)) if recomputed_reward(&breakdown) == episode.reward => None,
            (false, None) if episode.reward == 0.0 => None,
            (_, breakdown) => Some(format!("goal {goal}: reward {} with {breakdown:?}", episode.reward)),
        }
    };
    Check::unless("reward_attribution", episodes.all().find_map(problem), || {
        let n_turns: usize = episodes.all().map(|episode| episode.turns.len()).sum();
        let n_purchases = episodes.all().filter(|episode| episode.terminated).count();
        format!(
            "{n_purchases} purchases had exactly the share of requirements met times the type factor as reward, and \
             the {} other turns 0",
            n_turns - n_purchases
        )
    })
}

/// The reward computed from the fields of a breakdown by a second implementation of the formula.
fn recomputed_reward(breakdown: &RewardBreakdown) -> f64 {
    let met = breakdown.attribute_matches + breakdown.option_matches + u32::from(breakdown.price_ok);
    let required = breakdown.n_attributes + breakdown.n_options + 1;
    f64::from(met) / f64::from(required) * breakdown.r_type()
}

pub(super) fn verifier_determinism(episodes: &Episodes) -> Check {
    let purchases: Vec<Purchase<'_>> =
        episodes.all().filter_map(|episode| purchase(episodes, episode)).collect();
    let score = |it: &Purchase<'_>| episodes.shop.reward(it.goal, it.product, &it.selection);
    let reversed = |selection: &Selection| -> Selection {
        let mut options: Vec<_> = selection.iter().collect();
        options.reverse();
        options.into_iter().collect()
    };
    let on_threads: Vec<RewardBreakdown> = purchases.par_iter().map(score).collect();
    let differs = purchases.iter().zip(&on_threads).find(|(it, on_thread)| {
        let in_other_order = episodes.shop.reward(it.goal, it.product, &reversed(&it.selection));
        [score(it), **on_thread, in_other_order].iter().any(|again| *again != it.breakdown)
    });
    let counterexample =
        differs.map(|(it, _)| format!("goal {}: one purchase has two different rewards", it.goal.id.0));
    Check::unless("verifier_determinism", counterexample, || {
        format!(
            "{} purchases had the same reward in the episode, recomputed, with options in reverse order, and on all \
             threads",
            purchases.len()
        )
    })
}

/// The purchase of an episode, found by replaying its actions.
fn purchase<'a>(episodes: &'a Episodes, episode: &Episode) -> Option<Purchase<'a>> {
    let mut session = Session::start(episode.meta.coordinates.goal);
    for turn in &episode.turns {
        session.act(&episodes.shop, &turn.action);
    }
    let (product, breakdown) = (session.product()?, episode.breakdown?);
    Some(Purchase {
        goal: episodes.goal_of(episode),
        product,
        selection: session.selection().clone(),
        breakdown,
    })
}

pub(super) fn reward_reachability(episodes: &Episodes) -> Check {
    let goals = episodes.shop.goals().goals();
    let reachable: Vec<bool> =
        goals.par_iter().map(|goal| episodes.shop.best_purchase(goal).breakdown.is_success()).collect();
    let n_reachable = reachable.iter().filter(|reachable| **reachable).count();
    let purchases = episodes.all().filter(|episode| episode.terminated);
    let mut rewards: Vec<f64> = purchases.map(|episode| episode.reward).collect();
    rewards.sort_by(f64::total_cmp);
    rewards.dedup();
    let mut measured = format!(
        "{n_reachable} of {} goals have a purchase with reward exactly 1; purchases had {} different rewards from \
         {:.2} to {:.2}",
        goals.len(),
        rewards.len(),
        rewards.first().unwrap_or(&0.0),
        rewards.last().unwrap_or(&0.0),
    );
    if let Some(idx) = reachable.iter().position(|reachable| !reachable) {
        measured += &format!("; the first goal without one is {}", goals[idx].id.0);
    }
    // A reward that is the same for every purchase carries no signal.
    Check::new("reward_reachability", n_reachable == goals.len() && rewards.len() > 1, measured)
}
