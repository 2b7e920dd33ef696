//! The baselines of a finished run: policies without a model on the goals of its final evaluation.

use webshop_agent::{EpisodeCoordinates, Task};
use webshop_evaluation::{Baseline, BaselineConfig, Outcomes, baselines};

use crate::error::{Result, TrainingError};
use crate::run::atomic::write_json;
use crate::run::episodes::read_episodes;
use crate::run::folder::step_name;
use crate::trainer::Evaluation;
use crate::trainer::experiment::Experiment;

/// Runs the baselines on the goals of the evaluation `learned`, compares its recorded episodes with them and
/// writes `baselines.json`. The draws of the random policy are those of `webshop eval`.
pub(super) fn write_baselines(ex: &Experiment<'_>, learned: &Evaluation) -> Result<()> {
    let path = ex.run.episodes().join(format!("{}.jsonl", step_name(learned.step)));
    let (shop, evaluation) = (ex.tasks.shop(), &ex.config.evaluation);
    let goals = ex.tasks.held_out(evaluation.split.into(), evaluation.episodes);
    let episodes = read_episodes(&path)?;
    if !episodes.iter().map(|episode| episode.goal).eq(goals.iter().copied()) {
        return Err(TrainingError::bad_file(&path, "its episodes are not those of the held-out goals"));
    }
    let mut outcomes = Outcomes::default();
    for episode in &episodes {
        outcomes.push(shop.goals().get(episode.goal).product, episode.failure.is_none());
    }
    let at = |goal| EpisodeCoordinates { step: 0, shop: 0, goal, sample: 0 };
    let tasks: Vec<Task> = goals.into_iter().map(|goal| Task::new(shop.clone(), at(goal))).collect();
    let config = BaselineConfig {
        max_steps: ex.config.run.max_steps as u32,
        results_shown: ex.config.prompt.results_shown,
        seed: ex.seed(),
    };
    let found: Vec<Baseline> = baselines(&tasks, config, &outcomes)?;
    write_json(&ex.run.baselines(), &found)
}
