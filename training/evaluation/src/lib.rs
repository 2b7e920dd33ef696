//! Evaluation of episodes and of single next actions, without tensors and without gradient steps.
//!
//! - [`Summary`] holds the statistics of a set of episodes: success rate, score, length, kinds of failure.
//! - [`baselines`] runs the policies that every result is compared with, on the same goals.
//! - [`Reading`] counts how episodes act on the features that they read.
//! - [`Judgement`] holds how the policies of a finished run did on test goals and on shops of its own seed.
//! - [`clustered_rate_interval`] and its relatives give 95 % intervals over goals, clustered by product;
//!   [`seeds_interval`] and [`paired_seeds_difference`] intervals over training seeds, [`holm`] a correction for
//!   several comparisons; [`wilson_interval`], [`difference_interval`] and [`bootstrap`] intervals of independent
//!   trials.
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

mod baselines;
mod clustered;
mod env_checks;
mod error;
mod judgement;
mod outcomes;
mod reading;
mod seeds;
mod statistics;
mod student;
mod summary;

pub use crate::baselines::{Baseline, BaselineConfig, baselines, baselines_table, by_product_table};
pub use crate::clustered::{
    Difference, clustered_difference, clustered_mean_interval, clustered_rate_interval, product_means,
    product_rate_interval,
};
pub use crate::env_checks::{Check, validate};
pub use crate::error::{EvaluationError, Result};
pub use crate::judgement::{JudgedSet, Judgement};
pub use crate::outcomes::{Outcomes, ShopProduct};
pub use crate::reading::{Decisions, Reading};
pub use crate::seeds::{holm, paired_seeds_difference, seeds_interval};
pub use crate::statistics::{bootstrap, difference_interval, mean, wilson_interval};
pub use crate::summary::{ByProduct, Failures, RewardParts, Summary, Tally, summarize, summarize_at_site};
