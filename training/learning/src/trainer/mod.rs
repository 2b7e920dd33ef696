//! The training loop: warm start, V*, reinforcement learning, with held-out evaluations throughout.
//!
//! [`train`] runs one experiment in one [`RunFolder`]:
//!
//! ```text
//! evaluate                                     initial weights
//! for step in warm start:                      copy tasks, then demonstrations           `sft`
//!     gradient of the cloning loss; update; log; maybe evaluate; maybe save
//! evaluate; reference ← policy                 frozen, or refreshed every K steps        `reference`
//! for step in RL steps:                                                                  `rl`
//!     x      ← goals of the step
//!     V*(x)  ← N reference rollouts, if the loss needs V* and it is not known
//!     y      ← rollouts of the policy for x, with rewards r                              `task_source`
//!     V*(s)  ← reference rollouts forked from states of y, with credit by state          `state_value`
//!     V(s)   ← the critic's values of the states of y, if the loss has a critic
//!     A      ← r − V*                          `Loss::prepare`
//!     for minibatch: gradient of `Loss::loss`; update
//!     log; maybe evaluate; maybe save
//! evaluate; baselines                                                                    `baselines`
//! judge                                        test goals, shops of the run's seed       `judgement`
//! ```
//!
//! [`Experiment`] holds what no step changes, [`Progress`] what has been done so far, and [`Trainer`] both
//! and the weights. A [`TaskSource`](task_source::TaskSource) makes rollouts: whole episodes (`multi_turn`)
//! or completions at recorded steps (`single_step`); `curriculum` opens the one of a stage. [`evaluator`]
//! measures and never trains.
//!
//! Every random draw is addressed by (purpose, step, goal, sample), so the state to resume from is small:
//! weights, optimizer moments, step count and file positions. A run that is stopped at any instant and
//! resumed writes the same bytes.

mod baselines;
mod curriculum;
mod evaluator;
mod experiment;
mod forks;
mod frozen;
mod judgement;
mod multi_turn;
mod options;
mod progress;
mod reference;
mod rl;
pub(crate) mod rollout_workers;
mod sft;
mod single_step;
mod state_value;
mod task_source;
mod throughput;
mod value_cache;

use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use webshop_evaluation::next_action::NextActionScores;
use webshop_evaluation::{Summary, mean};

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::loss::step::CriticGradient;
use crate::metrics::{Metric, Phase, Record};
use crate::model::critic::Critic;
use crate::model::gradient::Gradients;
use crate::model::network::Network;
use crate::model::train_state::TrainState;
use crate::optimizer::{StepOutcome, UpdateConfig};
use crate::run::atomic::{read_json, write_atomically, write_json};
use crate::run::checkpoint::names::{CONFIG, CRITIC, MODEL, OPTIMIZER};
use crate::run::folder::RunFolder;
use crate::trainer::experiment::{Experiment, Weights, has_critic};
pub use crate::trainer::options::TrainOptions;
pub(crate) use crate::trainer::options::compute_or_cpu;
use crate::trainer::progress::Progress;
use crate::trainer::reference::ReferencePolicy;

/// Added to the optimizer step to address the draws of an evaluation; runs have fewer steps.
const EVALUATION_STEP: u64 = 1 << 40;
/// First step coordinate of the reference rollouts for V*, one per reference.
const VALUE_STEP: u64 = 1 << 41;
/// First step coordinate of demonstrations that are mixed into RL.
const MIXED_STEP: u64 = 1 << 42;
/// First step coordinate of reference rollouts that are forked from states, one per reference.
const FORK_STEP: u64 = 1 << 43;
/// Step coordinate of the judgement.
const JUDGEMENT_STEP: u64 = 1 << 44;
/// Added to the step of cloning to address the draws of the episodes that the model begins and the expert finishes.
const DAGGER_STEP: u64 = 1 << 45;

/// The three evaluations that summarize a run; `None` until they are made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunSummary {
    /// Of the initial weights: those of the base model, of another model, or random ones.
    #[serde(alias = "random")]
    pub initial: Option<Evaluation>,
    /// After the warm start.
    pub warm_start: Option<Evaluation>,
    /// After reinforcement learning.
    pub learned: Option<Evaluation>,
}

