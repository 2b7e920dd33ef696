//! How the shopping agent learns.
//!
//! A [`Config`] states an experiment. The reference policy's rollouts make a [`ValueTable`] (goal → V*), a
//! [`Learner`] turns rewards and values into losses, [`AdamW`] steps, [`MetricsWriter`] records, and a
//! [`RunFolder`] holds it all so that it resumes exactly. This is the only room of the house that takes a gradient
//! step or owns optimizer state; it knows nothing of command lines.

mod checkpoint;
mod config;
mod error;
mod loss;
mod metrics;
mod optimizer;
mod statistics;
mod value;

pub use checkpoint::*;
pub use config::*;
pub use error::{Result, TrainingError};
pub use loss::{Apo, Learner, Prepared, Scored, Target, TargetStatistics, Wsft, learner, summed_loss};
pub use metrics::{
    Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing, read_records, read_timings,
};
pub use optimizer::{AdamW, Schedule, StepOutcome, is_decayed};
pub use statistics::{Interval, mean, mean_interval, paired_difference, success_interval};
pub use value::{GoalValue, ValueKey, ValueTable, optimal_value, samples_at};
