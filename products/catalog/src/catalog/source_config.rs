//! How a catalog is opened.

use crate::goal::GoalKind;
use crate::seed::Seed;

/// How to load a catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceConfig {
    /// The number of products to keep, from the first; `None` keeps all.
    pub limit: Option<usize>,
    /// Drop and count malformed records of a folder instead of failing at the first.
    pub skips_bad: bool,
    /// The goals to make.
    pub goals: GoalKind,
    /// The seed of prices and price limits.
    pub seed: Seed,
}
