//! The loop: random weights → cloning → V* → a learner, on held-out goals throughout.
//!
//! [`train`] runs one experiment in one [`RunFolder`]:
//!
//! ```text
//! evaluate                                    random weights
//! for step in warm start:                     exercises, then demonstrations
//!     gradient of the cloning loss; update; log; maybe evaluate; maybe save
//! evaluate; reference ← policy                frozen from here on, or until it is refreshed
//! for step in learner steps:
//!     goals    ← sampler
//!     V*(goal) ← N reference rollouts, where the learner asks for it and it is not known
//!     episodes ← rollout
//!     V*(state) ← reference rollouts forked from states of the episodes, where they are asked for
//!     scored   ← reward, V*
//!     targets  ← learner.prepare
//!     for part of the batch: terms ← learner.loss, gradient; update
//!     log; maybe evaluate; maybe save
//! evaluate; report
//! ```
//!
//! Every draw is addressed by (purpose, step, goal, sample), so the state to resume from is small: the
//! weights, the optimizer's moments, how many steps were taken and how much was recorded. Stopped at any
//! instant and resumed, a run writes the bytes it would have written.
//!
//! `warm_start` clones, `learning` learns, `guide` knows what the reference is and expects, `forks` what it makes of states
//! on the way; `steps` practises single answers in the place of trips; `journal` measures, records and saves.

pub mod evaluate_and_save;
pub mod reference;
pub mod rl;
pub mod sft;
pub mod single_steps;
pub mod state_value;
pub mod throughput;


use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};
use webshop_agent::{Episode, RolloutConfig, Task, rollout};
use webshop_lm::Sampler;
use webshop_products::Seed;

use crate::trainer::state_value::Forks;
pub(crate) use crate::trainer::reference::samples_at;
use crate::trainer::evaluate_and_save::keep_fingerprint;
use crate::trainer::throughput::Pace;
use crate::model::policy::Actor;
use crate::run::folder::{RunFolder, read_trainer_state};
use crate::run::clock::Clock;
use crate::config::Config;
use crate::run::atomic::write_json;
use crate::error::{Result, TrainingError};
use webshop_evaluation::Summary;
use crate::model::gradient::Gradients;
use crate::data::task_set::{Ground, GroundGoal};
use crate::metrics::{Metric, MetricsPosition, MetricsWriter, Phase, Record};
use crate::model::network;
use crate::model::network::Network;
use crate::observer::Observer;
use crate::optimizer::{StepOutcome, Stride};
use crate::reward::malformed_turns;
use crate::setup::{Fingerprint, fingerprint, lm_config, rollout_config};
use webshop_evaluation::next_action::NextActionScores;
use crate::data::recorded_steps::RecordedSteps;
use crate::model::learner_state::Student;

/// First step coordinate of evaluations; the steps of a run stay far below.
const EVALUATION_STEP: u64 = 1 << 40;
/// First step coordinate of the reference rollouts for V*, one for each reference.
const VALUE_STEP: u64 = 1 << 41;
/// First step coordinate of demonstrations that are mixed into learning.
const MIXED_STEP: u64 = 1 << 42;
/// First step coordinate of reference rollouts that are forked from states, one for each reference.
const FORK_STEP: u64 = 1 << 43;
/// Trips kept whole for the report, before and after.
const SHOWN_TRIPS: usize = 3;
/// Folder of the model in a checkpoint.
pub const MODEL: &str = "model";
/// The configuration in a checkpoint, so that a copied checkpoint is complete.
pub const CONFIG: &str = "config.toml";
const OPTIMIZER: &str = "optimizer.safetensors";

/// What a run found out, at its three stages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stages {
    /// Random weights, or the model that the run began with.
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
    /// Answers at held-out steps, where they can be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<NextActionScores>,
}

/// What is saved beside weights and moments; checkpoints of earlier versions have less of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct TrainerState {
    /// Optimizer steps taken over both phases.
    step: u64,
    /// Seconds spent so far, pauses left out.
    seconds: f64,
    metrics: MetricsPosition,
    stages: Stages,
    skipped_no_signal: u64,
    skipped_non_finite: u64,
    /// Tokens written for learning so far.
    tokens: u64,
    /// Stage of the curriculum.
    stage: usize,
    /// The learner step at which it began.
    stage_since: u64,
    /// Gradient norms of the learner's optimizer steps, where clipping follows them.
    grad_norms: Vec<f64>,
    /// The learner's best evaluation, where its checkpoint is to be kept.
    best: Option<Best>,
    /// What the reference made of states on the way.
    forks: Forks,
}

