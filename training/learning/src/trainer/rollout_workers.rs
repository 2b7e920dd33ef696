//! Training episodes that are made in other processes or on other machines.
//!
//! An episode depends on the configuration, the weights and its coordinates, and on nothing else. So
//! [`train`](crate::train) asks [`RolloutWorkers`], if it is given some, for the episodes of each batch and for the
//! rollouts of the reference, and learns from what they return; a [`RolloutWorker`] makes the episodes of a request in
//! its process. The run has the bytes of a run without workers if all processors compute the same bits.
//!
//! The trainer itself makes evaluations, the judgement, the beginnings of demonstrations (DAgger), and rollouts that are
//! forked from states. Single steps, devices and curricula over the size of shops are refused.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use webshop_agent::{Episode, EpisodeCoordinates, Task, rollout};
use webshop_lm::device::Compute;
use webshop_lm::{Completion, Qwen2};
use webshop_products::Seed;

use crate::config::{Config, RlMode};
use crate::data::task_set::TaskSet;
use crate::error::{Result, TrainingError};
use crate::model::network::Network;
use crate::model::policy::PolicyModel;
use crate::setup::limits::{lm_config, rollout_config};

/// Makes the episodes of requests, anywhere.
pub trait RolloutWorkers {
    /// The episodes of `request.coordinates`, in that order. An error ends the training, which can be resumed.
    fn rollout(&self, request: &EpisodeRequest) -> Result<Vec<Episode>, Box<dyn Error + Send + Sync>>;
}

/// Which episodes are needed, and of which policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpisodeRequest {
    /// The configuration of the run as TOML, all keys stated; the same in every request of a run.
    pub config: String,
    /// The folder of weights and tokenizer on the trainer's machine; it is there until the request is answered.
    pub model: PathBuf,
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus of the samples, above 0 and at most 1.
    pub top_p: f64,
    /// The episodes by the addresses of their draws; `shop` counts the training shops of the configuration.
    pub coordinates: Vec<EpisodeCoordinates>,
}

/// Makes the episodes of a run in this process, on the CPU. Opening generates the training shops once.
#[derive(Debug)]
pub struct RolloutWorker {
    config: Config,
    tasks: TaskSet,
}

impl RolloutWorker {
    /// Opens the shops of a configuration that states its keys as TOML ([`EpisodeRequest::config`]). Files that it names must
    /// be there.
    pub fn open(config: &str) -> Result<Self> {
        let config = Config::resolve("the configuration of the request", config, &[])?;
        Ok(Self { tasks: TaskSet::open(&config)?, config })
    }

    /// The episodes at `coordinates`, in that order, of the policy in the folder `model`. The bytes do not depend on what else
    /// is asked for.
    ///
    /// Fails for a shop or a goal that the configuration has not, and for a folder without a model.
    pub fn rollout(
        &self,
        model: &Path,
        (temperature, top_p): (f64, f64),
        coordinates: &[EpisodeCoordinates],
    ) -> Result<Vec<Episode>> {
        let policy = PolicyModel::resume(&self.config, model)?;
        let network = Network::Cpu(Arc::new(policy.model.clone()));
        let tasks: Vec<Task> = coordinates.iter().map(|one| self.task(*one)).collect::<Result<_>>()?;
        episodes(&self.config, &policy, &network, &tasks, (temperature, top_p), &|| ())
    }

    fn task(&self, coordinates: EpisodeCoordinates) -> Result<Task> {
        let shop = usize::try_from(coordinates.shop).ok().and_then(|place| self.tasks.shops().get(place));
        match shop.filter(|shop| (coordinates.goal.0 as usize) < shop.goals().goals().len()) {
            Some(shop) => Ok(Task::new(shop.clone(), coordinates)),
            None => Err(TrainingError::RolloutWorkers {
                problem: format!("there is no goal {} in shop {}", coordinates.goal.0, coordinates.shop),
            }),
        }
    }
}

