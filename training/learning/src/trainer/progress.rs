//! What a run has done so far: the state that a checkpoint holds, the metric files and the clock.
//!
//! [`TrainerState`] is saved beside weights and moments as `trainer_state.json`. [`Progress`] adds the open
//! files and the running clock. Nothing here trains.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainingError};
use crate::metrics::{MetricsPosition, MetricsWriter, Record, Timing};
use crate::run::clock::Clock;
use crate::run::folder::{TRAINER_STATE, read_trainer_state};
use crate::trainer::RunSummary;
use crate::trainer::forks::ForkedRewards;
use crate::trainer::throughput::Throughput;

/// Version of [`TrainerState`] as a file: goes up when a field is added, renamed or gets another meaning.
const VERSION: u32 = 1;

/// What is saved beside weights and moments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrainerState {
    /// [`VERSION`]; a checkpoint of another version is refused.
    version: u32,
    /// Steps of both phases, as [`crate::metrics::Record::step`] counts them.
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

/// The first field of the file, readable whatever the version.
#[derive(Deserialize)]
struct Header {
    version: Option<u32>,
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
    /// The state of a new run.
    pub(super) fn new() -> Self {
        Self {
            version: VERSION,
            step: 0,
            seconds: 0.0,
            metrics: MetricsPosition::default(),
            summary: RunSummary::default(),
            skipped_no_signal: 0,
            skipped_non_finite: 0,
            tokens: 0,
            curriculum_stage: 0,
            stage_since: 0,
            grad_norms: Vec::new(),
            best: None,
            forks: ForkedRewards::default(),
        }
    }

    /// The state in the folder of a checkpoint. Refuses a file of another version, which may lack fields or
    /// give them another meaning.
    pub(super) fn read(checkpoint: &Path) -> Result<Self> {
        let Header { version } = read_trainer_state(checkpoint)?;
        if version != Some(VERSION) {
            let found = version.map_or("no format version".into(), |found| format!("format version {found}"));
            let problem = format!(
                "it has {found}, and this program reads format version {VERSION}; resume the run with the program that \
                 wrote it, or start a new run"
            );
            return Err(TrainingError::bad_file(&checkpoint.join(TRAINER_STATE), problem));
        }
        read_trainer_state(checkpoint)
    }

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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_saved_state_reads_back_equal() {
        let folder = tempfile::tempdir().unwrap();
        let state = TrainerState { step: 7, grad_norms: vec![1.0 / 3.0], ..TrainerState::new() };
        let json = serde_json::to_string(&state).unwrap();
        assert!(json.starts_with("{\"version\":1,"), "{json}");
        fs::write(folder.path().join(TRAINER_STATE), &json).unwrap();
        let read = TrainerState::read(folder.path()).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }

    #[test]
    fn a_state_of_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TRAINER_STATE);
        for (json, found) in
            [(r#"{"version": 2, "steps": 7}"#, "format version 2"), (r#"{"step": 7}"#, "no format version")]
        {
            fs::write(&path, json).unwrap();
            let expected = format!(
                "`{}` cannot be used: it has {found}, and this program reads format version 1; resume the run with the \
                 program that wrote it, or start a new run",
                path.display()
            );
            assert_eq!(TrainerState::read(folder.path()).unwrap_err().to_string(), expected);
        }
    }
}
