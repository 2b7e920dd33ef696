//! The tasks of the stages of the curriculum.

use crate::config::CurriculumConfig;
use crate::data::task_set::TaskSet;
use crate::error::Result;

/// The tasks of a stage, from 0; all of them after the last stage. Fails if the stage has no training goal.
pub(crate) fn curriculum_stage(
    curriculum: &CurriculumConfig,
    tasks: &TaskSet,
    stage: usize,
) -> Result<TaskSet> {
    let tasks = match curriculum.sizes.get(stage) {
        Some(n_products) => tasks.stage(*n_products)?,
        None => tasks.clone(),
    };
    match curriculum.requirements.get(stage) {
        Some(n_requirements) => tasks.with_at_most_requirements(*n_requirements),
        None => Ok(tasks),
    }
}

/// Opens every stage once, so that a stage that fails does so before a run begins.
pub(crate) fn check_stages(curriculum: &CurriculumConfig, tasks: &TaskSet) -> Result<()> {
    let mut stages = 0..curriculum.thresholds.len();
    stages.try_for_each(|stage| curriculum_stage(curriculum, tasks, stage).map(drop))
}
