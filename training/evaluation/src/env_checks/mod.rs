//! Whether a shop is fit to learn in: thirteen checks, each with what it measured.
//!
//! [`validate`] lets policies shop in the given catalog and looks at what comes of it; every [`Check`] says in
//! one sentence what was measured, and whether that is as it must be. The names are those by which OpenEnv's
//! validator calls the properties of an environment.
//!
//! The checks stand here, beside [`crate::summary::summarize`], because they judge policies by their rewards: `env` knows
//! no policy, and `agent` no reward. They take no gradient step and change nothing; a catalog of any size is
//! checked on [`MAX_GOALS`] goals, evenly spaced, and on all goals where no trip has to be made.
//!
//! | check | holds if |
//! |---|---|
//! | `seed_control` | a seed gives the same trips again, and another seed others |
//! | `episode_determinism` | the same actions show and pay the same, in every form of observation |
//! | `episode_isolation` | a trip goes the same alone, after others, and side by side with others |
//! | `reward_attribution` | every payment is for a purchase, and is the sum of its breakdown |
//! | `trajectory_record` | a trip's record holds every turn whole and reads back the same |
//! | `oracle_max` | who knows the hidden goal is always paid exactly 1 |
//! | `floor_gap` | who knows earns more than who clicks at random, by at least half of the range |
//! | `canary_floor` | no habit that reads no page succeeds within half of the range of who knows |
//! | `no_solution_leakage` | pages show nothing of the hidden goal but its instruction |
//! | `verifier_determinism` | a purchase is judged the same again, afresh, in another order, on any thread |
//! | `replayability` | recorded trips go the same again, from the start and from any snapshot |
//! | `reward_reachability` | every goal has a purchase worth exactly 1, and purchases differ in worth |
//! | `adversarial_floor` | nothing that is said earns anything, except to buy |

pub mod floors;
pub mod judging;
pub mod repeating;
pub mod secrets;
#[cfg(test)]
mod tests;
pub mod trips;


use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use webshop_env::Shop;

use crate::error::Result;
use crate::env_checks::trips::Trips;

/// Trips are made for at most this many goals: at 15 steps enough to see every kind of page some hundred times,
/// and few enough for a catalog of a thousand products to be checked in seconds.
pub const MAX_GOALS: usize = 200;

/// One property of the shop, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which property.
    pub check: &'static str,
    /// Whether the shop has it.
    pub passed: bool,
    /// What was measured, with its numbers; one sentence.
    pub measured: String,
}

impl Check {
    fn new(check: &'static str, passed: bool, measured: String) -> Self {
        Self { check, passed, measured }
    }

    /// A check that looks for a counterexample: passed, with `measured`, if none was found, and else failed, with
    /// the example.
    fn unless(
        check: &'static str,
        counterexample: Option<String>,
        measured: impl FnOnce() -> String,
    ) -> Self {
        match counterexample {
            None => Self::new(check, true, measured()),
            Some(example) => Self::new(check, false, example),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed { "PASS" } else { "FAIL" };
        write!(f, "{verdict}  {:<20}  {}", self.check, self.measured)
    }
}

/// All checks of `shop`, in the order of the table above.
pub fn validate(shop: &Arc<Shop>) -> Result<Vec<Check>> {
    judge(&Trips::play(shop)?)
}

fn judge(trips: &Trips) -> Result<Vec<Check>> {
    Ok(vec![
        repeating::seed_control(trips)?,
        repeating::episode_determinism(trips),
        repeating::episode_isolation(trips),
        judging::reward_attribution(trips),
        repeating::trajectory_record(trips),
        floors::oracle_max(trips),
        floors::floor_gap(trips),
        floors::canary_floor(trips),
        secrets::no_solution_leakage(trips),
        judging::verifier_determinism(trips),
        repeating::replayability(trips),
        judging::reward_reachability(trips),
        floors::adversarial_floor(trips),
    ])
}

