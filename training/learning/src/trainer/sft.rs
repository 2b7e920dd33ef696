//! The warm start: supervised fine-tuning on copy tasks, then on demonstrations.

use webshop_agent::Task;

use crate::data::copy_tasks::CopyTasks;
use crate::data::demonstrations::{Demonstrations, cloning_gradient};
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::metrics::{Metric, Phase, Record};
use crate::optimizer::Schedule;
use crate::trainer::experiment::Experiment;
use crate::trainer::single_step::{step_format, steps_of};
use crate::trainer::{DAGGER_STEP, Trainer};

/// Trains on copy tasks, then on demonstrations, until the steps of both are done.
pub(super) fn run(trainer: &mut Trainer<'_>) -> Result<()> {
    let ex = trainer.ex;
    let config = &ex.config.warm_start;
    let total = config.all_steps();
    let schedule = Schedule { peak: config.lr, warmup: config.warmup_steps, total, decay: config.decay };
    let copy_tasks = CopyTasks::new(&ex.policy.tokenizer, config.copy_task_repeats, ex.seed());
    ex.observer.begin("warm start", total, trainer.progress.state.step.min(total));
    while trainer.progress.state.step < total {
        let (step, began) = (trainer.progress.state.step, trainer.progress.clock.seconds());
        let _span = tracing::debug_span!("warm_start_step", step).entered();
        let batch = if step < config.copy_task_steps {
            copy_tasks.batch(step, config.batch_episodes)
        } else {
            let of_batch = |share: f64| (share * config.batch_episodes as f64).round() as usize;
            let mut batch = finished_by_expert(trainer, step, of_batch(config.dagger_share))?;
            batch.extend(demonstrations(ex, step, config.batch_episodes - batch.len())?);
            batch.extend(copy_tasks.batch(step, of_batch(config.copy_task_share)));
            batch
        };
        if batch.is_empty() {
            return Err(TrainingError::NothingToClone { step });
        }
        let page_weight = if step < config.copy_task_steps { 0.0 } else { config.page_weight };
        let lr = schedule.lr(step, 0.0);
        let n_skipped = trainer.progress.state.skipped_non_finite;
        let (loss, grad_norm) = clone_batch(trainer, &batch, page_weight, lr, ex.config.optimizer.grad_clip)?;
        let mut record = Record::new(Phase::WarmStart, step + 1);
        record.set(Metric::TrainLoss, loss).set(Metric::TrainLr, lr);
        trainer.record_updates(&mut record, grad_norm.as_slice(), n_skipped);
        trainer.progress.state.step += 1;
        trainer.progress.log(&record, began)?;
        ex.observer.advance(1, &format!("loss {loss:.3}"));
        trainer.maybe_evaluate(Phase::WarmStart, step + 1, total, None)?;
        trainer.maybe_save_or_stop()?;
    }
    ex.observer.end();
    Ok(())
}

/// One optimizer step on the cloning loss of `batch`. Returns the loss, and the norm of the gradient as
/// [`Trainer::update`] does.
pub(super) fn clone_batch(
    trainer: &mut Trainer<'_>,
    batch: &[Trajectory],
    page_weight: f64,
    lr: f64,
    grad_clip: f64,
) -> Result<(f64, Option<f64>)> {
    let began = trainer.progress.clock.seconds();
    let limit_tokens = trainer.ex.config.rl.micro_batch_tokens;
    let (gradients, loss) =
        cloning_gradient(trainer.train_state.network(), batch, page_weight, limit_tokens)?;
    let grad_norm = trainer.update(gradients, lr, grad_clip)?;
    let n_tokens = batch.iter().map(|trajectory| trajectory.ids.len()).sum();
    let progress = &mut trainer.progress;
    progress.throughput.trained(n_tokens, progress.clock.seconds() - began);
    Ok((loss, grad_norm))
}

