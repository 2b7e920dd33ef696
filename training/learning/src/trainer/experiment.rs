//! What a run reads and no step changes: configuration, shops, policy, and how rollouts are made.

use std::fs;
use std::path::{Path, PathBuf};

use webshop_agent::{Episode, Task};
use webshop_lm::Sampler;
use webshop_lm::device::Compute;
use webshop_products::Seed;

use crate::config::{BASE_MODEL, Config};
use crate::data::curriculum::check_stages;
use crate::data::recorded_steps::RecordedSteps;
use crate::data::task_set::{TaskId, TaskSet};
use crate::error::{Result, TrainingError};
use crate::loss::{AdvantageSource, Loss};
use crate::metrics::MetricsWriter;
use crate::model::critic::Critic;
use crate::model::load::TrainedModel;
use crate::model::network::Network;
use crate::model::policy::PolicyModel;
use crate::model::train_state::TrainState;
use crate::observer::Observer;
use crate::run::atomic::{read_json, write_json};
use crate::run::checkpoint::names::{CRITIC, MODEL, OPTIMIZER};
use crate::run::folder::{REFERENCE, RunFolder, step_name};
use crate::run::lock::RunLock;
use crate::setup::fingerprint::{Fingerprint, fingerprint};
use crate::trainer::options::TrainOptions;
use crate::trainer::progress::{Progress, TrainerState};
use crate::trainer::rollout_workers;
use crate::trainer::rollout_workers::RolloutWorkers;

/// The fixed part of a run. Only the weights inside `policy` move.
pub(super) struct Experiment<'a> {
    pub(super) config: &'a Config,
    pub(super) compute: &'a Compute,
    pub(super) run: &'a RunFolder,
    pub(super) observer: &'a dyn Observer,
    /// All shops; the evaluated one is shop 0.
    pub(super) tasks: TaskSet,
    /// Examples of a file to train on, if `shop_r1.data` names one.
    pub(super) recorded: Option<RecordedSteps>,
    pub(super) policy: PolicyModel,
    /// Who makes training episodes; `None` for this process.
    pub(super) workers: Option<&'a dyn RolloutWorkers>,
    /// The loss of a caller, in place of that of the configuration.
    pub(super) own_loss: Option<&'a dyn Loss>,
    _lock: RunLock,
}

impl<'a> Experiment<'a> {
    /// Opens a new run, or the one in `run` as its last checkpoint left it. The critic is that of the loss, if it
    /// has one. Fails if another process trains in `run`.
    pub(super) fn open(
        compute: &'a Compute,
        config: &'a Config,
        run: &'a RunFolder,
        options: TrainOptions<'a>,
    ) -> Result<(Self, Progress, Weights)> {
        let lock = RunLock::take(run)?;
        run.remove_partial()?;
        let tasks = TaskSet::open(config)?;
        check_stages(&config.curriculum, &tasks)?;
        if let Some(folder) = &config.value.cache {
            fs::create_dir_all(folder).map_err(|e| TrainingError::io("create", folder, e))?;
        }
        let data = Some(Path::new(&config.shop_r1.data)).filter(|path| !path.as_os_str().is_empty());
        let recorded = data.map(RecordedSteps::read).transpose()?;
        let (state, policy, weights) = match run.last_checkpoint()? {
            Some(folder) => resume(compute, config, &folder)?,
            None => {
                let policy = PolicyModel::begin(config, &tasks)?;
                let method = config.warm_start.optimizer;
                let train_state = TrainState::new(&policy.model, compute, method, &config.optimizer)?;
                let critic = new_critic(config, &policy)?;
                (TrainerState::new(), policy, Weights { train_state, critic })
            }
        };
        let TrainOptions { observer, workers, loss: own_loss, .. } = options;
        let experiment =
            Self { config, compute, run, observer, tasks, recorded, policy, workers, own_loss, _lock: lock };
        // A refused run keeps all its records.
        experiment.keep_fingerprint(state.step)?;
        // A run may be killed between writing a checkpoint and linking it.
        if let Some(best) = state.best.filter(|best| best.step == state.step) {
            run.set_best(best.step)?;
        }
        let split = config.evaluation.split.to_string();
        let metrics = MetricsWriter::open(run.root(), &split, state.metrics)?;
        Ok((experiment, Progress::new(state, metrics), weights))
    }

