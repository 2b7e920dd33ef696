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
use crate::optimizer::{DeviceOptimizer, Optimizer, StepOutcome, Stride};

/// A network with its optimizer.
#[derive(Debug)]
pub(crate) struct TrainState {
    network: Network,
    moving: Moving,
}

/// The optimizer of the backend.
#[derive(Debug)]
enum Moving {
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
            let moving = Moving::Cpu(Optimizer::new(method, config, model.learnable()));
            return Ok(Self { network: Network::new(model, compute)?, moving });
        }
        let (on_device, adapter) = DeviceModel::with_adapter(model, compute)?;
        let optimizer = match adapter {
            Some(adapter) => DeviceOptimizer::of_adapter(method, config, adapter),
            None => {
                let masters = Parameters::masters_of(model, compute)?;
                DeviceOptimizer::new(method, config, &on_device, Some(masters))
            }
        }?;
        Ok(Self { network: Network::Device(on_device.into()), moving: Moving::Device(optimizer) })
    }

    /// Like [`new`](Self::new), with the moments that [`save_moments`](Self::save_moments) wrote to `path`.
    pub(crate) fn resume(
        model: &Qwen2,
        compute: &Compute,
        method: Method,
        config: &OptimizerConfig,
        path: &Path,
    ) -> Result<Self> {
        let Self { network, moving } = Self::new(model, compute, method, config)?;
        let moving = match moving {
            Moving::Cpu(_) => Moving::Cpu(Optimizer::load(method, config, model.learnable(), path)?),
            Moving::Device(optimizer) => Moving::Device(optimizer.load(path)?),
        };
        Ok(Self { network, moving })
    }

    /// Resets the moments and switches to `method`.
    pub(crate) fn restart(&mut self, method: Method, config: &OptimizerConfig) -> Result<()> {
        match (&self.network, &mut self.moving) {
            (Network::Cpu(model), Moving::Cpu(optimizer)) => {
                *optimizer = Optimizer::new(method, config, model.learnable());
                Ok(())
            }
            (Network::Device(_), Moving::Device(optimizer)) => optimizer.restart(method),
            _ => Err(other_backend()),
        }
    }

    /// The network with the current weights.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// One optimizer step; a gradient with a NaN or an infinity changes nothing.
    pub(crate) fn step(&mut self, gradients: Gradients, stride: Stride) -> Result<StepOutcome> {
        match (&self.network, &mut self.moving, gradients) {
            (Network::Cpu(model), Moving::Cpu(optimizer), Gradients::Cpu(mut gradients)) => {
                optimizer.step(model.learnable(), &mut gradients, stride)
            }
            (Network::Device(model), Moving::Device(optimizer), Gradients::Device(gradients)) => {
                optimizer.step(model, &gradients, stride)
            }
            _ => Err(other_backend()),
        }
    }

    /// Copies what is trained to `model`, from which the state was created; does nothing on the cpu backend.
    pub(crate) fn copy_to_host(&self, model: &Qwen2) -> Result<()> {
        match &self.moving {
            Moving::Cpu(_) => Ok(()),
            Moving::Device(optimizer) => optimizer.write_to(model),
        }
    }

    /// Writes the moments and the step count.
    pub(crate) fn save_moments(&self, path: &Path) -> Result<()> {
        match &self.moving {
            Moving::Cpu(optimizer) => optimizer.save(path),
            Moving::Device(optimizer) => optimizer.save(path),
        }
    }
}

fn other_backend() -> TrainingError {
    let problem = "the gradient is of another backend than the weights".into();
    TrainingError::ParameterMismatch { name: "*".into(), problem }
}
