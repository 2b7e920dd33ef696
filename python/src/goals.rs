//! Goals by number, and splits by name.

use crate::convert::value_error;
use pyo3::prelude::*;
use webshop_env::Shop;
use webshop_products::{GoalId, GoalSet, Split, SplitRule};

/// The goal with this number.
///
/// # Errors
/// `ValueError`, if the shop has no such goal.
pub(crate) fn goal_id(shop: &Shop, goal: i64) -> PyResult<GoalId> {
    let n_goals = shop.goals().goals().len();
    let known = u32::try_from(goal).ok().filter(|&id| (id as usize) < n_goals);
    known.map(GoalId).ok_or_else(|| match n_goals {
        0 => value_error(format!("there is no goal {goal}: the shop has no goals")),
        _ => value_error(format!("there is no goal {goal}: the shop has goals 0 to {}", n_goals - 1)),
    })
}

/// Calls `read` with the shop's goals under the rule called `splits`, and the split called `split`.
///
/// # Errors
/// `ValueError`, if there is no such split or rule, or the shop has too few goals for it.
pub(crate) fn with_split<T>(
    shop: &Shop,
    split: &str,
    splits: &str,
    read: impl FnOnce(&GoalSet, Split) -> T,
) -> PyResult<T> {
    let split: Split = split.parse().map_err(value_error)?;
    let rule: SplitRule = splits.parse().map_err(value_error)?;
    if rule == shop.goals().split_rule() {
        return Ok(read(shop.goals(), split));
    }
    let goals = shop.goals().clone().split_by(rule, shop.catalog()).map_err(value_error)?;
    Ok(read(&goals, split))
}
