//! Reinforcement learning: the loop of A*-PO, stage 2, for any loss and task source.
//!
//! Paper: arXiv 2505.20686, algorithm 1. Each step draws goals x, makes V*(x) known, samples rollouts y with
//! rewards r, and takes gradient steps on the loss of A = r − V*. Deviations from the paper are listed in the
//! files of the losses.
//!
//! With `rl.demonstration_share = 1` the steps clone demonstrations and sample nothing: the control that tells what
//! as much more of the warm start would have given.

use std::ops::Range;

use webshop_evaluation::mean;

use crate::config::{OptimizerConfig, RlConfig};
use crate::data::demonstrations::cloning_gradient;
use crate::data::task_set::TaskId;
use crate::data::trajectory::Trajectory;
use crate::error::{Result, TrainingError};
use crate::loss::ppo::explained_variance;
use crate::loss::step::{CriticLoss, LossGradient, Scoring, UpdateStatistics, loss_gradient};
use crate::loss::{Loss, Prepared, Target, TargetStatistics, group};
use crate::metrics::record::{record_targets, record_update};
use crate::metrics::{Metric, Phase, Record};
use crate::model::critic::Critic;
use crate::optimizer::Schedule;
use crate::trainer::reference::{ReferencePolicy, last_refresh};
use crate::trainer::task_source::{RolloutRequest, Rollouts};
use crate::trainer::{MIXED_STEP, Trainer, sft};

/// Number of gradient norms that must be known before `optimizer.grad_clip_quantile` applies.
const MIN_NORMS: usize = 10;

/// Trains until the steps are done or the token budget is spent.
pub(super) fn run(trainer: &mut Trainer<'_>) -> Result<()> {
    let (ex, first) = (trainer.ex, trainer.ex.first_rl_step());
    let configured = ex.config.loss();
    let mut rl = Rl { config: &ex.config.rl, loss: ex.own_loss.unwrap_or(&*configured), trainer };
    if rl.trainer.progress.state.step > first && rl.is_over() {
        return Ok(());
    }
    let mut reference = rl.reference()?; // π_ref
    let name = if rl.config.is_cloning_alone() { "cloning" } else { rl.loss.name() };
    ex.observer.begin(name, rl.config.steps, rl.step());
    while !rl.is_over() {
        let (step, began) = (rl.step(), rl.trainer.progress.clock.seconds());
        let _span = tracing::debug_span!("rl_step", step).entered();
        let mut record = Record::new(Phase::Learn, rl.trainer.progress.state.step + 1);
        if step == 0 {
            // The optimizer moments of the cloning loss do not fit this loss.
            rl.trainer.train_state.restart(rl.config.optimizer, &ex.config.optimizer)?;
        }
        if !reference.is_current(&rl.trainer.progress, step) {
            reference = rl.reference()?;
        }
        if rl.config.is_cloning_alone() {
            rl.clone_demonstrations(1.0, &mut record)?;
        } else {
            let goals = reference.draw_goals(step); // x
            reference.estimate_values(&goals, step, &mut rl.trainer.progress, &mut record)?; // V*(x)
            let mut rollouts = rl.sample(&reference, &goals, &mut record)?; // y ~ π(·|x), r(x, y)
            rl.set_critic_values(&mut rollouts)?; // V(s)
            if let Some(spread) = group::mean_spread(&rollouts.scored) {
                record.set(Metric::TrainGroupSpread, spread);
            }
            rl.learn(&reference, &rollouts, &mut record)?; // A = r − V*, θ ← θ − η ∇L
            rl.advance_curriculum(step, &mut record);
        }
        rl.finish_step(&reference, &record, began)?;
    }
    ex.observer.end();
    Ok(())
}

/// `n` episodes in `n_parts` minibatches that differ by one episode at most; in fewer if there are not so many.
fn parts(n: usize, n_parts: usize) -> Vec<Range<usize>> {
    let n_parts = n_parts.min(n);
    (0..n_parts).map(|part| (part * n).div_ceil(n_parts)..((part + 1) * n).div_ceil(n_parts)).collect()
}

/// Demonstrations beside `n` rollouts.
fn n_demonstrated(n: usize, share: f64) -> usize {
    ((n as f64 * share).round() as usize).max(1)
}

/// The RL phase of a run.
struct Rl<'t, 'a> {
    trainer: &'t mut Trainer<'a>,
    config: &'t RlConfig,
    loss: &'t dyn Loss,
}