    /// Saves the fingerprint of a new run. Refuses to resume a run with another fingerprint after `step` optimizer steps; a
    /// loss has no part in the warm start, from which runs with other losses branch.
    fn keep_fingerprint(&self, step: u64) -> Result<()> {
        let recorded = self.recorded.as_ref();
        let found = Fingerprint {
            base: self.policy.base()?,
            prompt: self.policy.prompt_version()?,
            compute: self.compute.recorded_kind(),
            examples: recorded.map_or_else(String::new, |steps| steps.digest().into()),
            loss: self.own_loss.map_or_else(String::new, |loss| loss.name().into()),
            ..fingerprint(&self.tasks, &self.policy.tokenizer)
        };
        let path = self.run.fingerprint();
        let mut begun: Option<Fingerprint> = path.is_file().then(|| read_json(&path)).transpose()?;
        if let Some(begun) = begun.as_mut().filter(|_| step <= self.first_rl_step()) {
            begun.loss.clone_from(&found.loss);
        }
        if let Some(begun) = begun.filter(|begun| *begun != found) {
            let differences = begun.differences(&found);
            if begun.compute != found.compute && differences.len() == 1 {
                let [begun, found] = [&begun.compute, &found.compute]
                    .map(|compute| if compute.is_empty() { "CPU, F32, the cpu backend" } else { compute });
                let problem = format!(
                    "the run was started on `{begun}`, not on `{found}`; resume it with the same device, dtype and kernels"
                );
                return Err(TrainingError::bad_file(&path, problem));
            }
            let changed = differences.join("; ");
            let problem = format!(
                "these changed since the run began, so that it cannot be resumed: {changed}; start a new run"
            );
            return Err(TrainingError::bad_file(&path, problem));
        }
        write_json(&path, &found)
    }

    pub(super) fn seed(&self) -> Seed {
        Seed(self.config.seed)
    }

    /// Optimizer steps before the first RL step.
    pub(super) fn first_rl_step(&self) -> u64 {
        self.config.warm_start.all_steps()
    }

    /// Whether the loss needs V*. Cloning alone does not.
    pub(super) fn needs_values(&self) -> bool {
        let source =
            self.own_loss.map_or_else(|| self.config.loss().advantage_source(), Loss::advantage_source);
        !self.config.rl.is_cloning_alone() && source == AdvantageSource::Value
    }

    /// Whether goals are chosen by the spread of their reference rewards. Cloning alone draws none.
    pub(super) fn chooses_by_spread(&self) -> bool {
        !self.config.rl.is_cloning_alone() && self.config.value.keep_spread < 1.0
    }

    /// The number of training goals that RL on whole episodes draws from; `None` for all. It is limited if V* of goals is estimated,
    /// for the loss or to choose goals by spread, because that costs rollouts of each goal.
    pub(super) fn goal_limit(&self) -> Option<usize> {
        let value = &self.config.value;
        (self.needs_values() || self.chooses_by_spread()).then_some(value.goals)
    }

    /// Whether held-out single steps are evaluated: if it is asked for, in a prompt format that has them.
    pub(super) fn evaluates_single_steps(&self) -> bool {
        self.config.shop_r1.eval_examples > 0 && self.config.prompt.format.has_single_steps()
    }

    /// The distribution that rollouts are sampled from and scored under.
    pub(super) fn sampler(&self) -> Result<Sampler> {
        let rl = &self.config.rl;
        Ok(Sampler::new(rl.temperature as f32, rl.top_p as f32)?)
    }

    /// The `sample`-th episode of a goal of `tasks` at step coordinate `step`.
    pub(super) fn task(tasks: &TaskSet, goal: TaskId, step: u64, sample: u64) -> Task {
        Task::new(tasks.shop_of(goal).clone(), goal.at(step, sample))
    }

