//! How the shopping agent learns.
//!
//! A [`Config`] states an experiment; [`train`] runs it: demonstrations of the [`Ground`]'s goals warm the
//! model up, the reference policy's rollouts make a [`ValueTable`] (goal → V*), a [`Learner`] turns rewards
//! and values into losses, a [`Student`] steps, [`MetricsWriter`] records, and a [`RunFolder`] holds it all so
//! that it resumes exactly. [`shop_r1`] judges single actions instead of trips. This is the only room of the
//! house that takes a gradient step or owns optimizer state; it knows nothing of command lines.

mod config;
mod error;
mod observer;

mod ground;
mod setup;

mod actor;
mod network;
mod student;
mod trained;
mod trainer;

mod learn;
mod loss;
mod reward;
pub mod shop_r1;
mod value;
mod warm_start;

mod exercise;
mod gradient;
mod optimizer;
mod trajectory;

mod drift;
mod evaluate;
mod record;
mod statistics;
mod validate;

mod doctor;
mod gpu_check;

mod branch;
mod checkpoint;
mod clock;
mod durable;
mod metrics;
mod report;
mod table;

mod comparison;
mod view;

pub use branch::{branch, is_read_by_warm_start, warm_start_differences};
pub use checkpoint::*;
pub use comparison::{Arm, Comparison, ComparisonFolder, compare, write_comparison};
pub use config::*;
pub use doctor::{Diagnosis, Forecast, ForecastStage, Need, examine};
pub use durable::{read_json, write_atomically, write_json};
pub use error::{Result, TrainingError};
pub use evaluate::{FailureKind, Failures, RewardParts, Summary, Tally, summarize, summarize_at_site};
pub use gpu_check::{GpuCheck, Part as GpuPart, Verdict as GpuVerdict};
pub use gradient::{Gradients, accumulate};
pub use ground::{Ground, GroundGoal};
pub use learn::{LearnTerms, learn_step};
pub use loss::{
    Apo, ApoLagged, Awr, Baseline, Clip, DrGrpo, Gigpo, Grpo, Gspo, Judged, KlEstimator, KlTerm, Learner,
    LogProbs, Ppo, Prepared, Raft, Reinforce, Rloo, Scored, ScoredTurn, Segment, Target, TargetStatistics,
    Term, Weighting, Wsft, learner, summed_loss,
};
pub use metrics::{
    Follower, Metric, MetricsPosition, MetricsWriter, Phase, Record, Timing, read_records, read_timings,
};
pub use network::Network;
pub use observer::{Observer, Silent};
pub use optimizer::{DeviceOptimizer, Optimizer, Schedule, StepOutcome, Stride, is_decayed};
pub use report::write_report;
pub use reward::TaskReward;
pub use setup::{
    Fingerprint, fingerprint, lm_config, open_shop, open_stock, prompt_config, qwen2_config, read_catalog,
    rollout_config, train_tokenizer,
};
pub use statistics::{
    bootstrap, crossed_bootstrap, difference_interval, mean, mean_interval, paired_bootstrap, wilson_interval,
};
pub use student::Student;
pub use table::Table;
pub use trained::{Manners, Shopper, Trained};
pub use trainer::{Stage, Stages, train, train_on, warm_up};
pub use trajectory::{MicroBatch, Trajectory};
pub use validate::{Check, MAX_GOALS, validate};
pub use value::{GoalValue, ReferenceTrip, ValueKey, ValueTable, optimal_value};
pub use view::{Paint, View};
pub use warm_start::{Demonstrations, cloning_gradient, lay_down, recount};