impl<'a> Rl<'_, 'a> {
    /// RL steps taken so far.
    fn step(&self) -> u64 {
        self.trainer.progress.state.step - self.trainer.ex.first_rl_step()
    }

    /// Whether the steps are done or the token budget is spent.
    fn is_over(&self) -> bool {
        let state = &self.trainer.progress.state;
        let limit = self.config.max_tokens;
        state.step >= self.trainer.ex.first_rl_step() + self.config.steps
            || limit > 0 && state.tokens >= limit
    }

    /// The spent share of the token budget, 0 to 1; 0 without a budget.
    fn share_spent(&self) -> f64 {
        match self.config.max_tokens {
            0 => 0.0,
            limit => (self.trainer.progress.state.tokens as f64 / limit as f64).min(1.0),
        }
    }

    /// The reference of the current step. At a refresh it is the current policy.
    fn reference(&mut self) -> Result<ReferencePolicy<'a>> {
        let (step, Trainer { ex, progress, train_state, .. }) = (self.step(), &mut *self.trainer);
        if step == last_refresh(ex, step) {
            ex.save_policy(train_state, &ex.reference_folder(step))?;
        }
        ReferencePolicy::open(ex, progress, step)
    }

    /// Rollouts of the policy for `goals`, or of the reference if the loss is off-policy by design.
    fn sample(
        &mut self,
        reference: &ReferencePolicy<'_>,
        goals: &[TaskId],
        record: &mut Record,
    ) -> Result<Rollouts> {
        let step = self.step();
        let Trainer { progress, train_state, .. } = &mut *self.trainer;
        let network = match self.loss.samples_from_reference() {
            true => reference.network(),
            false => train_state.network(),
        };
        let request = RolloutRequest { step, goals, network, reference: reference.frozen() };
        reference.source().collect(&request, progress, record)
    }

    /// Sets the critic's values of the states of `rollouts`, if the loss has a critic.
    fn set_critic_values(&self, rollouts: &mut Rollouts) -> Result<()> {
        let Some(critic) = &self.trainer.critic else { return Ok(()) };
        let turns: Vec<Vec<usize>> = rollouts
            .scored
            .iter()
            .map(|scored| scored.turns.iter().map(|turn| turn.n_tokens).collect())
            .collect();
        let (policy, limit_tokens) = (self.trainer.train_state.network(), self.config.micro_batch_tokens);
        let values = critic.values(policy, &rollouts.batch, &turns, limit_tokens)?;
        for (scored, values) in rollouts.scored.iter_mut().zip(values) {
            scored.turns.iter_mut().zip(values).for_each(|(turn, value)| turn.value = value);
        }
        Ok(())
    }

    /// The target of each episode; `None` if the rewards carry no signal.
    fn targets(&self, rollouts: &Rollouts) -> Result<Option<Vec<Target>>> {
        let Prepared::Learn(targets) = self.loss.prepare(&rollouts.scored)? else { return Ok(None) };
        let (n_targets, n_episodes) = (targets.len(), rollouts.batch.len());
        if n_targets != n_episodes {
            let problem = format!("it has {n_targets} targets for {n_episodes} episodes");
            return Err(TrainingError::InvalidBatch { loss: self.loss.name(), problem });
        }
        Ok(Some(targets))
    }

    /// The optimizer steps of one batch, or a counted skip if its rewards carry no signal.
    fn learn(
        &mut self,
        reference: &ReferencePolicy<'_>,
        rollouts: &Rollouts,
        record: &mut Record,
    ) -> Result<()> {
        let lr = self.lr();
        let Some(targets) = self.targets(rollouts)? else {
            return self.learn_without_signal(record);
        };
        record.set(Metric::TrainLr, lr);
        record_targets(record, &TargetStatistics::of(&targets));
        if self.trainer.critic.is_some()
            && let Some(share) = explained_variance(&rollouts.scored, &targets)
        {
            record.set(Metric::TrainExplainedVariance, share);
        }
        let began = self.trainer.progress.clock.seconds();
        let minibatches = parts(rollouts.batch.len(), self.config.minibatches);
        let value_lr = self.config.loss.with_critic().map_or(0.0, |loss| loss.value_lr);
        let (mut statistics, mut norms, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let (mut n_updates, mut n_tokens) = (0, 0);
        let n_skipped = self.trainer.progress.state.skipped_non_finite;
        for epoch in 0..self.config.epochs {
            for (place, part) in minibatches.iter().enumerate() {
                let place = (epoch * self.config.minibatches + place) as u64;
                let (batch, targets) = (&rollouts.batch[part.clone()], &targets[part.clone()]);
                let Some(of_loss) = self.gradient(reference, batch, targets, place)? else {
                    continue;
                };
                let norm = self.trainer.update(of_loss.gradients, lr, self.grad_clip())?;
                if norm.is_some() {
                    self.trainer.update_critic(of_loss.critic.as_ref(), value_lr)?;
                }
                errors.extend(of_loss.critic.map(|critic| critic.loss));
                statistics.extend(of_loss.statistics);
                n_updates += 1;
                n_tokens += of_loss.n_tokens;
                norms.extend(norm);
                self.remember_norm(norm);
            }
        }
        if !statistics.is_empty() {
            record_update(record, &UpdateStatistics::mean(&statistics));
        }
        if !errors.is_empty() {
            record.set(Metric::TrainValueLoss, mean(&errors));
        }
        // A skipped step has neither a norm nor throughput.
        if n_updates > 0 {
            self.trainer.record_updates(record, &norms, n_skipped);
            let progress = &mut self.trainer.progress;
            let seconds = progress.clock.seconds() - began;
            progress.throughput.trained(n_tokens, seconds);
        }
        Ok(())
    }

    /// Counts a batch without a signal. Demonstrations have one whatever the rewards are.
    fn learn_without_signal(&mut self, record: &mut Record) -> Result<()> {
        let state = &mut self.trainer.progress.state;
        state.skipped_no_signal += 1;
        record.set(Metric::TrainSkippedNoSignal, state.skipped_no_signal as f64);
        match self.config.demonstration_share {
            0.0 => Ok(()),
            share => self.clone_demonstrations(share, record),
        }
    }

    /// The optimizer steps of one batch on demonstrations alone, each pass of which has `share` times as many as it would have
    /// rollouts, and others than the pass before. If nothing else is learned from, their completions count as tokens, so
    /// that budgets of tokens hold for cloning too.
    fn clone_demonstrations(&mut self, share: f64, record: &mut Record) -> Result<()> {
        let (lr, page_weight) = (self.lr(), self.trainer.ex.config.warm_start.page_weight);
        let size = n_demonstrated(self.config.batch_episodes.div_ceil(self.config.minibatches), share);
        let (mut losses, mut norms) = (Vec::new(), Vec::new());
        let n_skipped = self.trainer.progress.state.skipped_non_finite;
        for place in 0..self.updates_per_step() {
            let batch = self.demonstrations(place, size)?;
            let (loss, norm) = sft::clone_batch(self.trainer, &batch, page_weight, lr, self.grad_clip())?;
            if self.config.is_cloning_alone() {
                self.trainer.progress.state.tokens +=
                    batch.iter().map(|one| one.n_sampled() as u64).sum::<u64>();
            }
            losses.push(loss);
            norms.extend(norm);
            self.remember_norm(norm);
        }
        record
            .set(Metric::TrainLoss, mean(&losses))
            .set(Metric::TrainLr, lr)
            .set(Metric::RolloutTokensTotal, self.trainer.progress.state.tokens as f64);
        self.trainer.record_updates(record, &norms, n_skipped);
        Ok(())
    }

    /// Optimizer steps of one batch.
    fn updates_per_step(&self) -> u64 {
        (self.config.epochs * self.config.minibatches) as u64
    }

    /// About `n` demonstrations, at least one, for the optimizer step with number `place` of the current batch.
    fn demonstrations(&self, place: u64, n: usize) -> Result<Vec<Trajectory>> {
        let Trainer { ex, progress, .. } = &*self.trainer;
        let step = progress.state.step;
        let found = sft::demonstrations(ex, MIXED_STEP + step * self.updates_per_step() + place, n)?;
        if found.is_empty() { Err(TrainingError::NothingToClone { step }) } else { Ok(found) }
    }

    /// The learning rate of the current batch.
    fn lr(&self) -> f64 {
        let RlConfig { lr, warmup_steps, steps, decay, .. } = *self.config;
        Schedule { peak: lr, warmup: warmup_steps, total: steps, decay }.lr(self.step(), self.share_spent())
    }

    /// The gradient of a minibatch with its share of demonstrations; `place` is its number in the step. It is that of the
    /// demonstrations alone if no target has a weight, and `None` if there are none either.
    fn gradient(
        &self,
        reference: &ReferencePolicy<'_>,
        batch: &[Trajectory],
        targets: &[Target],
        place: u64,
    ) -> Result<Option<LossGradient>> {
        let (policy, ex) = (self.trainer.train_state.network(), self.trainer.ex);
        let share = 1.0 / targets.len() as f64;
        let targets: Vec<Target> = targets.iter().map(|target| Target { share, ..target.clone() }).collect();
        let scoring = Scoring { sampler: ex.sampler()?, limit_tokens: self.config.micro_batch_tokens };
        let head = self.trainer.critic.as_ref().map(Critic::head).transpose()?;
        let coefficient = self.config.loss.with_critic().map_or(0.0, |loss| loss.vf_coef);
        let critic = head.as_ref().map(|head| CriticLoss { head, coefficient });
        let of_loss =
            loss_gradient(policy, reference.network(), self.loss, batch, &targets, critic, scoring)?;
        let demonstrated = self.config.demonstration_share;
        if demonstrated == 0.0 {
            return Ok(of_loss);
        }
        let demonstrations = self.demonstrations(place, n_demonstrated(batch.len(), demonstrated))?;
        let page_weight = ex.config.warm_start.page_weight;
        let (cloning, _) =
            cloning_gradient(policy, &demonstrations, page_weight, self.config.micro_batch_tokens)?;
        let n_tokens = demonstrations.iter().map(|one| one.ids.len()).sum();
        Ok(Some(match of_loss {
            Some(mut of_loss) => {
                of_loss.gradients.mix(demonstrated, &cloning)?;
                LossGradient { n_tokens: of_loss.n_tokens + n_tokens, ..of_loss }
            }
            None => LossGradient { gradients: cloning, critic: None, statistics: None, n_tokens },
        }))
    }

    /// The norm that gradients are clipped to: fixed, or a quantile of those so far
    /// ("AutoClip: Adaptive Gradient Clipping for Source Separation Networks", arXiv 2007.14469).
    fn grad_clip(&self) -> f64 {
        grad_clip(&self.trainer.ex.config.optimizer, &self.trainer.progress.state.grad_norms)
    }

    fn remember_norm(&mut self, norm: Option<f64>) {
        if self.trainer.ex.config.optimizer.grad_clip_quantile > 0.0 {
            // A norm of 0 would be a bound of 0, which turns clipping off.
            self.trainer.progress.state.grad_norms.extend(norm.filter(|norm| *norm > 0.0));
        }
    }

    /// Ends the stage of the curriculum if the success rate of the batch reaches its threshold.
    fn advance_curriculum(&mut self, step: u64, record: &mut Record) {
        let curriculum = &self.trainer.ex.config.curriculum;
        let state = &mut self.trainer.progress.state;
        if !curriculum.thresholds.is_empty() {
            record.set(Metric::RolloutStage, state.curriculum_stage as f64);
        }
        let success = record.get(Metric::RolloutSuccessRate).unwrap_or_default();
        let threshold = curriculum.thresholds.get(state.curriculum_stage);
        if threshold.is_some_and(|threshold| success >= *threshold) {
            state.curriculum_stage += 1;
            state.stage_since = step + 1;
        }
    }

    /// Logs the step, evaluates and saves if due.
    fn finish_step(&mut self, reference: &ReferencePolicy<'_>, record: &Record, began: f64) -> Result<()> {
        self.trainer.progress.state.step += 1;
        self.trainer.progress.log(record, began)?;
        let percent = |name, metric| Some(format!("{name} {:.1} %", 100.0 * record.get(metric)?));
        let message = percent("exact", Metric::RolloutExactAction)
            .or_else(|| percent("success", Metric::RolloutSuccessRate))
            .unwrap_or_else(|| format!("loss {:.3}", record.get(Metric::TrainLoss).unwrap_or_default()));
        self.trainer.ex.observer.advance(1, &message);
        let total = if self.is_over() { self.step() } else { self.config.steps };
        self.trainer.maybe_evaluate(Phase::Learn, self.step(), total, Some(reference))?;
        self.trainer.maybe_save_or_stop()
    }
}