impl RunSummary {
    /// The summary of a run; `None` if there is none yet. `train` writes it last, `warm_up` after the warm start.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(run: &RunFolder) -> Result<Option<Self>> {
        let path = run.summary();
        path.exists().then(|| read_json(&path)).transpose()
    }
}

/// A held-out evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evaluation {
    /// Optimizer steps taken before it.
    pub step: u64,
    /// Seconds since the run began, without pauses.
    pub seconds: f64,
    /// Figures of the held-out episodes.
    pub summary: Summary,
    /// The first episodes as text.
    pub episodes: Vec<String>,
    /// Figures of completions at held-out steps, for prompt formats that support single steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<NextActionScores>,
}

/// Runs the experiment of `config` in `run`, from its last checkpoint if it has one, and judges it. A judgement that
/// was interrupted is made again when the run is resumed.
///
/// # Errors
/// Before any work if `options` do not fit `config`; [`TrainingError::Interrupted`] if the run was stopped.
pub fn train(config: &Config, run: &RunFolder, options: TrainOptions<'_>) -> Result<RunSummary> {
    let (compute, never) = (compute_or_cpu(options.compute)?, AtomicBool::new(false));
    options.check(config, &compute)?;
    let (experiment, progress, weights) = Experiment::open(&compute, config, run, options)?;
    if let Some(summary) = RunSummary::of(run)?.filter(|summary| summary.learned.is_some()) {
        return Ok(summary);
    }
    let mut trainer = Trainer::new(&experiment, progress, weights, options.stop.unwrap_or(&never));
    trainer.warm_up()?;
    rl::run(&mut trainer)?;
    if trainer.progress.state.summary.learned.is_none() {
        let reference = experiment.first_reference()?;
        trainer.progress.state.summary.learned = Some(trainer.evaluate(Phase::Learn, Some(&reference))?);
        trainer.save()?;
    }
    if let Some(learned) = &trainer.progress.state.summary.learned {
        baselines::write_baselines(&experiment, learned)?;
    }
    judgement::judge(&trainer)?;
    // Written last: a run whose summary has its last evaluation is finished.
    write_json(&run.summary(), &trainer.progress.state.summary)?;
    Ok(trainer.progress.state.summary)
}

/// Like [`train`], up to the checkpoint at the end of the warm start, which [`crate::branch_run`] copies to
/// other runs.
pub fn warm_up(config: &Config, run: &RunFolder, options: TrainOptions<'_>) -> Result<RunSummary> {
    let (compute, never) = (compute_or_cpu(options.compute)?, AtomicBool::new(false));
    options.check(config, &compute)?;
    let (experiment, progress, weights) = Experiment::open(&compute, config, run, options)?;
    let mut trainer = Trainer::new(&experiment, progress, weights, options.stop.unwrap_or(&never));
    trainer.warm_up()?;
    write_json(&run.summary(), &trainer.progress.state.summary)?;
    Ok(trainer.progress.state.summary)
}

/// A run in progress. On a device, the weights of `ex.policy` are those of the last save; `train_state` has
/// the current ones.
struct Trainer<'a> {
    ex: &'a Experiment<'a>,
    progress: Progress,
    train_state: TrainState,
    /// The critic, if the loss has one.
    critic: Option<Critic>,
    stop: &'a AtomicBool,
}

impl<'a> Trainer<'a> {
    fn new(ex: &'a Experiment<'a>, progress: Progress, weights: Weights, stop: &'a AtomicBool) -> Self {
        let Weights { train_state, critic } = weights;
        Self { ex, progress, train_state, critic, stop }
    }

    /// The warm start with the evaluations before and after it.
    fn warm_up(&mut self) -> Result<()> {
        if self.progress.state.summary.initial.is_none() {
            self.progress.state.summary.initial = Some(self.evaluate(Phase::WarmStart, None)?);
        }
        sft::run(self)?;
        if self.progress.state.summary.warm_start.is_none() {
            self.progress.state.summary.warm_start = Some(self.evaluate(Phase::WarmStart, None)?);
            self.save()?;
        }
        Ok(())
    }

    /// Clips and applies a gradient, and returns its norm. A gradient that is not finite is skipped and
    /// counted: `None`.
    fn update(&mut self, gradients: Gradients, lr: f64, grad_clip: f64) -> Result<Option<f64>> {
        match self.train_state.step(gradients, UpdateConfig { lr, grad_clip })? {
            StepOutcome::Stepped { grad_norm, .. } => Ok(Some(grad_norm)),
            StepOutcome::NonFinite { parameter } => {
                self.count_non_finite(&parameter);
                Ok(None)
            }
        }
    }

