//! Held-out evaluations: episodes for held-out goals and, if it is asked for, completions at held-out steps of the
//! evaluated shop.
//!
//! Metrics go to the record of the last step. Episodes and completions are saved as `episodes/step-….jsonl`
//! and `completions/step-….jsonl`. An evaluation never changes weights.

use std::fs;
use std::path::Path;
use webshop_agent::EpisodeExt;

use serde::Serialize;
use webshop_agent::Task;
use webshop_evaluation::next_action::{
    NextActionScores, RewardConfig, ShopR1Reward, StepResult, score_steps, scores_of,
};
use webshop_lm::Sampler;
use webshop_products::Seed;

use crate::data::held_out::tally;
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::metrics::record::{mean_entropy, record_evaluation, record_next_action, record_reading};
use crate::metrics::{Metric, Phase, Record};
use crate::model::kl::kl_to;
use crate::model::network::Network;
use crate::run::atomic::write_atomically;
use crate::run::folder::step_name;
use crate::trainer::experiment::Experiment;
use crate::trainer::progress::{Best, Progress};
use crate::trainer::single_step::{Completer, steps_of};
use crate::trainer::{EVALUATION_STEP, Evaluation};

/// Number of episodes that an [`Evaluation`] holds as text.
const SHOWN_EPISODES: usize = 3;

/// Evaluates `network` on held-out goals and logs the result under the last step. With a `reference` and a
/// temperature above 0, the KL to it is estimated too.
pub(super) fn evaluate(
    ex: &Experiment<'_>,
    network: &Network,
    progress: &mut Progress,
    phase: Phase,
    reference: Option<&Network>,
) -> Result<Evaluation> {
    let (config, step) = (&ex.config.evaluation, progress.state.step);
    let _span = tracing::debug_span!("evaluation", step).entered();
    let began = progress.clock.seconds();
    let goals = ex.tasks.evaluation_goals(config);
    let tasks: Vec<Task> = goals.iter().map(|goal| goal.task(EVALUATION_STEP + step)).collect();
    let episodes = ex.rollout_at(network, &tasks, (config.temperature, config.top_p), &|| ())?;
    progress.throughput.rolled_out(&episodes, progress.clock.seconds() - began);
    let summary = tally(&episodes, &goals).summary();
    let mut record = Record::new(phase, step);
    record_evaluation(&mut record, &summary);
    record_reading(&mut record, &episodes);
    let trajectories: Vec<Trajectory> = episodes.iter().filter_map(Trajectory::from_episode).collect();
    record.set(Metric::EvalEntropy, mean_entropy(&trajectories));
    if let Some(reference) = reference.filter(|_| config.temperature > 0.0) {
        let sampler = Sampler::new(config.temperature as f32, config.top_p as f32)?;
        let kl = kl_to(reference, &trajectories, sampler, ex.config.rl.micro_batch_tokens)?;
        record.set(Metric::EvalKl, kl);
    }
    let next_action = ex.evaluates_single_steps().then(|| evaluate_steps(ex, network, step)).transpose()?;
    ex.observer.log(&format!("step {step}: held out {summary}"));
    if let Some(StepEvaluation { results, scores, reward }) = &next_action {
        save_lines(&ex.run.completions(), step, results)?;
        record_next_action(&mut record, scores, *reward);
        ex.observer.log(&format!("step {step}: held out {scores}"));
    }
    progress.log(&record, began)?;
    if phase == Phase::Learn && ex.config.checkpoint.best {
        progress.state.best = Some(Best::of(progress.state.best, step, summary.success_rate));
    }
    save_lines(&ex.run.episodes(), step, episodes.iter())?;
    let shown = episodes.iter().take(SHOWN_EPISODES);
    Ok(Evaluation {
        step,
        seconds: progress.clock.seconds(),
        summary,
        episodes: shown.map(EpisodeExt::to_text).collect(),
        next_action: next_action.map(|evaluation| evaluation.scores),
    })
}

/// Completions at held-out steps.
struct StepEvaluation {
    results: Vec<StepResult>,
    scores: NextActionScores,
    /// Mean hierarchical reward.
    reward: f64,
}

/// Evaluates completions at held-out steps, which are the same for every seed and for all runs with the same
/// demonstrator. A step whose prompt is too long counts as an empty completion. The reward is the default one,
/// whatever training uses, so that runs compare.
fn evaluate_steps(ex: &Experiment<'_>, network: &Network, step: u64) -> Result<StepEvaluation> {
    let (evaluation, shop_r1) = (&ex.config.evaluation, &ex.config.shop_r1);
    let rule = ShopR1Reward::Hierarchical(RewardConfig::default());
    let completer = Completer::new(ex, (evaluation.temperature, evaluation.top_p), rule)?;
    let all = steps_of(ex, &ex.tasks);
    let held_out = all.held_out_steps(evaluation.split.into(), shop_r1.eval_examples);
    let (mut examples, mut steps, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (goal, held_out)) in held_out.into_iter().enumerate() {
        if let Some(step) = all.render(&completer.format, goal, &held_out)? {
            steps.push(step);
            places.push(place);
        }
        examples.push(held_out.example);
    }
    let scored = completer.complete(network, &steps, EVALUATION_STEP + step, 1, &|_| ())?;
    let total = scored.iter().map(|completion| completion.hierarchical).sum::<f64>();
    let reward = total / examples.len().max(1) as f64;
    let mut completions = vec![None; examples.len()];
    for (place, completion) in places.into_iter().zip(scored) {
        completions[place] = Some(completion.text);
    }
    let results = score_steps(&examples, &completions);
    let scores = scores_of(&results, Seed(0));
    Ok(StepEvaluation { results, scores, reward })
}

/// Writes `step-….jsonl` in `folder`, one JSON object per line.
fn save_lines<T: Serialize>(folder: &Path, step: u64, all: impl IntoIterator<Item = T>) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| TrainingError::io("create", folder, e))?;
    let path = folder.join(format!("{}.jsonl", step_name(step)));
    let mut lines = Vec::new();
    for each in all {
        serde_json::to_writer(&mut lines, &each).map_err(|error| TrainingError::bad_file(&path, error))?;
        lines.push(b'\n');
    }
    write_atomically(&path, &lines)
}
