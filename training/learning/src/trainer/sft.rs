//! The warm start: reading exercises, then cloning of demonstrations.

use crate::trainer::Trainer;
use crate::error::{Result, TrainingError};
use crate::data::copy_tasks::Exercises;
use crate::metrics::{Metric, Phase, Record};
use crate::optimizer::Schedule;
use crate::setup::prompt_config;
use crate::data::trajectory::Trajectory;
use crate::data::demonstrations::{Demonstrations, cloning_gradient};

impl Trainer<'_> {
    /// Exercises, then demonstrations, until the steps of both are done.
    pub(super) fn clone_demonstrations(&mut self) -> Result<()> {
        let config = &self.config.warm_start;
        let schedule = Schedule {
            peak: config.lr,
            warmup: config.warmup_steps,
            total: config.all_steps(),
            decay: config.decay,
        };
        self.observer.begin("warm start", schedule.total, self.state.step.min(schedule.total));
        while self.state.step < schedule.total {
            let began = self.clock.seconds();
            let step = self.state.step;
            let batch = if step < config.exercise_steps {
                Exercises::new(&self.actor.tokenizer, self.seed()).batch(step, config.batch_episodes)
            } else {
                self.cloned(step, config.batch_episodes)?
            };
            if batch.is_empty() {
                return Err(TrainingError::NothingToClone { step });
            }
            let limit_tokens = self.config.learner.micro_batch_tokens;
            let training = self.clock.seconds();
            let (gradients, loss) = cloning_gradient(self.student.network(), &batch, limit_tokens)?;
            let mut record = Record::new(Phase::WarmStart, step + 1);
            let lr = schedule.lr(step, 0.0);
            let grad_norm = self.update(gradients, lr, self.config.optimizer.grad_clip)?;
            record.set(Metric::TrainLoss, loss).set(Metric::TrainLr, lr);
            self.record_update(&mut record, grad_norm);
            let n_tokens = batch.iter().map(|trip| trip.ids.len()).sum();
            self.pace.trained(n_tokens, self.clock.seconds() - training);
            self.state.step += 1;
            self.log(&record, began)?;
            self.observer.advance(1, &format!("loss {loss:.3}"));
            self.maybe_evaluate(Phase::WarmStart, step + 1, schedule.total, None)?;
            self.maybe_save_or_stop()?;
        }
        self.observer.end();
        Ok(())
    }

    /// The `n` demonstrations of optimizer step `step`: trips, or single steps where those can be asked about.
    pub(super) fn cloned(&self, step: u64, n: usize) -> Result<Vec<Trajectory>> {
        if !self.knows_steps() {
            return self.demonstrations()?.batch(step, n);
        }
        let interviewer = self.interviewer(1.0, 1.0)?;
        let interviewer = match self.config.shop_r1.history_rationales {
            true => interviewer.recalling(),
            false => interviewer,
        };
        self.steps_in(&self.ground).batch(&interviewer, self.config.warm_start.think_share, step, n)
    }

    /// Demonstrations of the training goals.
    pub(super) fn demonstrations(&self) -> Result<Demonstrations<'_>> {
        Ok(Demonstrations {
            ground: &self.ground,
            tokenizer: &self.actor.tokenizer,
            chat: self.actor.demonstrator(self.config)?,
            prompt: prompt_config(self.config),
            max_context: self.config.prompt.max_context,
            think_share: self.config.warm_start.think_share,
            refusal_share: self.config.warm_start.refusal_share,
            seed: self.seed(),
        })
    }
}
