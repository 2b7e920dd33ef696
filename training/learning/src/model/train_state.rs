//! Who learns: weights that move, and the optimizer that moves them, on the same engine.
//!
//! A [`TrainState`] has a [`Network`] that everything is asked of and takes [`Gradients`] of it. On the cpu backend it
//! moves the variables of the [`Qwen2`] it was made of. On a device it moves f32 masters there, from which the weights
//! in the compute dtype are written in the same step; that [`Qwen2`] gets them back when they are to be saved
//! ([`TrainState::copy_to_host`]), so that a checkpoint is the same files on either engine. It computes no gradients and
//! knows no step number.

use std::path::Path;
use std::sync::Arc;

use webshop_lm::Qwen2;
use webshop_lm::device::{Compute, DeviceModel, Parameters};

use crate::config::{Method, OptimizerConfig};
use crate::error::{Result, TrainingError};
use crate::model::gradient::Gradients;
use crate::model::network::Network;
use crate::optimizer::{DeviceOptimizer, Optimizer, StepOutcome, Stride};

/// A network that learns.
#[derive(Debug)]
pub struct TrainState {
    network: Network,
    moving: Moving,
}

/// The optimizer of the engine at hand.
#[derive(Debug)]
enum Moving {
    Cpu(Optimizer),
    Device(DeviceOptimizer),
}

impl TrainState {
    /// The train_state that has the weights of `model` now, and no moments yet.
    pub fn new(model: &Qwen2, compute: &Compute, method: Method, config: &OptimizerConfig) -> Result<Self> {
        if compute.uses_cpu_backend() {
            let moving = Moving::Cpu(Optimizer::new(method, config, model.learnable()));
            return Ok(Self { network: Network::new(model, compute)?, moving });
        }
        let masters = Parameters::masters_of(model, compute)?;
        let on_device = Arc::new(DeviceModel::new(model, compute)?);
        let optimizer = DeviceOptimizer::new(method, config, &on_device, Some(masters))?;
        Ok(Self { network: Network::Device(on_device), moving: Moving::Device(optimizer) })
    }

    /// As [`new`](Self::new), with the moments that [`save_moments`](Self::save_moments) left at `path`.
    pub fn resume(
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

    /// Forgets its moments and goes on by `method`.
    pub fn restart(&mut self, method: Method, config: &OptimizerConfig) -> Result<()> {
        match (&self.network, &mut self.moving) {
            (Network::Cpu(model), Moving::Cpu(optimizer)) => {
                *optimizer = Optimizer::new(method, config, model.learnable());
                Ok(())
            }
            (Network::Device(model), Moving::Device(optimizer)) => optimizer.restart(method, model),
            _ => Err(other_engine()),
        }
    }

    /// Its weights as they are.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// One step; a gradient that is not a number everywhere changes nothing.
    pub fn step(&mut self, gradients: Gradients, stride: Stride) -> Result<StepOutcome> {
        match (&self.network, &mut self.moving, gradients) {
            (Network::Cpu(model), Moving::Cpu(optimizer), Gradients::Cpu(mut gradients)) => {
                optimizer.step(model.learnable(), &mut gradients, stride)
            }
            (Network::Device(model), Moving::Device(optimizer), Gradients::Device(gradients)) => {
                optimizer.step(model, &gradients, stride)
            }
            _ => Err(other_engine()),
        }
    }

    /// Puts the weights into `model`, which it was made of, if they are not there already.
    pub fn copy_to_host(&self, model: &Qwen2) -> Result<()> {
        match &self.moving {
            Moving::Cpu(_) => Ok(()),
            Moving::Device(optimizer) => Ok(optimizer.masters().write_to(model)?),
        }
    }

    /// Writes the moments and the number of steps that made them.
    pub fn save_moments(&self, path: &Path) -> Result<()> {
        match &self.moving {
            Moving::Cpu(optimizer) => optimizer.save(path),
            Moving::Device(optimizer) => optimizer.save(path),
        }
    }
}

fn other_engine() -> TrainingError {
    let problem = "the gradient was taken on the other engine".into();
    TrainingError::ParameterMismatch { name: "*".into(), problem }
}
