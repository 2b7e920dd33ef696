//! The optimizer on the device of the model: the equations of [`super`], without copies to the host.
//!
//! Master weights and moments are f32; the weights of a bf16 model are written from the masters in the same
//! step. Of a model with an adapter the adapter's matrices are trained, and the weights are written from them. The host
//! waits for the global norm of the gradient only. Joined moments are split on saving and named as on the cpu backend, so
//! that both backends write the same file.

pub(crate) mod muon;
#[cfg(test)]
mod tests;

use std::path::Path;

use candle_core::{Device, Tensor};
use webshop_lm::Qwen2;
use webshop_lm::device::{ComputeDtype, DeviceAdapter, DeviceModel, Parameters, adamw};

use crate::config::{Method, OptimizerConfig};
use crate::error::Result;
use crate::math::power;
use crate::optimizer::muon::is_hidden_matrix;
use crate::optimizer::{StepOutcome, UpdateConfig, file, is_decayed};

/// The optimizer of one [`DeviceModel`] and its state.
#[derive(Debug)]
pub(crate) struct DeviceOptimizer {
    config: OptimizerConfig,
    step: u64,
    learned: Learned,
    moments: Vec<Moments>,
}

/// What is trained, f32.
#[derive(Debug)]
enum Learned {
    /// All weights.
    Weights {
        /// Shares the memory of the model if the model is f32.
        masters: Parameters,
        /// Whether the weights of the model are copies of another dtype.
        has_copies: bool,
    },
    /// The matrices of an adapter.
    Adapter(DeviceAdapter),
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
        let moments = moments(method, masters.named(), parts)?;
        let learned = Learned::Weights { masters, has_copies };
        Ok(Self { config: config.clone(), step: 0, learned, moments })
    }

    /// Zero moments for the matrices of `adapter`.
    pub(crate) fn of_adapter(
        method: Method,
        config: &OptimizerConfig,
        adapter: DeviceAdapter,
    ) -> Result<Self> {
        let parts = adapter.learnable().map(|(name, matrix)| vec![(name.to_owned(), matrix.dims()[0])]);
        let moments = moments(method, adapter.learnable(), parts.collect())?;
        Ok(Self { config: config.clone(), step: 0, learned: Learned::Adapter(adapter), moments })
    }

    /// Resets the moments to zero and switches to `method`; the weights stay.
    pub(crate) fn restart(&mut self, method: Method) -> Result<()> {
        // The old moments are freed first: memory may not hold both.
        let parts = std::mem::take(&mut self.moments).into_iter().map(|of| of.parts).collect();
        self.moments = match &self.learned {
            Learned::Weights { masters, .. } => moments(method, masters.named(), parts),
            Learned::Adapter(adapter) => moments(method, adapter.learnable(), parts),
        }?;
        self.step = 0;
        Ok(())
    }

    /// Number of steps applied; steps with a non-finite gradient do not count.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.step
    }

    /// Copies what is trained into the variables of `model`, from which the device's model was made.
    pub(crate) fn write_to(&self, model: &Qwen2) -> Result<()> {
        Ok(match &self.learned {
            Learned::Weights { masters, .. } => masters.write_to(model),
            Learned::Adapter(adapter) => adapter.write_to(model),
        }?)
    }

    /// One step on the weights of `model`, the model the optimizer was created for. A gradient with a NaN or
    /// an infinity changes nothing.
    pub(crate) fn step(
        &mut self,
        model: &DeviceModel,
        gradients: &Parameters,
        UpdateConfig { lr, grad_clip }: UpdateConfig,
    ) -> Result<StepOutcome> {
        let kernels = model.kernels();
        let gradients = self.learned.gradients(gradients)?;
        let learned = self.learned.with_copies(model);
        let mut sum = 0.0;
        for ((name, ..), gradient) in learned.iter().zip(&gradients) {
            let square = adamw::sum_of_squares(kernels, gradient)?;
            if !square.is_finite() {
                return Ok(StepOutcome::NonFinite { parameter: (*name).to_owned() });
            }
            sum += square;
        }
        let grad_norm = f64::sqrt(sum);
        let scale = if grad_clip > 0.0 && grad_norm > grad_clip { grad_clip / grad_norm } else { 1.0 };
        self.step += 1;
        for (((name, parameter, copy), moments), gradient) in
            learned.into_iter().zip(&self.moments).zip(&gradients)
        {
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
        if let Learned::Adapter(adapter) = &self.learned {
            adapter.apply(model.weights())?;
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

impl Learned {
    /// What is trained by name, with its copy in the dtype of `model` that is written with it.
    fn with_copies<'a>(&'a self, model: &'a DeviceModel) -> Vec<(&'a str, &'a Tensor, Option<&'a Tensor>)> {
        match self {
            Self::Weights { masters, has_copies } => {
                let both = masters.named().zip(model.weights().named());
                both.map(|((name, master), (_, copy))| (name, master, has_copies.then_some(copy))).collect()
            }
            Self::Adapter(adapter) => {
                adapter.learnable().map(|(name, matrix)| (name, matrix, None)).collect()
            }
        }
    }

    /// Its gradients in the same order, from those of the weights.
    fn gradients(&self, of_weights: &Parameters) -> Result<Vec<Tensor>> {
        Ok(match self {
            Self::Weights { .. } => of_weights.named().map(|(_, gradient)| gradient.clone()).collect(),
            Self::Adapter(adapter) => adapter.gradients(of_weights)?,
        })
    }
}

/// Zero moments for these parameters, which join `parts`.
fn moments<'a>(
    method: Method,
    parameters: impl Iterator<Item = (&'a str, &'a Tensor)>,
    parts: Vec<Vec<(String, usize)>>,
) -> Result<Vec<Moments>> {
    let zero = |((name, values), parts): ((&str, &Tensor), _)| {
        let is_muon = method == Method::Muon && is_hidden_matrix(name, values.dims());
        let second = if is_muon { None } else { Some(values.zeros_like()?) };
        Ok(Moments { parts, first: values.zeros_like()?, second })
    };
    parameters.zip(parts).map(zero).collect()
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
