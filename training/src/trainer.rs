//! The loop: random weights → cloning → V* → A*-PO, on held-out goals throughout.
//!
//! [`train`] runs one experiment in one [`RunFolder`]:
//!
//! ```text
//! evaluate                                    random weights
//! for step in warm start:                     exercises, then demonstrations
//!     gradient of the cloning loss; update; log; maybe evaluate; maybe save
//! evaluate; reference ← policy                frozen from here on
//! V*(goal) ← N reference rollouts per goal
//! for step in learner steps:
//!     goals    ← sampler
//!     episodes ← rollout
//!     scored   ← reward, V*
//!     batch    ← learner.prepare
//!     terms    ← learner.loss, gradient
//!     update; log; maybe evaluate; maybe save
//! evaluate; report
//! ```
//!
//! Every draw is addressed by (purpose, step, goal, sample), so the state to resume from is small: the
//! weights, the optimizer's moments, how many steps were taken and how much was recorded. Stopped at any
//! instant and resumed, a run writes the bytes it would have written.

mod journal;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rand::Rng;
use serde::{Deserialize, Serialize};
use webshop_agent::{Episode, Qwen2, Sampler, Task, rollout};
use webshop_products::{GoalId, Purpose, Seed};

use self::journal::keep_fingerprint;
use crate::actor::Actor;
use crate::checkpoint::{RunFolder, read_trainer_state};
use crate::clock::Clock;
use crate::config::Config;
use crate::durable::write_json;
use crate::error::{Result, TrainingError};
use crate::evaluate::{Summary, summarize};
use crate::exercise::Exercises;
use crate::gradient::Gradients;
use crate::ground::{Ground, GroundGoal};
use crate::learn::{LearnStep, learn_step};
use crate::loss::{Learner, Scored, learner};
use crate::metrics::{Metric, MetricsPosition, MetricsWriter, Phase, Record};
use crate::observer::Observer;
use crate::optimizer::{Optimizer, Schedule, StepOutcome};
use crate::record::{record_malformed, record_rollout};
use crate::reward::malformed_turns;
use crate::setup::{Fingerprint, fingerprint, lm_config, prompt_config, rollout_config};
use crate::trajectory::Trajectory;
use crate::value::{ValueKey, ValueTable};
use crate::warm_start::{Demonstrations, cloning_gradient};

/// First step coordinate of evaluations; the steps of a run stay far below.
const EVALUATION_STEP: u64 = 1 << 40;
/// Step coordinate of the reference rollouts for V*.
const VALUE_STEP: u64 = 1 << 41;
/// Trips kept whole for the report, before and after.
const SHOWN_TRIPS: usize = 3;
/// Folder of the frozen reference in the run folder.
const REFERENCE: &str = "reference";
/// Folder of the model in a checkpoint.
pub const MODEL: &str = "model";
/// The configuration in a checkpoint, so that a copied checkpoint is complete.
pub const CONFIG: &str = "config.toml";
const OPTIMIZER: &str = "optimizer.safetensors";

/// What a run found out, at its three stages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stages {
    /// Random weights.
    pub random: Option<Stage>,
    /// After cloning.
    pub warm_start: Option<Stage>,
    /// After learning from own trips.
    pub learned: Option<Stage>,
}

/// An evaluation and when it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stage {
    /// Optimizer steps taken before.
    pub step: u64,
    /// Seconds since the run began, pauses left out.
    pub seconds: f64,
    /// The held-out figures.
    pub summary: Summary,
    /// The first trips of the evaluation, as text.
    pub trips: Vec<String>,
}

/// What is saved beside weights and moments.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TrainerState {
    /// Optimizer steps taken over both phases.
    step: u64,
    /// Seconds spent so far, pauses left out.
    seconds: f64,
    metrics: MetricsPosition,
    stages: Stages,
    skipped_no_signal: u64,
    skipped_non_finite: u64,
}

/// Runs the experiment of `config` in `run`, from its last checkpoint if it has one. `stop` is looked at
/// between steps: when it is set, a checkpoint is written and [`TrainingError::Interrupted`] returned.
pub fn train(config: &Config, run: &RunFolder, observer: &dyn Observer, stop: &AtomicBool) -> Result<Stages> {
    let mut trainer = Trainer::open(config, run, observer, stop)?;
    trainer.warm_up()?;
    let reference = trainer.reference()?;
    let values = trainer.estimate_values(&reference)?;
    trainer.learn(&reference, &values)?;
    if trainer.state.stages.learned.is_none() {
        trainer.state.stages.learned = Some(trainer.evaluate(Phase::Learn)?);
        trainer.save()?;
    }
    write_json(&run.summary(), &trainer.state.stages)?;
    Ok(trainer.state.stages)
}

