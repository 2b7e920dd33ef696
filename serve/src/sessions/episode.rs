//! What a session knows of an episode and its environment does not: where it came from, and what its last action did.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webshop_env::{NoopReason, RewardBreakdown, ShopEnv};
use webshop_products::Split;

/// Where an episode came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// The name that the client gave the episode.
    pub(super) episode_id: Option<String>,
    /// The split that the goal was drawn from; for a goal given by its number, the first that has it.
    pub(super) split: Split,
    /// The seed that drew the goal.
    pub(super) seed: Option<u64>,
}

/// The result of the last action of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastAction {
    /// The reward of a purchase, 0 to 1; 0 for every other action.
    pub reward: f64,
    /// Why the action did nothing.
    pub noop: Option<NoopReason>,
    /// How the reward came about; `None` without a purchase.
    pub breakdown: Option<RewardBreakdown>,
}

impl LastAction {
    /// The purchase that ended the episode of `env`; `None` if it goes on or was truncated.
    pub(super) fn purchase(env: &ShopEnv) -> Option<LastAction> {
        let breakdown = env.session().purchase(env.shop())?;
        Some(LastAction { reward: breakdown.total(), noop: None, breakdown: Some(breakdown) })
    }

    /// The counts of a purchase with the factor for the kind of product and the reward; `None` without a purchase.
    pub(crate) fn reward_parts(&self) -> Option<Value> {
        let breakdown = self.breakdown?;
        let mut parts = serde_json::to_value(breakdown).expect("a breakdown holds numbers and truth values");
        if let Value::Object(parts) = &mut parts {
            parts.insert("r_type".into(), breakdown.r_type().into());
            parts.insert("total".into(), breakdown.total().into());
        }
        Some(parts)
    }
}
