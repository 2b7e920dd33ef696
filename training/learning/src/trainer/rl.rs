//! Learning from own trips.

use webshop_agent::{Episode, Task};

use crate::trainer::reference::{Guide, scored_turns};
use crate::trainer::{MIXED_STEP, Trainer, stage_of};
use crate::error::Result;
use webshop_evaluation::summarize;
use crate::model::gradient::Gradients;
use crate::data::task_set::GroundGoal;
use crate::loss::step::{LearnTerms, learn_step};
use crate::loss::{Judged, Learner, Prepared, Scored, Target, learner};
use crate::metrics::{Metric, Phase, Record};
use crate::model::network::Network;
use crate::optimizer::Schedule;
use crate::metrics::record::{record_learning, record_malformed, record_rollout};
use crate::data::trajectory::Trajectory;
use crate::data::demonstrations::cloning_gradient;

/// Norms of gradients that must be known before clipping follows them.
const FEWEST_NORMS: usize = 10;

impl Trainer<'_> {
    /// Learns until its steps are done or its tokens are spent.
    pub(super) fn learn(&mut self) -> Result<()> {
        let config = &self.config.learner;
        let learner = learner(self.config);
        let schedule = Schedule {
            peak: config.lr,
            warmup: config.warmup_steps,
            total: config.steps,
            decay: config.decay,
        };
        let first = self.first_learner_step();
        let is_over = |trainer: &Self| trainer.state.step >= first + config.steps || trainer.is_spent();
        if self.state.step > first && is_over(self) {
            return Ok(());
        }
        let mut guide = self.guide_at(self.state.step - first)?;
        self.observer.begin(learner.name(), config.steps, self.state.step - first);
        while !is_over(self) {
            let began = self.clock.seconds();
            let step = self.state.step - first;
            if step == 0 {
                // Moments of the cloning gradient say nothing about this one.
                self.student.restart(config.optimizer, &self.config.optimizer)?;
            }
            if !self.is_guided_by(&guide, step) {
                guide = self.guide_at(step)?;
            }
            let mut record = Record::new(Phase::Learn, self.state.step + 1);
            let goals = guide.goals_of(self, step);
            self.value_goals(&mut guide, &goals, step, &mut record)?;
            let (batch, scored) = match self.practises_steps() {
                true => self.make_answers(learner.as_ref(), &guide, &goals, step, &mut record)?,
                false => self.make_trips(learner.as_ref(), &guide, &goals, step, &mut record)?,
            };
            let lr = schedule.lr(step, self.share_spent());
            let training = self.clock.seconds();
            self.descend(&guide, learner.as_ref(), &batch, &scored, lr, &mut record)?;
            // A skipped step has no speed.
            if record.get(Metric::TrainLoss).is_some() {
                let n_tokens = config.epochs * batch.iter().map(|trip| trip.ids.len()).sum::<usize>();
                self.pace.trained(n_tokens, self.clock.seconds() - training);
            }
            if self.has_mastered(&mut record) {
                self.next_stage(step + 1)?;
            }
            self.state.step += 1;
            self.log(&record, began)?;
            let (name, share) = match record.get(Metric::RolloutExactAction) {
                Some(exact) => ("exact", exact),
                None => ("success", record.get(Metric::RolloutSuccessRate).unwrap_or_default()),
            };
            self.observer.advance(1, &format!("{name} {:.1} %", 100.0 * share));
            let total = if is_over(self) { step + 1 } else { config.steps };
            self.maybe_evaluate(Phase::Learn, step + 1, total, Some(&guide))?;
            self.maybe_save_or_stop()?;
        }
        self.observer.end();
        Ok(())
    }

    /// Whether the step's trips end the stage of the curriculum, which is recorded.
    fn has_mastered(&self, record: &mut Record) -> bool {
        let curriculum = &self.config.curriculum;
        if !curriculum.thresholds.is_empty() {
            record.set(Metric::RolloutStage, self.state.stage as f64);
        }
        let success = record.get(Metric::RolloutSuccessRate).unwrap_or_default();
        curriculum.thresholds.get(self.state.stage).is_some_and(|threshold| success >= *threshold)
    }

    /// Goes on to larger shops from learner step `since` on.
    fn next_stage(&mut self, since: u64) -> Result<()> {
        self.state.stage += 1;
        self.state.stage_since = since;
        self.stage = stage_of(self.config, &self.ground, self.state.stage)?;
        Ok(())
    }

    /// Whether all tokens that were allowed are written.
    fn is_spent(&self) -> bool {
        let limit = self.config.learner.max_tokens;
        limit > 0 && self.state.tokens >= limit
    }

    /// The share of the allowed tokens that is written, 0 without a bound.
    fn share_spent(&self) -> f64 {
        match self.config.learner.max_tokens {
            0 => 0.0,
            limit => (self.state.tokens as f64 / limit as f64).min(1.0),
        }
    }

    /// Whether V* is asked for.
    pub(super) fn wants_values(&self) -> bool {
        learner(self.config).judged() == Judged::ByValue
    }

    /// Sees to V* of the step's goals, if the learner asks for it.
    fn value_goals(
        &mut self,
        guide: &mut Guide,
        goals: &[GroundGoal],
        step: u64,
        record: &mut Record,
    ) -> Result<()> {
        record.set(Metric::ValueAge, guide.age(step) as f64);
        if self.wants_values() {
            let n_known = goals.iter().filter(|goal| guide.value(**goal).is_some()).count();
            record.set(Metric::ValueHitRate, n_known as f64 / goals.len() as f64);
            let cost = self.estimate(guide, goals, step)?;
            self.pay(cost);
            guide.record(record);
        }
        Ok(())
    }

    /// Makes the step's trips and says what they earned and what was to be expected. A trip in which the model had no room
    /// to say anything teaches nothing and is left out.
    fn make_trips(
        &mut self,
        learner: &dyn Learner,
        guide: &Guide,
        goals: &[GroundGoal],
        step: u64,
        record: &mut Record,
    ) -> Result<(Vec<Trajectory>, Vec<Scored>)> {
        let group_size = self.config.learner.group_size as u64;
        let of_goal = |goal: &GroundGoal| {
            let goal = *goal;
            let trainer = &*self;
            (0..group_size).map(move |sample| trainer.task(goal, step, sample))
        };
        let tasks: Vec<Task> = goals.iter().flat_map(of_goal).collect();
        let began = self.clock.seconds();
        let episodes = self.play(self.sampled_network(learner, guide), &tasks, &|| ())?;
        self.pace.rolled_out(&episodes, self.clock.seconds() - began);
        let of_goals = episodes.chunks(group_size as usize).zip(goals);
        self.value_states(guide, of_goals, record)?;
        let (mut batch, mut scored) = (Vec::new(), Vec::new());
        for (place, episode) in episodes.iter().enumerate() {
            let group = place / group_size as usize;
            if let Some(trip) = Trajectory::from_episode(episode) {
                scored.push(self.score(guide, goals[group], group, episode));
                batch.push(trip);
            }
        }
        self.state.tokens += batch.iter().map(|trip| trip.n_sampled() as u64).sum::<u64>();
        record_rollout(record, &summarize(&episodes), &batch);
        record_malformed(record, &episodes, self.config.malformed_penalty());
        record.set(Metric::RolloutTokensTotal, self.state.tokens as f64);
        Ok((batch, scored))
    }

    /// Whose trips are learned from: the policy's own, but a lagging learner's are its reference's.
    pub(super) fn sampled_network<'n>(&'n self, learner: &dyn Learner, guide: &'n Guide) -> &'n Network {
        match learner.name() {
            "apo-lagged" => &guide.network,
            _ => self.student.network(),
        }
    }

    fn score(&self, guide: &Guide, goal: GroundGoal, group: usize, episode: &Episode) -> Scored {
        Scored {
            group,
            reward: self.reward(episode),
            v_star: guide.value(goal).map_or(0.0, |value| value.v_star),
            turns: scored_turns(episode, |state| self.v_state(guide, goal, state)),
        }
    }

    /// The optimizer steps of one batch, or a counted skip.
    fn descend(
        &mut self,
        guide: &Guide,
        learner: &dyn Learner,
        batch: &[Trajectory],
        scored: &[Scored],
        lr: f64,
        record: &mut Record,
    ) -> Result<()> {
        let Prepared::Learn(targets) = learner.prepare(scored)? else {
            self.state.skipped_no_signal += 1;
            record.set(Metric::TrainSkippedNoSignal, self.state.skipped_no_signal as f64);
            return Ok(());
        };
        record.set(Metric::TrainLr, lr);
        let config = &self.config.learner;
        let part = batch.len().div_ceil(config.minibatches);
        let (mut terms, mut norms) = (Vec::new(), Vec::new());
        for epoch in 0..config.epochs {
            for (place, (batch, targets)) in batch.chunks(part).zip(targets.chunks(part)).enumerate() {
                let targets = of_part(targets);
                let how = (self.sampler()?, config.micro_batch_tokens);
                let step = learn_step(self.student.network(), &guide.network, learner, batch, &targets, how)?;
                let Some((mut gradients, of_part)) = step else { continue };
                self.mix_demonstrations(
                    &mut gradients,
                    batch.len(),
                    (epoch * config.minibatches + place) as u64,
                )?;
                let norm = self.update(gradients, lr, self.grad_clip())?;
                terms.push(of_part);
                norms.extend(norm);
                self.remember_norm(norm);
            }
        }
        if !terms.is_empty() {
            record_learning(record, &LearnTerms::mean(&terms));
        }
        let mean = norms.iter().sum::<f64>() / norms.len().max(1) as f64;
        self.record_update(record, (norms.len() == terms.len()).then_some(mean));
        Ok(())
    }

    /// Adds the demonstrations' share to a gradient.
    fn mix_demonstrations(&self, gradients: &mut Gradients, n_trips: usize, place: u64) -> Result<()> {
        let share = self.config.learner.demonstration_share;
        if share == 0.0 {
            return Ok(());
        }
        let n = ((n_trips as f64 * share).round() as usize).max(1);
        let parts = (self.config.learner.epochs * self.config.learner.minibatches) as u64;
        let step = MIXED_STEP + self.state.step * parts + place;
        let batch = self.cloned(step, n)?;
        let limit_tokens = self.config.learner.micro_batch_tokens;
        let (cloning, _) = cloning_gradient(self.student.network(), &batch, limit_tokens)?;
        gradients.mix(share, &cloning)
    }

    /// The norm to which gradients are clipped: fixed, or a quantile of those so far
    /// ("AutoClip: Adaptive Gradient Clipping for Source Separation Networks", arXiv 2007.14469).
    fn grad_clip(&self) -> f64 {
        let (config, norms) = (&self.config.optimizer, &self.state.grad_norms);
        if config.grad_clip_quantile == 0.0 || norms.len() < FEWEST_NORMS {
            return config.grad_clip;
        }
        let mut sorted = norms.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * config.grad_clip_quantile).round() as usize]
    }

    fn remember_norm(&mut self, norm: Option<f64>) {
        if self.config.optimizer.grad_clip_quantile > 0.0 {
            self.state.grad_norms.extend(norm);
        }
    }
}

/// Targets of a part of a batch, whose mean is its own.
fn of_part(targets: &[Target]) -> Vec<Target> {
    let share = 1.0 / targets.len() as f64;
    targets.iter().map(|target| Target { share, ..target.clone() }).collect()
}