/// As [`train`], up to the checkpoint at the end of the warm start, from which [`crate::branch`] makes other runs.
pub fn warm_up(
    config: &Config,
    run: &RunFolder,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Stages> {
    let mut trainer = Trainer::open(config, run, observer, stop)?;
    trainer.warm_up()?;
    write_json(&run.summary(), &trainer.state.stages)?;
    Ok(trainer.state.stages)
}

struct Trainer<'a> {
    config: &'a Config,
    run: &'a RunFolder,
    observer: &'a dyn Observer,
    stop: &'a AtomicBool,
    ground: Ground,
    actor: Actor,
    optimizer: Optimizer,
    metrics: MetricsWriter,
    clock: Clock,
    state: TrainerState,
}

impl<'a> Trainer<'a> {
    /// A new run from random weights, or the one in `run` as its last checkpoint left it.
    fn open(
        config: &'a Config,
        run: &'a RunFolder,
        observer: &'a dyn Observer,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        let ground = Ground::open(config)?;
        let (state, actor, optimizer) = match run.last_checkpoint()? {
            Some(folder) => {
                let state: TrainerState = read_trainer_state(&folder)?;
                let actor = Actor::resume(config, &folder.join(MODEL))?;
                let path = folder.join(OPTIMIZER);
                let is_cloning = state.step <= config.warm_start.all_steps();
                let method = if is_cloning { config.warm_start.optimizer } else { config.learner.optimizer };
                let learnable = actor.model.learnable();
                let optimizer = Optimizer::load(method, &config.optimizer, learnable, &path)?;
                (state, actor, optimizer)
            }
            None => {
                let actor = Actor::begin(config, &ground)?;
                let method = config.warm_start.optimizer;
                let optimizer = Optimizer::new(method, &config.optimizer, actor.model.learnable());
                (TrainerState::default(), actor, optimizer)
            }
        };
        let split = config.evaluation.split.to_string();
        let metrics = MetricsWriter::open(run.root(), &split, state.metrics)?;
        let clock = Clock::resume(state.seconds);
        keep_fingerprint(
            run,
            &Fingerprint {
                base: actor.base()?,
                prompt: actor.prompt_version()?,
                ..fingerprint(&ground, &actor.tokenizer)
            },
        )?;
        Ok(Self { config, run, observer, stop, ground, actor, optimizer, metrics, clock, state })
    }

    fn seed(&self) -> Seed {
        Seed(self.config.seed)
    }

    /// Everything before the first step on own trips: the two evaluations and the warm start between them.
    fn warm_up(&mut self) -> Result<()> {
        if self.state.stages.random.is_none() {
            self.state.stages.random = Some(self.evaluate(Phase::WarmStart)?);
        }
        self.clone_demonstrations()?;
        if self.state.stages.warm_start.is_none() {
            self.state.stages.warm_start = Some(self.evaluate(Phase::WarmStart)?);
            self.save()?;
        }
        Ok(())
    }