/// An evaluation that no earlier one comes up to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Best {
    step: u64,
    success_rate: f64,
}

impl Best {
    /// The better of two evaluations, the earlier one if they are equal.
    fn of(before: Option<Self>, step: u64, success_rate: f64) -> Self {
        before.filter(|before| before.success_rate >= success_rate).unwrap_or(Self { step, success_rate })
    }
}

/// Runs the experiment of `config` in `run`, from its last checkpoint if it has one, on the CPU. `stop` is looked at
/// between steps: when it is set, a checkpoint is written and [`crate::error::TrainingError::Interrupted`] returned.
pub fn train(config: &Config, run: &RunFolder, observer: &dyn Observer, stop: &AtomicBool) -> Result<Stages> {
    train_on(&the_cpu()?, config, run, observer, stop)
}

/// As [`train`], computing where `compute` says. It is no part of the experiment, but of what its results are: a run is
/// continued only where it was begun, in the same format and with the same kernels.
pub fn train_on(
    compute: &Compute,
    config: &Config,
    run: &RunFolder,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Stages> {
    let mut trainer = Trainer::open(compute, config, run, observer, stop)?;
    trainer.warm_up()?;
    trainer.learn()?;
    if trainer.state.stages.learned.is_none() {
        let reference = trainer.first_reference()?;
        trainer.state.stages.learned = Some(trainer.evaluate(Phase::Learn, Some(&reference))?);
        trainer.save()?;
    }
    write_json(&run.summary(), &trainer.state.stages)?;
    Ok(trainer.state.stages)
}

/// As [`train`], up to the checkpoint at the end of the warm start, from which [`crate::run::branch`] makes other runs.
pub fn warm_up(
    config: &Config,
    run: &RunFolder,
    observer: &dyn Observer,
    stop: &AtomicBool,
) -> Result<Stages> {
    let compute = the_cpu()?;
    let mut trainer = Trainer::open(&compute, config, run, observer, stop)?;
    trainer.warm_up()?;
    write_json(&run.summary(), &trainer.state.stages)?;
    Ok(trainer.state.stages)
}

fn the_cpu() -> Result<Compute> {
    Ok(Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Own)?)
}

struct Trainer<'a> {
    compute: &'a Compute,
    config: &'a Config,
    run: &'a RunFolder,
    observer: &'a dyn Observer,
    stop: &'a AtomicBool,
    /// All shops; the judged one first.
    ground: Ground,
    /// The shops of the curriculum's stage.
    stage: Ground,
    /// Steps of a file to learn from, where one is named.
    recorded: Option<RecordedSteps>,
    /// Who shops. On a device its weights are those of the last checkpoint or reference; the student's are ahead.
    actor: Actor,
    /// Who learns.
    student: Student,
    metrics: MetricsWriter,
    clock: Clock,
    pace: Pace,
    state: TrainerState,
}

impl<'a> Trainer<'a> {
    /// A new run from random weights, or the one in `run` as its last checkpoint left it.
    fn open(
        compute: &'a Compute,
        config: &'a Config,
        run: &'a RunFolder,
        observer: &'a dyn Observer,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        network::check(&config.model, compute)?;
        if let Some(folder) = &config.value.cache {
            fs::create_dir_all(folder).map_err(|e| TrainingError::io("create", folder, e))?;
        }
        let ground = Ground::open(config)?;
        let data = Some(Path::new(&config.shop_r1.data)).filter(|path| !path.as_os_str().is_empty());
        let recorded = data.map(RecordedSteps::read).transpose()?;
        let (state, actor, student) = match run.last_checkpoint()? {
            Some(folder) => {
                let state: TrainerState = read_trainer_state(&folder)?;
                let actor = Actor::resume(config, &folder.join(MODEL))?;
                let path = folder.join(OPTIMIZER);
                let is_cloning = state.step <= config.warm_start.all_steps();
                let method = if is_cloning { config.warm_start.optimizer } else { config.learner.optimizer };
                let student = Student::resume(&actor.model, compute, method, &config.optimizer, &path)?;
                (state, actor, student)
            }
            None => {
                let actor = Actor::begin(config, &ground)?;
                let method = config.warm_start.optimizer;
                let student = Student::new(&actor.model, compute, method, &config.optimizer)?;
                (TrainerState::default(), actor, student)
            }
        };
        // A run may be cut short between a checkpoint and the link to it.
        if let Some(best) = state.best.filter(|best| best.step == state.step) {
            run.set_best(best.step)?;
        }
        let split = config.evaluation.split.to_string();
        let metrics = MetricsWriter::open(run.root(), &split, state.metrics)?;
        let clock = Clock::resume(state.seconds);
        keep_fingerprint(
            run,
            &Fingerprint {
                base: actor.base()?,
                prompt: actor.prompt_version()?,
                compute: kind(compute),
                steps: recorded.as_ref().map_or_else(String::new, |steps| steps.digest().into()),
                ..fingerprint(&ground, &actor.tokenizer)
            },
        )?;
        Ok(Self {
            stage: stage_of(config, &ground, state.stage)?,
            compute,
            config,
            run,
            observer,
            stop,
            ground,
            recorded,
            actor,
            student,
            metrics,
            clock,
            pace: Pace::default(),
            state,
        })
    }

