//! Checks whether a shop is fit for training: fourteen properties, each with its measured numbers.
//!
//! [`validate`] runs several policies in the given shop and returns one [`Check`] for each property. The
//! names are those of OpenEnv's validator where it has the property. The checks need policies and rewards
//! together: `webshop-env` knows no policy, and `webshop-agent` no reward. The shop is not changed.
//!
//! Checks that need episodes use at most 200 goals, evenly spaced, and that of the search at most 10,000; the others use
//! all goals.
//!
//! | check | passes if |
//! |---|---|
//! | `seed_control` | equal seeds give equal episodes of the random policy, different seeds different ones |
//! | `episode_determinism` | equal actions give equal observations and rewards, in every observation mode |
//! | `episode_isolation` | an episode is the same alone, after others, and in parallel with others |
//! | `reward_attribution` | only purchases are rewarded, each with the value of its breakdown |
//! | `trajectory_record` | the JSON record of an episode reads back equal, turn by turn |
//! | `oracle_max` | the oracle policy, which reads the hidden goal, always gets reward 1 |
//! | `floor_gap` | the oracle's mean score exceeds the random policy's by at least 0.5 |
//! | `exploit_floor` | the oracle's success rate exceeds that of every policy that reads no page by at least 0.5 |
//! | `no_solution_leakage` | pages depend on the hidden goal in the instruction and the final reward only |
//! | `verifier_determinism` | a purchase is scored the same again, with options in another order, on any thread |
//! | `replayability` | records replay without difference, from the start and from a snapshot |
//! | `reward_reachability` | every goal has a purchase with reward 1, and purchases differ in reward |
//! | `adversarial_floor` | no malformed or hostile action earns a reward or buys |
//! | `search_exactness` | a search for an instruction finds what scoring every document finds, to the last bit |

mod check;
mod episodes;
mod floors;
mod leakage;
mod repeatability;
mod rewards;
mod search;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use webshop_env::Shop;

pub use crate::env_checks::check::Check;
use crate::env_checks::episodes::Episodes;
use crate::error::{EvaluationError, Result};

/// Runs all checks on `shop`. The results are in the order of the table in the module documentation.
///
/// # Errors
/// [`EvaluationError::NoGoals`] in a shop without goals, and an error of a rollout; a failed check is a result.
pub fn validate(shop: &Arc<Shop>) -> Result<Vec<Check>> {
    if shop.goals().goals().is_empty() {
        return Err(EvaluationError::NoGoals);
    }
    check_all(&Episodes::collect(shop)?)
}

fn check_all(episodes: &Episodes) -> Result<Vec<Check>> {
    Ok(vec![
        repeatability::seed_control(episodes)?,
        repeatability::episode_determinism(episodes),
        repeatability::episode_isolation(episodes),
        rewards::reward_attribution(episodes),
        repeatability::trajectory_record(episodes),
        floors::oracle_max(episodes),
        floors::floor_gap(episodes),
        floors::exploit_floor(episodes),
        leakage::no_solution_leakage(episodes),
        rewards::verifier_determinism(episodes),
        repeatability::replayability(episodes),
        rewards::reward_reachability(episodes),
        floors::adversarial_floor(episodes),
        search::search_exactness(&episodes.shop),
    ])
}
