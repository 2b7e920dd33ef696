//! webshop_evaluation.

pub mod env_checks;
pub mod error;
pub mod next_action;
pub mod statistics;
pub mod summary;
pub mod table;

pub use crate::env_checks::{Check, MAX_GOALS, validate};
pub use crate::error::{EvaluationError, Result};
pub use crate::summary::{FailureKind, Failures, RewardParts, Summary, Tally, summarize, summarize_at_site};
pub use crate::table::Table;
pub use crate::statistics::{bootstrap, crossed_bootstrap, difference_interval, mean, mean_interval, paired_bootstrap, wilson_interval};
