//! What a caller gives to a run besides its configuration.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use webshop_lm::device::{Compute, DeviceRequest, KernelChoice};

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::loss::{AdvantageSource, Loss};
use crate::observer::{Observer, Silent};
use crate::trainer::rollout_workers::{self, RolloutWorkers};

/// What a run is made with besides its configuration. By default it is on the CPU backend and silent, and nothing stops it.
#[derive(Clone, Copy)]
pub struct TrainOptions<'a> {
    /// Device, dtype and kernels; `None` for the CPU backend. A run can be resumed only with the same.
    pub compute: Option<&'a Compute>,
    /// Receives the progress.
    pub observer: &'a dyn Observer,
    /// Once it is set, the run writes a checkpoint after the current step and ends with
    /// [`TrainingError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
    /// A loss in place of `rl.loss`. The run's `config.toml` does not have it: a run is resumed with the same loss, and
    /// `fingerprint.json` has its name. Refused if it or `rl.loss` needs a critic, and if it compares the episodes of a
    /// group with `rl.group_size` below 2.
    pub loss: Option<&'a dyn Loss>,
    /// Make the training episodes. Refused for single steps, for curricula over the size of shops, and on
    /// other backends than the CPU's.
    pub workers: Option<&'a dyn RolloutWorkers>,
}

impl Default for TrainOptions<'_> {
    fn default() -> Self {
        Self { compute: None, observer: &Silent, stop: None, loss: None, workers: None }
    }
}

impl<'a> TrainOptions<'a> {
    /// Refuses a loss or workers that the run of `config` cannot have.
    pub(super) fn check(&self, config: &Config, compute: &Compute) -> Result<()> {
        if self.workers.is_some() {
            rollout_workers::check(config, compute)?;
        }
        let Some(loss) = self.loss else { return Ok(()) };
        let problem = match loss.advantage_source() {
            AdvantageSource::Critic => "needs a critic, which only `ppo` has",
            _ if config.rl.loss.with_critic().is_some() => "has no critic; `rl.loss.kind` must not be `ppo`",
            AdvantageSource::Group if config.rl.group_size < 2 => {
                "compares rollouts of the same goal; set `rl.group_size` to 2 or more"
            }
            _ => return Ok(()),
        };
        Err(TrainingError::InvalidBatch { loss: loss.name(), problem: problem.into() })
    }
}

/// `given`, or the CPU backend.
pub(crate) fn compute_or_cpu(given: Option<&Compute>) -> Result<Cow<'_, Compute>> {
    Ok(match given {
        Some(given) => Cow::Borrowed(given),
        None => Cow::Owned(Compute::choose(DeviceRequest::Cpu, None, KernelChoice::Custom)?),
    })
}