    /// The warm start: reading exercises, then cloning of demonstrations until its steps are done.
    fn clone_demonstrations(&mut self) -> Result<()> {
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
                self.demonstrations()?.batch(step, config.batch_episodes)?
            };
            if batch.is_empty() {
                return Err(TrainingError::NothingToClone { step });
            }
            let limit_tokens = self.config.learner.micro_batch_tokens;
            let (gradients, loss) = cloning_gradient(&self.actor.model, &batch, limit_tokens)?;
            let mut record = Record::new(Phase::WarmStart, step + 1);
            record.set(Metric::TrainLoss, loss);
            self.update(gradients, schedule.lr(step), &mut record)?;
            self.log(&record, began, &batch)?;
            self.observer.advance(1, &format!("loss {loss:.3}"));
            self.maybe_evaluate(Phase::WarmStart, step + 1, schedule.total)?;
            self.maybe_save_or_stop()?;
        }
        self.observer.end();
        Ok(())
    }

    fn demonstrations(&self) -> Result<Demonstrations<'_>> {
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

    /// The policy as the warm start left it, frozen and kept in the run folder.
    fn reference(&self) -> Result<Qwen2> {
        let folder = self.run.root().join(REFERENCE);
        if self.state.step <= self.config.warm_start.all_steps() {
            self.actor.save(&folder)?;
        }
        self.actor.frozen(&folder)
    }

    /// Stage 1 of A*-PO: V* of the goals that are learned on, from rollouts of the reference.
    fn estimate_values(&mut self, reference: &Qwen2) -> Result<ValueTable> {
        let config = &self.config.value;
        let key = ValueKey {
            reference: reference.fingerprint()?,
            prompt: self.actor.prompt_version()?,
            samples: config.samples,
            temperature: self.config.learner.temperature,
            top_p: self.config.learner.top_p,
        };
        if let Some(table) = ValueTable::load(&self.run.value(), &key, config.beta1)? {
            return Ok(table);
        }
        let goals = self.ground.sample(self.seed(), config.goals);
        let samples = config.samples as u64;
        let tasks: Vec<Task> = goals
            .iter()
            .flat_map(|goal| (0..samples).map(|sample| self.task(*goal, VALUE_STEP, sample)))
            .collect();
        self.observer.begin("V*", tasks.len() as u64, 0);
        let episodes = self.play(reference, &tasks)?;
        self.observer.end();
        let mut table = ValueTable::new(key, config.beta1);
        for (goal, episodes) in goals.iter().zip(episodes.chunks(config.samples)) {
            table.insert(
                goal.shop,
                goal.goal.0,
                episodes.iter().map(|episode| self.reward(episode)).collect(),
            );
        }
        table.save(&self.run.value())?;
        Ok(table)
    }

    /// Stage 2: learns from own trips until its steps are done.
    fn learn(&mut self, reference: &Qwen2, values: &ValueTable) -> Result<()> {
        let config = &self.config.learner;
        let learner = learner(config);
        let schedule = Schedule {
            peak: config.lr,
            warmup: config.warmup_steps,
            total: config.steps,
            decay: config.decay,
        };
        let first = self.config.warm_start.all_steps();
        self.observer.begin(learner.name(), config.steps, self.state.step - first);
        while self.state.step < first + config.steps {
            let began = self.clock.seconds();
            let step = self.state.step - first;
            if step == 0 {
                // Moments of the cloning gradient say nothing about this one.
                let learnable = self.actor.model.learnable();
                self.optimizer = Optimizer::new(config.optimizer, &self.config.optimizer, learnable);
            }
            let goals = self.goals_of(step, values);
            let tasks: Vec<Task> = goals.iter().map(|goal| self.task(*goal, step, 0)).collect();
            let episodes = self.play(&self.actor.model, &tasks)?;
            let (batch, scored) = self.score(&goals, &episodes, values);
            let mut record = Record::new(Phase::Learn, self.state.step + 1);
            record_rollout(&mut record, &summarize(&episodes), &batch);
            record_malformed(&mut record, &episodes, self.config.malformed_penalty());
            self.descend(reference, learner.as_ref(), &batch, &scored, schedule.lr(step), &mut record)?;
            if step == 0 {
                record.set(Metric::ValueMean, values.mean_v_star());
                record.set(Metric::ValueShareWithoutSuccess, values.share_without_success());
                record.set(Metric::ValueBias, values.mean_bias());
            }
            self.log(&record, began, &batch)?;
            let success = record.get(Metric::RolloutSuccessRate).unwrap_or_default();
            self.observer.advance(1, &format!("success {:.1} %", 100.0 * success));
            self.maybe_evaluate(Phase::Learn, step + 1, config.steps)?;
            self.maybe_save_or_stop()?;
        }
        self.observer.end();
        Ok(())
    }

    /// The goals of a learner step: the table's, shuffled anew each time all were visited.
    fn goals_of(&self, step: u64, values: &ValueTable) -> Vec<GroundGoal> {
        let goals = values.goals();
        let n = goals.len() as u64;
        let batch = self.config.learner.batch_episodes as u64;
        let order = |epoch: u64| {
            let mut rng = self.seed().rng(Purpose::GoalSampling, &[1 + epoch]);
            let mut order: Vec<usize> = (0..goals.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, rng.random_range(0..=i as u64) as usize);
            }
            order
        };
        let mut orders: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        (step * batch..(step + 1) * batch)
            .map(|draw| {
                let order = orders.entry(draw / n).or_insert_with(|| order(draw / n));
                let value = &goals[order[(draw % n) as usize]];
                GroundGoal { shop: value.shop, goal: GoalId(value.goal) }
            })
            .collect()
    }

    /// Trips as trajectories with what they earned and what was to be expected. A trip in which the model
    /// had no room to say anything teaches nothing and is left out.
    fn score(
        &self,
        goals: &[GroundGoal],
        episodes: &[Episode],
        values: &ValueTable,
    ) -> (Vec<Trajectory>, Vec<Scored>) {
        goals
            .iter()
            .zip(episodes)
            .filter_map(|(goal, episode)| {
                let v_star = values.get(goal.shop, goal.goal.0)?.v_star;
                Some((Trajectory::from_episode(episode)?, Scored { reward: self.reward(episode), v_star }))
            })
            .unzip()
    }

    fn reward(&self, episode: &Episode) -> f64 {
        self.config.learner.reward.of(episode)
            - self.config.malformed_penalty() * malformed_turns(episode) as f64
    }

    /// One step down the learner's loss, or a counted skip.
    fn descend(
        &mut self,
        reference: &Qwen2,
        learner: &dyn Learner,
        batch: &[Trajectory],
        scored: &[Scored],
        lr: f64,
        record: &mut Record,
    ) -> Result<()> {
        let limit_tokens = self.config.learner.micro_batch_tokens;
        let sampler = self.sampler()?;
        match learn_step(&self.actor.model, reference, learner, batch, scored, (sampler, limit_tokens))? {
            LearnStep::Learned(gradients, terms) => {
                record
                    .set(Metric::TrainLoss, terms.loss)
                    .set(Metric::TrainKl, terms.kl)
                    .set(Metric::TrainKlK3, terms.kl_k3)
                    .set(Metric::TrainLogProbGap, terms.log_prob_gap)
                    .set(Metric::TrainLogProbGapMean, terms.log_prob_gap_mean)
                    .set(Metric::TrainOutsideNucleus, terms.outside_nucleus[0])
                    .set(Metric::TrainOutsideReference, terms.outside_nucleus[1])
                    .set(Metric::TrainAdvMean, terms.targets.adv_mean)
                    .set(Metric::TrainAdvStd, terms.targets.adv_std)
                    .set(Metric::TrainEffectiveSamples, terms.targets.effective_samples);
                self.update(gradients, lr, record)
            }
            LearnStep::NoSignal => {
                self.state.skipped_no_signal += 1;
                self.state.step += 1;
                record.set(Metric::TrainSkippedNoSignal, self.state.skipped_no_signal as f64);
                Ok(())
            }
        }
    }

    /// Clips, steps and counts; a gradient that is not a number is refused and counted.
    fn update(&mut self, mut gradients: Gradients, lr: f64, record: &mut Record) -> Result<()> {
        record.set(Metric::TrainLr, lr);
        match self.optimizer.step(self.actor.model.learnable(), &mut gradients, lr)? {
            StepOutcome::Stepped { grad_norm, .. } => {
                record.set(Metric::TrainGradNorm, grad_norm);
            }
            StepOutcome::NonFinite { parameter } => {
                self.state.skipped_non_finite += 1;
                record.set(Metric::TrainSkippedNonFinite, self.state.skipped_non_finite as f64);
                self.observer.say(&format!("step skipped: the gradient of `{parameter}` is not finite"));
            }
        }
        self.state.step += 1;
        Ok(())
    }

    /// The episode of `goal` at these coordinates.
    fn task(&self, goal: GroundGoal, step: u64, sample: u64) -> Task {
        Task { shop: self.ground.shop_of(goal).clone(), coordinates: goal.at(step, sample) }
    }

    /// The distribution that training trips are drawn from, and scored under.
    fn sampler(&self) -> Result<Sampler> {
        let learner = &self.config.learner;
        Ok(Sampler::new(learner.temperature as f32, learner.top_p as f32)?)
    }

    /// Rollouts by the distribution that is learned from; they are never constrained, so that it is all of it.
    fn play(&self, model: &Qwen2, tasks: &[Task]) -> Result<Vec<Episode>> {
        let (temperature, top_p) = (self.config.learner.temperature, self.config.learner.top_p);
        let lm = lm_config(self.config, temperature, top_p)?;
        let mut policy = self.actor.policy(Arc::new(model.decoder()?), lm, self.seed())?;
        let mut progress = |_: usize, episode: &Episode| {
            if episode.coordinates.step == VALUE_STEP {
                self.observer.advance(1, "");
            }
        };
        Ok(rollout(&mut policy, tasks, rollout_config(self.config), &mut progress)?)
    }
}
