//! Whether pages keep the hidden goal to themselves.

use rayon::prelude::*;
use serde_json::Value;
use webshop_agent::Episode;
use webshop_env::{Page, Session};
use webshop_products::{Goal, GoalId};

use crate::env_checks::Check;
use crate::env_checks::trips::Trips;

/// All views of a page are made from its fields, so fields are compared: what two customers with different goals see
/// when they do the same may differ in the instruction alone, and after a purchase in what it was worth.
///
/// The address also holds the number of the goal, which names it and tells nothing of it.
pub(super) fn no_solution_leakage(trips: &Trips) -> Check {
    let pairs: Vec<(&Episode, GoalId)> = trips
        .all()
        .zip(trips.goals.iter().cycle().skip(1))
        .filter(|(episode, other)| episode.coordinates.goal != **other)
        .map(|(episode, other)| (episode, *other))
        .collect();
    let told: Vec<Result<usize, String>> =
        pairs.par_iter().map(|(episode, other)| compare(trips, episode, *other)).collect();
    let named = trips.shop.goals().goals().iter().find(|goal| names_its_product(goal));
    let counterexample = told
        .iter()
        .find_map(|told| told.clone().err())
        .or_else(|| named.map(|goal| format!("goal {}: the instruction names the product", goal.id.0)));
    Check::unless("no_solution_leakage", counterexample, || {
        let n_pages: usize = told.iter().flatten().sum();
        format!(
            "{n_pages} pages were equal for two goals but for instruction and reward, and no instruction of {} names \
             its product's id",
            trips.shop.goals().goals().len()
        )
    })
}

/// Makes a trip for its own goal and for another; how many pages were equal, or where they were not.
fn compare(trips: &Trips, episode: &Episode, other: GoalId) -> Result<usize, String> {
    let goal = episode.coordinates.goal;
    let mut customers = [goal, other].map(Session::start);
    let mut n_pages = 0;
    for turn in episode.turns.iter().map(Some).chain([None]) {
        let [own, foreign] = customers.each_ref().map(|customer| shown(&customer.page(&trips.shop)));
        if own != foreign {
            return Err(format!(
                "goals {} and {} show different pages for the same actions",
                goal.0, other.0
            ));
        }
        n_pages += 1;
        if let Some(turn) = turn {
            let [own, foreign] =
                customers.each_mut().map(|customer| customer.act(&trips.shop, &turn.action).noop);
            if own != foreign {
                return Err(format!("`{}` does something for only one of two goals", turn.action));
            }
        }
    }
    Ok(n_pages)
}

/// The fields of a page that must not depend on the goal.
fn shown(page: &Page) -> Value {
    let mut fields = serde_json::to_value(page).expect("a page holds texts and finite numbers only");
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("instruction");
        fields.remove("reward");
    }
    fields
}

fn names_its_product(goal: &Goal) -> bool {
    goal.instruction.to_uppercase().contains(goal.asin.as_str())
}
