//! The optimizer on the device of the model: the equations of [`super`], without copies to the host.
//!
//! Master weights and moments are f32; the weights of a bf16 model are written from the masters in the same
//! step. The host waits for the global norm of the gradient only. Joined moments are split on saving and
//! named as on the cpu backend, so that both backends write the same file.

pub(crate) mod muon;
#[cfg(test)]
mod tests;

use std::path::Path;

use candle_core::{Device, Tensor};
use webshop_lm::device::{ComputeDtype, DeviceModel, Parameters, adamw};

use crate::config::{Method, OptimizerConfig};
use crate::error::Result;
use crate::optimizer::muon::is_hidden_matrix;
use crate::optimizer::{StepOutcome, Stride, file, is_decayed, power};

/// The optimizer of one [`DeviceModel`] and its state.
#[derive(Debug)]
pub(crate) struct DeviceOptimizer {
    config: OptimizerConfig,
    step: u64,
    /// Shares the memory of the model if the model is f32.
    masters: Parameters,
    moments: Vec<Moments>,
    has_copies: bool,
}

/// The optimizer state of one device parameter, f32.
#[derive(Debug)]
struct Moments {
    /// The parameters of the checkpoint that it joins, with their numbers of rows.
    parts: Vec<(String, usize)>,
    first: Tensor,
    /// `None` for matrices updated by Muon.
    second: Option<Tensor>,
}

impl DeviceOptimizer {
    /// Zero moments for `model`, whose f32 weights are `masters`. With `None` they are taken from the model,
    /// with the precision of its dtype.
    pub(crate) fn new(
        method: Method,
        config: &OptimizerConfig,
        model: &DeviceModel,
        masters: Option<Parameters>,
    ) -> Result<Self> {
        let has_copies = model.compute().dtype() != ComputeDtype::F32;
        let masters = match masters {
            Some(masters) if has_copies => masters,
            None if has_copies => model.weights().widened()?,
            _ => model.weights().clone(),
        };
        let parts = Parameters::parts(model.config());
        let moments = masters.named().zip(parts).map(|((name, weight), parts)| {
            let is_muon = method == Method::Muon && is_hidden_matrix(name, weight.dims());
            let second = if is_muon { None } else { Some(weight.zeros_like()?) };
            Ok(Moments { parts, first: weight.zeros_like()?, second })
        });
        let moments = moments.collect::<Result<_>>()?;
        Ok(Self { config: config.clone(), step: 0, masters, moments, has_copies })
    }

    /// Resets the moments to zero and switches to `method`; the weights stay.
    pub(crate) fn restart(&mut self, method: Method, model: &DeviceModel) -> Result<()> {
        // The old moments are freed first: memory may not hold both.
        self.moments.clear();
        *self = Self::new(method, &self.config.clone(), model, Some(self.masters.clone()))?;
        Ok(())
    }

    /// Number of steps applied; steps with a non-finite gradient do not count.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// The weights in f32.
    pub(crate) fn masters(&self) -> &Parameters {
        &self.masters
    }

    /// One step on the weights of `model`, the model the optimizer was created for. A gradient with a NaN or
    /// an infinity changes nothing.
    pub(crate) fn step(
        &mut self,
        model: &DeviceModel,
        gradients: &Parameters,
        Stride { lr, grad_clip }: Stride,
    ) -> Result<StepOutcome> {
        let kernels = model.kernels();
        let mut sum = 0.0;
        for (name, gradient) in gradients.named() {
            let square = adamw::sum_of_squares(kernels, gradient)?;
            if !square.is_finite() {
                return Ok(StepOutcome::NonFinite { parameter: name.to_owned() });
            }
            sum += square;
        }
        let grad_norm = f64::sqrt(sum);
        let scale = if grad_clip > 0.0 && grad_norm > grad_clip { grad_clip / grad_norm } else { 1.0 };
        self.step += 1;
        let values = self.masters.named().zip(model.weights().named());
        for (((name, parameter), (_, copy)), (moments, (_, gradient))) in
            values.zip(self.moments.iter().zip(gradients.named()))
        {
            let copy = self.has_copies.then_some(copy);
            let first = &moments.first;
            let by = self.coefficients(name, scale, lr);
            match &moments.second {
                Some(second) => {
                    let state = adamw::State { parameter, first, second, copy };
                    adamw::update(kernels, state, gradient, by)?;
                }
                None => {
                    let joined = muon::Joined { parts: &moments.parts, parameter, momentum: first, copy };
                    joined.update(gradient, scale, by.keep, lr)?;
                }
            }
        }
        Ok(StepOutcome::Stepped { grad_norm })
    }

    fn coefficients(&self, name: &str, scale: f64, lr: f64) -> adamw::Coefficients {
        let [b1, b2] = self.config.betas;
        let decay = if is_decayed(name) { lr * self.config.weight_decay } else { 0.0 };
        adamw::Coefficients {
            scale: scale as f32,
            keep: (1.0 - decay) as f32,
            rate: (lr / (1.0 - power(b1, self.step))) as f32,
            correction: (1.0 / (1.0 - power(b2, self.step)).sqrt()) as f32,
            betas: [b1 as f32, b2 as f32],
            complements: [(1.0 - b1) as f32, (1.0 - b2) as f32],
            epsilon: self.config.epsilon as f32,
        }
    }

    /// Writes the moments in the format of [`Optimizer::save`](crate::optimizer::Optimizer::save).
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let mut apart: Vec<(&str, [Vec<f32>; 2])> = Vec::new();
        for of in &self.moments {
            let mut first = on_host(&of.first)?.into_iter();
            let mut second = of.second.as_ref().map_or(Ok(Vec::new()), on_host)?.into_iter();
            for (name, n_rows) in &of.parts {
                let n = n_rows * of.width();
                let both = [first.by_ref().take(n).collect(), second.by_ref().take(n).collect()];
                apart.push((name, both));
            }
        }
        file::save(path, self.step, apart.iter().map(|(name, [first, second])| (*name, [&first[..], second])))
    }

    /// This new optimizer with the moments and step count that [`save`](Self::save) wrote for a model of the
    /// same shape and the same method.
    pub(crate) fn load(mut self, path: &Path) -> Result<Self> {
        let sizes = self.moments.iter().flat_map(|of| {
            let n_second = usize::from(of.second.is_some());
            let size = move |n_rows: &usize| [n_rows * of.width(), n_second * n_rows * of.width()];
            of.parts.iter().map(move |(name, n_rows)| (name.as_str(), size(n_rows)))
        });
        let (step, apart) = file::load(path, sizes)?;
        self.step = step;
        let mut apart = apart.into_iter();
        for of in &self.moments {
            let parts: Vec<[Vec<f32>; 2]> = apart.by_ref().take(of.parts.len()).collect();
            for (idx, moment) in [Some(&of.first), of.second.as_ref()].into_iter().enumerate() {
                let Some(moment) = moment else { continue };
                let joined: Vec<f32> = parts.iter().flat_map(|both| &both[idx]).copied().collect();
                let joined = Tensor::from_vec(joined, moment.shape(), &Device::Cpu)?;
                moment.slice_set(&joined.to_device(moment.device())?, 0, 0)?;
            }
        }
        Ok(self)
    }
}

impl Moments {
    /// Number of columns.
    fn width(&self) -> usize {
        self.first.elem_count() / self.first.dims()[0]
    }
}

fn on_host(moment: &Tensor) -> Result<Vec<f32>> {
    Ok(moment.flatten_all()?.to_vec1::<f32>()?)
}
