//! What a run has done so far: the state that a checkpoint holds, the metric files and the clock.
//!
//! [`TrainerState`] is saved beside weights and moments as `trainer_state.json`. [`Progress`] adds the open
//! files and the running clock. Nothing here trains.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::metrics::{MetricsPosition, MetricsWriter, Record, Timing};
use crate::run::clock::Clock;
use crate::trainer::RunSummary;
use crate::trainer::forks::ForkedRewards;
use crate::trainer::throughput::Throughput;

/// What is saved beside weights and moments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TrainerState {
    /// Optimizer steps of both phases.
    pub(super) step: u64,
    /// Seconds spent so far, without pauses.
    pub(super) seconds: f64,
    pub(super) metrics: MetricsPosition,
    pub(super) summary: RunSummary,
    pub(super) skipped_no_signal: u64,
    pub(super) skipped_non_finite: u64,
    /// Tokens generated for RL so far, reference rollouts included.
    pub(super) tokens: u64,
    /// Stage of the curriculum, from 0.
    pub(super) curriculum_stage: usize,
    /// The RL step at which that stage began.
    pub(super) stage_since: u64,
    /// Gradient norms of RL updates so far, if clipping depends on them.
    pub(super) grad_norms: Vec<f64>,
    /// The best RL evaluation so far, if its checkpoint is to be kept.
    pub(super) best: Option<Best>,
    /// Rewards of reference rollouts that were forked from states.
    pub(super) forks: ForkedRewards,
}

/// The best evaluation so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Best {
    pub(super) step: u64,
    pub(super) success_rate: f64,
}

impl Best {
    /// The better of two evaluations; the earlier one if they are equal.
    pub(super) fn of(before: Option<Self>, step: u64, success_rate: f64) -> Self {
        before.filter(|before| before.success_rate >= success_rate).unwrap_or(Self { step, success_rate })
    }
}

impl TrainerState {
    /// Whether the best evaluation is the one of the current weights.
    pub(super) fn is_best(&self) -> bool {
        self.best.is_some_and(|best| best.step == self.step)
    }
}

/// [`TrainerState`] with the open metric files, the clock, and the throughput of the current step.
pub(super) struct Progress {
    pub(super) state: TrainerState,
    pub(super) clock: Clock,
    pub(super) throughput: Throughput,
    metrics: MetricsWriter,
}

impl Progress {
    /// Continues from `state`; `metrics` is positioned there.
    pub(super) fn new(state: TrainerState, metrics: MetricsWriter) -> Self {
        let clock = Clock::resume(state.seconds);
        Self { state, clock, throughput: Throughput::default(), metrics }
    }

    /// Writes a record, and the duration and throughput of the step that began at `began` seconds.
    pub(super) fn log(&mut self, record: &Record, began: f64) -> Result<()> {
        let now = self.clock.seconds();
        let mut timing = Timing::new(record.phase, record.step, now);
        std::mem::take(&mut self.throughput).write_to(&mut timing, now - began);
        self.metrics.write(record, &timing)
    }

    /// Brings the state up to date with files and clock.
    pub(super) fn prepare_to_save(&mut self) -> Result<()> {
        self.state.metrics = self.metrics.sync()?;
        self.state.seconds = self.clock.seconds();
        Ok(())
    }
}
