//! Checks that pages do not show the hidden goal.

use rayon::prelude::*;
use serde_json::Value;
use webshop_agent::Episode;
use webshop_env::{Page, Session};
use webshop_products::{Goal, GoalId};

use crate::env_checks::check::Check;
use crate::env_checks::episodes::Episodes;

/// Takes the actions of each episode for its own goal and for another goal, and compares the pages. All views
/// of a page are rendered from its fields, so the fields are compared. Only the instruction and the final
/// reward may differ.
///
/// The URL also holds the goal's index, which identifies the goal and carries no information about it.
pub(super) fn no_solution_leakage(episodes: &Episodes) -> Check {
    let pairs: Vec<(&Episode, GoalId)> = episodes
        .all()
        .zip(episodes.goals.iter().cycle().skip(1))
        .filter(|(episode, other)| episode.meta.coordinates.goal != **other)
        .map(|(episode, other)| (episode, *other))
        .collect();
    let compared: Vec<Result<usize, String>> =
        pairs.par_iter().map(|(episode, other)| compare_pages(episodes, episode, *other)).collect();
    let named = episodes.shop.goals().goals().iter().find(|goal| names_its_product(goal));
    let counterexample = compared
        .iter()
        .find_map(|result| result.clone().err())
        .or_else(|| named.map(|goal| format!("goal {}: the instruction contains the product id", goal.id.0)));
    Check::unless("no_solution_leakage", counterexample, || {
        let n_pages: usize = compared.iter().flatten().sum();
        format!(
            "{n_pages} pages were equal for two goals except for instruction and reward, and none of {} instructions \
             contains the product id",
            episodes.shop.goals().goals().len()
        )
    })
}

/// Number of pages compared, all equal; or the first difference.
fn compare_pages(episodes: &Episodes, episode: &Episode, other: GoalId) -> Result<usize, String> {
    let goal = episode.meta.coordinates.goal;
    let mut sessions = [goal, other].map(Session::start);
    let mut n_pages = 0;
    for turn in episode.turns.iter().map(Some).chain([None]) {
        let [own, foreign] =
            sessions.each_ref().map(|session| goal_independent_fields(&session.page(&episodes.shop)));
        if own != foreign {
            return Err(format!(
                "goals {} and {} have different pages after the same actions",
                goal.0, other.0
            ));
        }
        n_pages += 1;
        if let Some(turn) = turn {
            let [own, foreign] =
                sessions.each_mut().map(|session| session.act(&episodes.shop, &turn.action).noop);
            if own != foreign {
                return Err(format!("`{}` has an effect for only one of two goals", turn.action));
            }
        }
    }
    Ok(n_pages)
}

/// The fields of a page without instruction and reward.
fn goal_independent_fields(page: &Page) -> Value {
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