    fn seed(&self) -> Seed {
        Seed(self.config.seed)
    }

    /// Everything before the first step on own trips: the two evaluations and the warm start between them.
    fn warm_up(&mut self) -> Result<()> {
        if self.state.stages.random.is_none() {
            self.state.stages.random = Some(self.evaluate(Phase::WarmStart, None)?);
        }
        self.clone_demonstrations()?;
        if self.state.stages.warm_start.is_none() {
            self.state.stages.warm_start = Some(self.evaluate(Phase::WarmStart, None)?);
            self.save()?;
        }
        Ok(())
    }

    /// Optimizer steps before the learner's first.
    fn first_learner_step(&self) -> u64 {
        self.config.warm_start.all_steps()
    }

    /// Clips and steps; a gradient that is not a number is refused and counted. The norm, if there was a step.
    fn update(&mut self, gradients: Gradients, lr: f64, grad_clip: f64) -> Result<Option<f64>> {
        match self.student.step(gradients, Stride { lr, grad_clip })? {
            StepOutcome::Stepped { grad_norm, .. } => Ok(Some(grad_norm)),
            StepOutcome::NonFinite { parameter } => {
                self.state.skipped_non_finite += 1;
                self.observer.say(&format!("step skipped: the gradient of `{parameter}` is not finite"));
                Ok(None)
            }
        }
    }

    /// Records the norm of a step that was taken, or how many were refused so far.
    fn record_update(&self, record: &mut Record, grad_norm: Option<f64>) {
        match grad_norm {
            Some(norm) => record.set(Metric::TrainGradNorm, norm),
            None => record.set(Metric::TrainSkippedNonFinite, self.state.skipped_non_finite as f64),
        };
    }

    /// What a trip is worth, less what its malformed answers cost.
    fn reward(&self, episode: &Episode) -> f64 {
        let penalty = self.config.malformed_penalty() * malformed_turns(episode) as f64;
        self.config.learner.reward.of(episode) - penalty
    }

    /// The episode of `goal` at these coordinates.
    fn task(&self, goal: GroundGoal, step: u64, sample: u64) -> Task {
        Task::new(self.stage.shop_of(goal).clone(), goal.at(step, sample))
    }

    /// The distribution that training trips are drawn from, and scored under.
    fn sampler(&self) -> Result<Sampler> {
        let learner = &self.config.learner;
        Ok(Sampler::new(learner.temperature as f32, learner.top_p as f32)?)
    }

    /// Rollouts of `network` by the distribution that is learned from; they are never constrained, so that it is all of it.
    /// `ended` is called as trips end.
    fn play(&self, network: &Network, tasks: &[Task], ended: &dyn Fn()) -> Result<Vec<Episode>> {
        let (temperature, top_p) = (self.config.learner.temperature, self.config.learner.top_p);
        let lm = lm_config(self.config, temperature, top_p)?;
        let mut policy = self.actor.policy(network.engine()?, lm, self.seed())?;
        Ok(rollout(&mut policy, tasks, self.rollout_config(network), &mut |_, _| ended())?)
    }

    /// Limits of the rollouts of `network`.
    fn rollout_config(&self, network: &Network) -> RolloutConfig {
        let lanes = network.lanes(self.config.prompt.max_context);
        RolloutConfig { lanes, ..rollout_config(self.config) }
    }
}

/// Where and how a run is computed, as its fingerprint and the keys of its values say it.
fn kind(compute: &Compute) -> String {
    if compute.is_first_engine() { String::new() } else { compute.kind() }
}

/// The ground of this stage of the curriculum; the whole one behind the last.
fn stage_of(config: &Config, ground: &Ground, stage: usize) -> Result<Ground> {
    let curriculum = &config.curriculum;
    let shops = match curriculum.sizes.get(stage) {
        Some(n_products) => ground.stage(*n_products)?,
        None => ground.clone(),
    };
    match curriculum.wishes.get(stage) {
        Some(n_wishes) => shops.with_at_most(*n_wishes),
        None => Ok(shops),
    }
}
