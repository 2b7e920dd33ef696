//! The trained weights and their optimizer, on the same backend.
//!
//! A [`TrainState`] holds a [`Network`] and applies [`Gradients`] to it. On the cpu backend it updates the
//! variables of the [`Qwen2`] it was created from. On a device it updates f32 master weights, or the f32 matrices of an
//! adapter, from which the weights in the compute dtype are written in the same step; [`TrainState::copy_to_host`] copies them to
//! that [`Qwen2`] before saving, so that checkpoints have the same files on both backends.

use std::path::Path;

use webshop_lm::Qwen2;
use webshop_lm::device::{Compute, DeviceModel, Parameters};

use crate::config::{Method, OptimizerConfig};
use crate::error::{Result, TrainingError};
use crate::model::gradient::Gradients;
use crate::model::network::Network;
use crate::optimizer::{DeviceOptimizer, Optimizer, StepOutcome, UpdateConfig};

/// A network with its optimizer.
#[derive(Debug)]
pub(crate) struct TrainState {
    network: Network,
    optimizer: BackendOptimizer,
}

/// The optimizer of the backend.
#[derive(Debug)]
enum BackendOptimizer {
    Cpu(Optimizer),
    Device(DeviceOptimizer),
}

impl TrainState {
    /// A state with the current weights of `model` and zero moments.
    pub(crate) fn new(
        model: &Qwen2,
        compute: &Compute,
        method: Method,
        config: &OptimizerConfig,
    ) -> Result<Self> {
        if compute.uses_cpu_backend() {
            let optimizer = BackendOptimizer::Cpu(Optimizer::new(method, config, model.learnable()));
            return Ok(Self { network: Network::new(model, compute)?, optimizer });
        }
        let (on_device, adapter) = DeviceModel::with_adapter(model, compute)?;
        let optimizer = match adapter {
            Some(adapter) => DeviceOptimizer::of_adapter(method, config, adapter),
            None => {
                let masters = Parameters::masters_of(model, compute)?;
                DeviceOptimizer::new(method, config, &on_device, Some(masters))
            }
        }?;
        Ok(Self {
            network: Network::Device(on_device.into()),
            optimizer: BackendOptimizer::Device(optimizer),
        })
    }

    /// Like [`new`](Self::new), with the moments that [`save_moments`](Self::save_moments) wrote to `path`.
    pub(crate) fn resume(
        model: &Qwen2,
        compute: &Compute,
        method: Method,
        config: &OptimizerConfig,
        path: &Path,
    ) -> Result<Self> {
        let Self { network, optimizer } = Self::new(model, compute, method, config)?;
        let optimizer = match optimizer {
            BackendOptimizer::Cpu(_) => {
                BackendOptimizer::Cpu(Optimizer::load(method, config, model.learnable(), path)?)
            }
            BackendOptimizer::Device(optimizer) => BackendOptimizer::Device(optimizer.load(path)?),
        };
        Ok(Self { network, optimizer })
    }

    /// Resets the moments and switches to `method`.
    pub(crate) fn restart(&mut self, method: Method, config: &OptimizerConfig) -> Result<()> {
        match (&self.network, &mut self.optimizer) {
            (Network::Cpu(model), BackendOptimizer::Cpu(optimizer)) => {
                *optimizer = Optimizer::new(method, config, model.learnable());
                Ok(())
            }
            (Network::Device(_), BackendOptimizer::Device(optimizer)) => optimizer.restart(method),
            _ => Err(other_backend()),
        }
    }

    /// The network with the current weights.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// One optimizer step; a gradient with a NaN or an infinity changes nothing.
    pub(crate) fn step(&mut self, gradients: Gradients, update: UpdateConfig) -> Result<StepOutcome> {
        match (&self.network, &mut self.optimizer, gradients) {
            (Network::Cpu(model), BackendOptimizer::Cpu(optimizer), Gradients::Cpu(mut gradients)) => {
                optimizer.step(model.learnable(), &mut gradients, update)
            }
            (Network::Device(model), BackendOptimizer::Device(optimizer), Gradients::Device(gradients)) => {
                optimizer.step(model, &gradients, update)
            }
            _ => Err(other_backend()),
        }
    }

    /// Copies what is trained to `model`, from which the state was created; does nothing on the cpu backend.
    pub(crate) fn copy_to_host(&self, model: &Qwen2) -> Result<()> {
        match &self.optimizer {
            BackendOptimizer::Cpu(_) => Ok(()),
            BackendOptimizer::Device(optimizer) => optimizer.write_to(model),
        }
    }

    /// Writes the moments and the step count.
    pub(crate) fn save_moments(&self, path: &Path) -> Result<()> {
        match &self.optimizer {
            BackendOptimizer::Cpu(optimizer) => optimizer.save(path),
            BackendOptimizer::Device(optimizer) => optimizer.save(path),
        }
    }
}

fn other_backend() -> TrainingError {
    let problem = "the gradient is of another backend than the weights".into();
    TrainingError::ParameterMismatch { name: "*".into(), problem }
}