    /// Training rollouts of `network`, by the workers if there are any. They are never constrained, so that the sampling distribution is the
    /// policy's. `ended` is called once per finished episode.
    pub(super) fn rollout(
        &self,
        network: &Network,
        tasks: &[Task],
        ended: &dyn Fn(),
    ) -> Result<Vec<Episode>> {
        let rl = &self.config.rl;
        match (self.workers, network) {
            (Some(workers), Network::Cpu(model)) if tasks.iter().all(|task| task.prefix.is_none()) => {
                rollout_workers::request(workers, self.config, &self.policy, model, tasks, ended)
            }
            _ => self.rollout_at(network, tasks, (rl.temperature, rl.top_p), ended),
        }
    }

    /// Rollouts of `network` at this (temperature, top-p).
    pub(super) fn rollout_at(
        &self,
        network: &Network,
        tasks: &[Task],
        (temperature, top_p): (f64, f64),
        ended: &dyn Fn(),
    ) -> Result<Vec<Episode>> {
        let _span = tracing::debug_span!("rollout", episodes = tasks.len()).entered();
        rollout_workers::episodes(self.config, &self.policy, network, tasks, (temperature, top_p), ended)
    }

    /// Writes the current weights of `train_state` as a model folder.
    pub(super) fn save_policy(&self, train_state: &TrainState, folder: &Path) -> Result<()> {
        train_state.copy_to_host(&self.policy.model)?;
        self.policy.save(folder)
    }

    /// The policy before the first RL step.
    pub(super) fn first_reference(&self) -> Result<Network> {
        Network::new(&self.policy.frozen(&self.reference_folder(0))?, self.compute)
    }

    /// The base model, if the run begins with it.
    pub(super) fn base_model(&self) -> Result<Option<Network>> {
        let from = &self.config.model.from;
        let base = (from == BASE_MODEL).then(|| TrainedModel::load(Path::new(from))).transpose()?;
        base.map(|base| Network::new(&base.model, self.compute)).transpose()
    }

    /// Folder of the reference that was the policy at RL step `since`.
    pub(super) fn reference_folder(&self, since: u64) -> PathBuf {
        match since {
            0 => self.run.root().join(REFERENCE),
            _ => self.run.root().join(format!("{REFERENCE}-{}", step_name(since))),
        }
    }
}

/// What moves in a run, with its moments.
pub(super) struct Weights {
    pub(super) train_state: TrainState,
    /// The critic, if the loss has one.
    pub(super) critic: Option<Critic>,
}

/// A critic of value 0 for the loss, if it has one.
fn new_critic(config: &Config, policy: &PolicyModel) -> Result<Option<Critic>> {
    let new = |_| Critic::new(policy.model.config().hidden_size, &config.optimizer);
    config.rl.loss.with_critic().map(new).transpose()
}

/// Trainer state, policy, critic and optimizers of a checkpoint.
fn resume(
    compute: &Compute,
    config: &Config,
    checkpoint: &Path,
) -> Result<(TrainerState, PolicyModel, Weights)> {
    let state = TrainerState::read(checkpoint)?;
    let policy = PolicyModel::resume(config, &checkpoint.join(MODEL))?;
    let path = checkpoint.join(OPTIMIZER);
    let is_warm_start = state.step <= config.warm_start.all_steps();
    let method = if is_warm_start { config.warm_start.optimizer } else { config.rl.optimizer };
    let train_state = TrainState::resume(&policy.model, compute, method, &config.optimizer, &path)?;
    let mut critic = new_critic(config, &policy)?;
    if has_critic(config, state.step) {
        let (width, folder) = (policy.model.config().hidden_size, checkpoint.join(CRITIC));
        if !folder.is_dir() {
            let problem = "it is missing; the run learned without a critic, so start a new one";
            return Err(TrainingError::bad_file(&folder, problem));
        }
        critic = Some(Critic::load(width, &config.optimizer, &folder)?);
    }
    Ok((state, policy, Weights { train_state, critic }))
}

/// Whether the checkpoint after `step` optimizer steps has a critic: that of a warm start has none, so that runs with
/// other losses can branch from it.
pub(super) fn has_critic(config: &Config, step: u64) -> bool {
    config.rl.loss.with_critic().is_some() && step > config.warm_start.all_steps()
}

#[cfg(test)]
pub(super) mod tests;