/// Episodes of `network` at this (temperature, top-p), with prompts and limits of `config`. `ended` is called once per
/// finished episode.
pub(super) fn episodes(
    config: &Config,
    policy: &PolicyModel,
    network: &Network,
    tasks: &[Task],
    (temperature, top_p): (f64, f64),
    ended: &dyn Fn(),
) -> Result<Vec<Episode>> {
    let lm = lm_config(config, temperature, top_p)?;
    let mut policy = policy.policy(network.engine()?, lm, Seed(config.seed))?;
    let lanes = network.lanes(config.prompt.max_context);
    let limits = webshop_agent::RolloutConfig { lanes, ..rollout_config(config) };
    Ok(rollout(&mut policy, tasks, limits, &mut |_, _| ended())?)
}

/// Asks `workers` for the episodes of `tasks`, which begin at the start of their goals, and checks what they return.
pub(super) fn request(
    workers: &dyn RolloutWorkers,
    config: &Config,
    policy: &PolicyModel,
    model: &Qwen2,
    tasks: &[Task],
    ended: &dyn Fn(),
) -> Result<Vec<Episode>> {
    let folder = tempfile::tempdir().map_err(|e| TrainingError::io("create", &std::env::temp_dir(), e))?;
    policy.save_weights(model, folder.path())?;
    let request = EpisodeRequest {
        config: config.to_toml(),
        model: folder.path().to_owned(),
        temperature: config.rl.temperature,
        top_p: config.rl.top_p,
        coordinates: tasks.iter().map(|task| task.coordinates).collect(),
    };
    let failed = |problem: String| TrainingError::RolloutWorkers { problem };
    let episodes = workers.rollout(&request).map_err(|e| failed(e.to_string()))?;
    if episodes.len() != tasks.len() {
        return Err(failed(format!("{} episodes were asked for, {} came", tasks.len(), episodes.len())));
    }
    for (task, episode) in tasks.iter().zip(&episodes) {
        let (asked, came) = (task.coordinates, episode.meta.coordinates);
        if asked != came {
            return Err(failed(format!("the episode at {asked:?} was asked for, that at {came:?} came")));
        }
        if let Some(problem) = defect(episode) {
            return Err(failed(format!("the episode at {asked:?} {problem}")));
        }
        if episode.meta.fingerprint != *task.shop.fingerprint() {
            return Err(failed(format!(
                "the episode at {asked:?} is of another shop; the workers have other files"
            )));
        }
        ended();
    }
    Ok(episodes)
}

/// What is wrong with an episode that no policy of this program makes.
fn defect(episode: &Episode) -> Option<String> {
    let of_meta = episode.meta.coordinates.goal;
    if episode.goal != of_meta {
        return Some(format!("is of goal {}", episode.goal.0));
    }
    let completions = episode.turns.iter().filter_map(|turn| Some(&turn.agent.tokens.as_ref()?.completion));
    let is_whole = |completion: &Completion| {
        let Completion { ids, log_probs, entropy, .. } = completion;
        let are_finite = log_probs.iter().chain(entropy).all(|value| value.is_finite());
        log_probs.len() == ids.len() && entropy.len() == ids.len() && are_finite
    };
    let place = completions.into_iter().position(|completion| !is_whole(completion))?;
    Some(format!("has not one finite log-probability and entropy for each token of completion {place}"))
}

/// Refuses what workers cannot make episodes for, before any work.
pub(super) fn check(config: &Config, compute: &Compute) -> Result<()> {
    let refuse = |key: &str, problem: &str| {
        Err(TrainingError::InvalidValue {
            key: key.into(),
            problem: format!("{problem} with rollout workers"),
        })
    };
    if config.rl.mode != RlMode::MultiTurn {
        return refuse("rl.mode", "must be `multi_turn`");
    }
    if !config.curriculum.sizes.is_empty() {
        return refuse("curriculum.sizes", "must be empty");
    }
    if !compute.uses_cpu_backend() {
        let problem = format!("workers compute on the CPU, not on `{}`", compute.kind());
        return Err(TrainingError::RolloutWorkers { problem });
    }
    Ok(())
}
