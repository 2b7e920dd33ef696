//! The goals that names of sessions and numbers stand for.

use webshop_products::{Digest, GoalId, Purpose};

use crate::error::SessionError;
use crate::sessions::Sessions;

/// The goal that a session's name draws.
const SITE: Purpose = Purpose::new("site-goals");

/// The goal of a session's name.
pub(super) fn of_name(sessions: &Sessions, name: &str) -> Result<GoalId, SessionError> {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(number) = name.strip_prefix("fixed_").filter(is_number) {
        return numbered(sessions, number);
    }
    let goals = sessions.shop().goals();
    let defaults = sessions.defaults();
    let seed = defaults.seed.child(SITE, &[Digest::of(name.as_bytes()).number()]);
    goals.goal_for_seed(defaults.split, seed).ok_or(SessionError::EmptySplit(defaults.split))
}

/// The goal with a number.
pub(super) fn numbered(sessions: &Sessions, number: &str) -> Result<GoalId, SessionError> {
    let goals = sessions.shop().goals();
    let id = number.parse().ok().and_then(|number| goals.find(number).ok());
    id.ok_or_else(|| SessionError::NoSuchGoal { goal: number.to_owned(), n_goals: goals.goals().len() })
}
