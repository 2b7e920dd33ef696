//! Evaluation of episodes and of single next actions, without tensors and without gradient steps.
//!
//! - [`Summary`] holds the statistics of a set of episodes: success rate, score, length, kinds of failure.
//! - [`wilson_interval`], [`difference_interval`], [`bootstrap`] and their relatives give 95 % intervals.
//! - [`validate`] checks that a shop is fit for training and returns one [`Check`] for each property.
//! - [`next_action`] holds the reward and the metrics of Shop-R1: one predicted action against one recorded
//!   action.
//! - [`table`] formats tables as text, Markdown and HTML.
//!
//! This crate reads rewards; `webshop-agent` knows none. It trains nothing, loads no model and writes no
//! file.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod next_action;
pub mod table;

mod env_checks;
mod error;
mod statistics;
mod summary;

pub use crate::env_checks::{Check, validate};
pub use crate::error::{EvaluationError, Result};
pub use crate::statistics::{
    bootstrap, crossed_bootstrap, difference_interval, mean, paired_bootstrap, wilson_interval,
};
pub use crate::summary::{FailureKind, Failures, RewardParts, Summary, Tally, summarize, summarize_at_site};
