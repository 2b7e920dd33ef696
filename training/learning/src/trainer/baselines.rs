//! The baselines of a finished run: policies without a model on the goals of its final evaluation.

use webshop_agent::Task;
use webshop_evaluation::{BaselineConfig, Outcomes, baselines};

use crate::error::{Result, TrainingError};
use crate::run::atomic::write_json;
use crate::run::episodes::read_episodes;
use crate::run::folder::step_name;
use crate::trainer::Evaluation;
use crate::trainer::experiment::Experiment;

/// Step coordinate of the baselines, as of `webshop eval`.
const BASELINE_STEP: u64 = 0;

/// Runs the baselines on the goals of the evaluation `learned`, compares its recorded episodes with them and
/// writes `baselines.json`. The draws of the random policy are those of `webshop eval`.
pub(super) fn write_baselines(ex: &Experiment<'_>, learned: &Evaluation) -> Result<()> {
    let path = ex.run.episodes().join(format!("{}.jsonl", step_name(learned.step)));
    let goals = ex.tasks.evaluation_goals(&ex.config.evaluation);
    let episodes = read_episodes(&path)?;
    let recorded = episodes.iter().map(|episode| (episode.shop, episode.goal));
    if !recorded.eq(goals.iter().map(|goal| (goal.shop_number(), goal.goal))) {
        return Err(TrainingError::bad_file(&path, "its episodes are not those of the held-out goals"));
    }
    let mut outcomes = Outcomes::default();
    for (episode, goal) in episodes.iter().zip(&goals) {
        outcomes.push(goal.product(), episode.failure.is_none());
    }
    let tasks: Vec<Task> = goals.iter().map(|goal| goal.task(BASELINE_STEP)).collect();
    let found = baselines(&tasks, baseline_config(ex), &outcomes)?;
    write_json(&ex.run.baselines(), &found)
}

/// The baselines of a run, its demonstrator among them if that reads pages.
pub(super) fn baseline_config(ex: &Experiment<'_>) -> BaselineConfig {
    BaselineConfig {
        max_steps: ex.config.run.max_steps,
        results_shown: ex.config.prompt.results_shown,
        browsing: ex.config.browsing_demonstrator(),
        seed: ex.seed(),
    }
}
