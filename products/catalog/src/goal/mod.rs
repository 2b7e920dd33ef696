//! Goals: instructions with the hidden criteria that score a purchase.
//!
//! A [`Goal`] is one instruction and its criteria. A [`crate::GoalSet`] holds all goals of a catalog in a
//! fixed order, split into training, validation and test, with a fingerprint.
//!
//! The original draws price limits from an unseeded global generator and shuffles the goals. Here a limit
//! is addressed by (product, instruction) and goals stay in catalog order. [`crate::OriginalWorld`]
//! reproduces the original's draws and order.

pub(crate) mod families;
pub(crate) mod fingerprint;
pub(crate) mod make;
pub(crate) mod price_limit;
pub(crate) mod set;
pub(crate) mod split;
pub(crate) mod split_rule;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::price::Cents;
use crate::catalog::product::{ProductId, ProductIdx};

/// A goal's position in its goal set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoalId(pub u32);

/// The origin of a goal's instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStyle {
    /// Written by a person, options included.
    Human,
    /// A sentence that names attributes, with options appended by rule.
    Synthetic,
}

/// The styles of the goals to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalKind {
    /// Human goals.
    Human,
    /// Synthetic goals.
    Synthetic,
    /// For each product the human goals, then the synthetic ones.
    #[default]
    Both,
}

/// An option value that a goal requires.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WantedOption {
    /// The option's name; `None` in human goals.
    pub name: Option<Arc<str>>,
    /// The value, spelled as on the page in synthetic goals and as the person wrote it in human ones.
    pub value: Arc<str>,
}

/// An instruction and the criteria of its reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Its position in the goal set.
    pub id: GoalId,
    /// The product it was made from; buying it with `options` earns the full reward.
    pub product: ProductIdx,
    /// The ASIN of that product.
    pub asin: ProductId,
    /// That product's department.
    pub department: Arc<str>,
    /// That product's query (its kind); compared by rewards.
    pub query: Arc<str>,
    /// That product's title; compared by rewards.
    pub title: Arc<str>,
    /// That product's category path; compared by rewards.
    pub product_category: Arc<str>,
    /// The text that the agent reads, with the price limit at its end.
    pub instruction: Arc<str>,
    /// Required attributes; never empty.
    pub attributes: Arc<[Arc<str>]>,
    /// Required option values.
    pub options: Box<[WantedOption]>,
    /// The most that the purchase may cost; `None` without a limit.
    pub price_limit: Option<Cents>,
    /// Weight of the goal when the original draws one at random.
    pub weight: f64,
    /// Whether the instruction is human or synthetic.
    pub style: GoalStyle,
}

impl Goal {
    /// The number of required attributes and options, a measure of difficulty.
    pub fn n_requirements(&self) -> usize {
        self.attributes.len() + self.options.len()
    }
}

#[cfg(test)]
mod tests;
