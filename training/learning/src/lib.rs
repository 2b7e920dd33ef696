//! Training of shopping agents: warm start, V*, and reinforcement learning with twelve losses.
//!
//! [`Config`](config::Config) describes an experiment. [`train`] runs it in a [`RunFolder`] and writes
//! metrics, episodes and checkpoints there. [`TrainedModel`] loads a checkpoint as a policy.
//!
//! - [`config`]: the keys of an experiment with their defaults, ranges and presets.
//! - [`loss`]: the trait [`Loss`](loss::Loss) and the twelve losses, each with its paper.
//! - [`metrics`]: the records of a run, defined, written and read.
//! - [`sweep`]: several arms trained from common warm starts and compared.
//!
//! Inside, in reading order: `data` (tasks, demonstrations, trajectories); `model` (weights, gradients);
//! `value` (V*); `trainer` (the loop); `run` (files); `estimate` (memory); `math` (functions with the same bits on
//! every CPU). No command line and no drawings here.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod error;

pub mod config;
mod setup;

mod math;

mod data;
mod reward;

pub mod loss;
mod model;
mod optimizer;
mod value;

pub mod metrics;
mod observer;
mod purpose;
mod run;
mod trainer;

mod estimate;
pub mod sweep;

pub use crate::data::held_out::HeldOutGoal;
pub use crate::data::single_steps::StepSampler;
pub use crate::data::task_set::{TaskId, TaskSet};
pub use crate::error::{Result, TrainingError};
pub use crate::estimate::{Backend, MemoryEstimate, MemoryNeed, estimate_memory};
pub use crate::model::load::{GenerationOptions, LoadedPolicy, TrainedModel};
pub use crate::observer::{Observer, Silent};
pub use crate::run::atomic::{read_json, write_atomically};
pub use crate::run::branch::branch_run;
pub use crate::run::folder::RunFolder;
pub use crate::setup::fingerprint::Fingerprint;
pub use crate::setup::limits::qwen2_config;
pub use crate::setup::open_shop::{open_catalog_source, open_shop, read_catalog};
pub use crate::setup::tokenizer::train_tokenizer;
pub use crate::trainer::rollout_workers::{EpisodeRequest, RolloutWorker, RolloutWorkers};
pub use crate::trainer::{Evaluation, RunSummary, TrainOptions, train, warm_up};
pub use crate::value::{GoalValue, ValueTable};