    /// Applies the gradient of the critic, if there is one. A gradient that is not finite is skipped and counted.
    fn update_critic(&mut self, gradient: Option<&CriticGradient>, lr: f64) -> Result<()> {
        if let (Some(critic), Some(CriticGradient { gradient, .. })) = (&mut self.critic, gradient)
            && let StepOutcome::NonFinite { parameter } = critic.step(gradient, lr)?
        {
            self.count_non_finite(&parameter);
        }
        Ok(())
    }

    fn count_non_finite(&mut self, parameter: &str) {
        self.progress.state.skipped_non_finite += 1;
        self.ex.observer.log(&format!("step skipped: the gradient of `{parameter}` is not finite"));
    }

    /// Records the mean gradient norm of the updates of a step, and the number of skipped updates so far if it was
    /// `n_skipped` before the step.
    fn record_updates(&self, record: &mut Record, grad_norms: &[f64], n_skipped: u64) {
        if !grad_norms.is_empty() {
            record.set(Metric::TrainGradNorm, mean(grad_norms));
        }
        let skipped = self.progress.state.skipped_non_finite;
        if skipped > n_skipped {
            record.set(Metric::TrainSkippedNonFinite, skipped as f64);
        }
    }

    /// Evaluates the current weights; `reference` is what their KL is measured from.
    fn evaluate(&mut self, phase: Phase, reference: Option<&Network>) -> Result<Evaluation> {
        evaluator::evaluate(self.ex, self.train_state.network(), &mut self.progress, phase, reference)
    }

    /// Evaluates if `step` of the `total` steps of a phase is a multiple of the interval. The last step is
    /// left to the evaluation at the end of the phase.
    fn maybe_evaluate(
        &mut self,
        phase: Phase,
        step: u64,
        total: u64,
        reference: Option<&ReferencePolicy<'_>>,
    ) -> Result<()> {
        let every = match phase {
            Phase::WarmStart => self.ex.config.evaluation.warm_start_every,
            Phase::Learn => self.ex.config.evaluation.every,
        };
        if every == 0 || !step.is_multiple_of(every) || step >= total {
            return Ok(());
        }
        match reference {
            None => self.evaluate(phase, None)?,
            Some(reference) if reference.is_first() => self.evaluate(phase, Some(reference.network()))?,
            Some(_) => {
                let first = self.ex.first_reference()?;
                self.evaluate(phase, Some(&first))?
            }
        };
        Ok(())
    }

    /// Saves if a checkpoint is due or the run is to stop.
    fn maybe_save_or_stop(&mut self) -> Result<()> {
        let stopped = self.stop.load(Ordering::Relaxed);
        let (config, step, warm_start) =
            (&self.ex.config.checkpoint, self.progress.state.step, self.ex.first_rl_step());
        let (every, done) = match step.checked_sub(warm_start) {
            Some(rl_steps) => (config.every, rl_steps),
            None => (config.warm_start_every, step),
        };
        let is_due = every > 0 && done.is_multiple_of(every);
        if stopped || is_due || self.progress.state.is_best() {
            self.save()?;
        }
        if stopped {
            self.ex.observer.end();
            return Err(TrainingError::Interrupted { step, run: self.ex.run.root().into() });
        }
        Ok(())
    }

    /// Writes a checkpoint.
    fn save(&mut self) -> Result<()> {
        let Self { ex, progress, train_state, critic, .. } = self;
        progress.prepare_to_save()?;
        let state = &progress.state;
        ex.run.save_checkpoint(state.step, state, |folder| {
            ex.save_policy(train_state, &folder.join(MODEL))?;
            write_atomically(&folder.join(CONFIG), ex.config.to_toml().as_bytes())?;
            if let Some(critic) = critic.as_ref().filter(|_| has_critic(ex.config, state.step)) {
                critic.save(&folder.join(CRITIC))?;
            }
            train_state.save_moments(&folder.join(OPTIMIZER))
        })?;
        if state.is_best() {
            ex.run.set_best(state.step)?;
        }
        reference::remove_unneeded(ex, state.step)?;
        ex.run.keep_newest(ex.config.checkpoint.keep)
    }
}