/// The norm that gradients are clipped to after gradients of these norms.
fn grad_clip(config: &OptimizerConfig, norms: &[f64]) -> f64 {
    if config.grad_clip_quantile == 0.0 || norms.len() < MIN_NORMS {
        return config.grad_clip;
    }
    let mut sorted = norms.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * config.grad_clip_quantile).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_clipped_to_a_quantile_of_the_norms_so_far() {
        let norms = [5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0, 10.0];
        let bound = |quantile, n| {
            let config =
                OptimizerConfig { grad_clip: 0.5, grad_clip_quantile: quantile, ..Default::default() };
            grad_clip(&config, &norms[..n])
        };
        assert_eq!([bound(0.0, 10), bound(0.5, 9)], [0.5; 2], "a fixed norm, also before the tenth step");
        // Places 2 of 0 to 9, and 4.5, which is rounded up.
        assert_eq!([bound(0.2, 10), bound(0.5, 10), bound(1.0, 10)], [3.0, 6.0, 10.0]);
    }

    #[test]
    fn minibatches_hold_every_episode_once_and_are_alike() {
        assert_eq!(parts(8, 4), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(parts(10, 4), [0..3, 3..5, 5..8, 8..10]);
        assert_eq!(parts(2, 4), [0..1, 1..2]);
    }
}
