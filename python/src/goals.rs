//! Goals by number, and splits by name.

use crate::convert::value_error;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use webshop_env::Shop;
use webshop_products::{GoalId, GoalSet, Split, SplitRule};

/// The goal with this number.
///
/// # Errors
/// `ValueError`, if the shop has no such goal.
pub(crate) fn goal_id(shop: &Shop, goal: i64) -> PyResult<GoalId> {
    shop.goals().find(goal).map_err(value_error)
}

/// A shop's goals under other split rules than its own, each made when it is first asked for: it takes a digest of the
/// whole catalog.
#[derive(Default)]
pub(crate) struct OtherSplits(Mutex<HashMap<String, Arc<GoalSet>>>);

impl OtherSplits {
    /// Calls `read` with the goals of `shop` under the rule called `split_rule`, and the split called `split`.
    ///
    /// # Errors
    /// `ValueError`, if there is no such split or rule, or the shop has too few goals for it.
    pub(crate) fn with_split<T>(
        &self,
        shop: &Shop,
        split: &str,
        split_rule: &str,
        read: impl FnOnce(&GoalSet, Split) -> T,
    ) -> PyResult<T> {
        let split: Split = split.parse().map_err(value_error)?;
        let rule: SplitRule = split_rule.parse().map_err(value_error)?;
        if rule == shop.goals().split_rule() {
            return Ok(read(shop.goals(), split));
        }
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let goals = match made.get(split_rule) {
            Some(goals) => Arc::clone(goals),
            None => {
                let goals = shop.goals().clone().split_by(rule, shop.catalog()).map_err(value_error)?;
                Arc::clone(made.entry(split_rule.to_owned()).or_insert(Arc::new(goals)))
            }
        };
        drop(made);
        Ok(read(&goals, split))
    }
}
