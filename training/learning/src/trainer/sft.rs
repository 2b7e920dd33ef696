//! The warm start: supervised fine-tuning on copy tasks, then on demonstrations.

use crate::data::copy_tasks::CopyTasks;
use crate::data::demonstrations::{Demonstrations, cloning_gradient};
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::metrics::{Metric, Phase, Record};
use crate::optimizer::Schedule;
use crate::trainer::Trainer;
use crate::trainer::experiment::Experiment;
use crate::trainer::single_step::{examples_of, single_step_sampler};

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
            let n_beside = config.copy_task_share * config.batch_episodes as f64;
            let mut batch = demonstrations(ex, step, config.batch_episodes)?;
            batch.extend(copy_tasks.batch(step, n_beside.round() as usize));
            batch
        };
        if batch.is_empty() {
            return Err(TrainingError::NothingToClone { step });
        }
        let page_weight = if step < config.copy_task_steps { 0.0 } else { config.page_weight };
        let lr = schedule.lr(step, 0.0);
        let (loss, grad_norm) = clone_batch(trainer, &batch, page_weight, lr, ex.config.optimizer.grad_clip)?;
        let mut record = Record::new(Phase::WarmStart, step + 1);
        record.set(Metric::TrainLoss, loss).set(Metric::TrainLr, lr);
        trainer.record_update(&mut record, grad_norm);
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

/// Up to `n` demonstrations at step coordinate `step`: whole episodes, or single steps if the prompt format
/// supports them.
pub(super) fn demonstrations(ex: &Experiment<'_>, step: u64, n: usize) -> Result<Vec<Trajectory>> {
    let config = &ex.config.warm_start;
    if !ex.supports_single_steps() {
        let demonstrations = Demonstrations {
            task_set: &ex.tasks,
            tokenizer: &ex.policy.tokenizer,
            demonstrator: ex.policy.demonstrator(ex.config)?,
            results_shown: ex.config.prompt.results_shown,
            max_context: ex.config.prompt.max_context,
            max_turn_tokens: ex.config.prompt.max_turn_tokens,
            max_steps: ex.config.run.max_steps,
            config,
            only_successful: config.is_filtered(step),
            seed: ex.seed(),
        };
        return demonstrations.batch(step, n);
    }
    let sampler = single_step_sampler(ex, 1.0, 1.0)?;
    let sampler = if ex.config.shop_r1.history_rationales { sampler.with_rationales() } else { sampler };
    examples_of(ex, &ex.tasks).batch(&sampler, config.thinking_share, step, n)
}
