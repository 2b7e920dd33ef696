//! Training of shopping agents: warm start, V*, and reinforcement learning with twelve losses.
//!
//! [`Config`] describes an experiment. [`train`] runs it in a [`RunFolder`] and writes metrics, episodes and
//! checkpoints there. [`TrainedModel`] loads a checkpoint as a policy. [`Comparison`] and [`compare`] train
//! several arms from common warm starts.
//!
//! In reading order: `config`; `data` (tasks, demonstrations, trajectories); `model` (weights, gradients);
//! `value` and `loss` (the algorithms, each with its paper); `trainer` (the loop); `run` (files); `sweep`
//! (comparisons); `estimate` (memory). No command line and no drawings here.

#![forbid(unsafe_code)]

mod error;

pub mod config;
mod setup;

mod data;
mod reward;

mod loss;
mod model;
mod optimizer;
mod value;

mod metrics;
mod observer;
mod purpose;
mod run;
mod trainer;

mod estimate;
mod sweep;

pub use crate::config::{Config, Preset};
pub use crate::data::demonstrations::render_demonstration;
pub use crate::data::single_steps::Steps;
pub use crate::data::task_set::{TaskId, TaskSet};
pub use crate::data::trajectory::{MicroBatch, Trajectory};
pub use crate::error::{Result, TrainingError};
pub use crate::estimate::{MemoryEstimate, MemoryNeed, estimate_memory};
pub use crate::loss::{
    AdvantageSource, LogProbs, Loss, Prepared, Scored, ScoredTurn, Segment, Target, TargetStatistics, Term,
    summed_loss,
};
pub use crate::metrics::{
    Follower, Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing, read_records, read_timings,
};
pub use crate::model::gradient::{Gradients, accumulate};
pub use crate::model::load::{GenerationOptions, LoadedPolicy, TrainedModel};
pub use crate::model::network::Network;
pub use crate::observer::{Observer, Silent};
pub use crate::run::atomic::{read_json, write_atomically, write_json};
pub use crate::run::branch::branch_run;
pub use crate::run::folder::{RunFolder, step_name};
pub use crate::setup::fingerprint::Fingerprint;
pub use crate::setup::limits::{lm_config, prompt_config, qwen2_config, rollout_config};
pub use crate::setup::open_shop::{open_catalog_source, open_shop, read_catalog};
pub use crate::setup::tokenizer::train_tokenizer;
pub use crate::sweep::outcome::{ArmOutcome, EpisodeOutcome, RunOutcome, read_outcomes};
pub use crate::sweep::plan::{Arm, Comparison};
pub use crate::sweep::run::{ComparisonFolder, compare};
pub use crate::trainer::{Evaluation, RunSummary, train, train_on, warm_up};
pub use crate::value::{GoalValue, ReferenceRollout, ValueKey, ValueTable, optimal_value};