/// Up to `n` episodes that the current weights begin and the expert finishes, see [`dagger`](crate::data::dagger).
fn finished_by_expert(trainer: &mut Trainer<'_>, step: u64, n: usize) -> Result<Vec<Trajectory>> {
    let Trainer { ex, progress, train_state, .. } = trainer;
    let demonstrator = ex.policy.demonstrator(ex.config)?;
    let Some(layout) = demonstrator.layout().filter(|_| n > 0) else { return Ok(Vec::new()) };
    let demonstrations = whole_episodes(ex, step)?;
    let of_place = |place| {
        Experiment::task(&ex.tasks, demonstrations.goal_to_begin(step, place), DAGGER_STEP + step, place)
    };
    let tasks: Vec<Task> = (0..n as u64).map(of_place).collect();
    let (began, rl) = (progress.clock.seconds(), &ex.config.rl);
    let episodes = ex.rollout_at(train_state.network(), &tasks, (rl.temperature, rl.top_p), &|| ())?;
    progress.throughput.rolled_out(&episodes, progress.clock.seconds() - began);
    let finished = episodes
        .iter()
        .zip(0..)
        .map(|(episode, place)| demonstrations.finished(layout, (step, place), episode));
    finished.filter_map(Result::transpose).collect()
}

/// Up to `n` demonstrations at step coordinate `step`: single steps in a chat format of Shop-R1, whole episodes in others.
pub(super) fn demonstrations(ex: &Experiment<'_>, step: u64, n: usize) -> Result<Vec<Trajectory>> {
    if !ex.config.prompt.format.is_shop_r1() {
        return whole_episodes(ex, step)?.batch(step, n);
    }
    let format = step_format(ex, 1.0, 1.0)?;
    let format = if ex.config.shop_r1.history_rationales { format.with_rationales() } else { format };
    steps_of(ex, &ex.tasks).batch(&format, ex.config.warm_start.thinking_share, step, n)
}

/// Demonstrations of whole episodes as `step` needs them.
fn whole_episodes<'e>(ex: &'e Experiment<'_>, step: u64) -> Result<Demonstrations<'e>> {
    Demonstrations::of_run(ex.config, &ex.tasks, &ex.policy, step)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::trainer::experiment::tests::small_run;
    use crate::trainer::options::TrainOptions;

    #[test]
    fn the_model_begins_without_a_loss_and_the_expert_finishes() {
        let (_folder, config, run, compute) =
            small_run("model.from= layers=1 vocab_size=700 max_turn_tokens=200 max_context=4096");
        let (ex, progress, weights) =
            Experiment::open(&compute, &config, &run, TrainOptions::default()).unwrap();
        let never = AtomicBool::new(false);
        let mut trainer = Trainer::new(&ex, progress, weights, &never);
        assert_eq!(finished_by_expert(&mut trainer, 3, 0).unwrap(), []);
        let finished = finished_by_expert(&mut trainer, 3, 8).unwrap();
        assert!(!finished.is_empty());
        let decoded = |ids: &[u32]| ex.policy.tokenizer.decode(ids);
        for trajectory in &finished {
            // Random weights write no action, so that the expert begins after one turn.
            let first = trajectory.sampled.iter().position(|&is_sampled| is_sampled).unwrap();
            let before = decoded(&trajectory.ids[..first]);
            assert!(before.ends_with("nothing happens<|im_start|>"), "{before}");
            assert_eq!(before.matches("nothing happens").count(), 1, "{before}");
            let learned: Vec<u32> = trajectory
                .ids
                .iter()
                .zip(&trajectory.sampled)
                .filter_map(|(id, is_sampled)| is_sampled.then_some(*id))
                .collect();
            let learned = decoded(&learned);
            assert!(learned.starts_with("search["), "{learned}");
            assert!(learned.ends_with("click[buy now]<|im_end|>"), "{learned}");
        }
        assert_ne!(
            finished,
            finished_by_expert(&mut trainer, 4, 8).unwrap(),
            "each step has its own episodes"
        );
    }
}
