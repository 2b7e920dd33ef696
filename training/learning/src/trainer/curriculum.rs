//! The task source of a stage of the curriculum.

use crate::config::RlMode;
use crate::data::curriculum::curriculum_stage;
use crate::error::Result;
use crate::trainer::experiment::Experiment;
use crate::trainer::multi_turn::MultiTurn;
use crate::trainer::single_step::SingleStep;
use crate::trainer::task_source::TaskSource;

/// The source of `rl.mode` at a stage of the curriculum, with the digest of its shops.
pub(super) fn open<'a>(ex: &'a Experiment<'a>, stage: usize) -> Result<(Box<dyn TaskSource + 'a>, String)> {
    let tasks = curriculum_stage(&ex.config.curriculum, &ex.tasks, stage)?;
    let fingerprint = tasks.fingerprint();
    let source: Box<dyn TaskSource + 'a> = match ex.config.rl.mode {
        RlMode::MultiTurn => Box::new(MultiTurn { ex, tasks }),
        RlMode::SingleStep => Box::new(SingleStep { ex, tasks }),
    };
    Ok((source, fingerprint))
}
