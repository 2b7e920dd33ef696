//! Generation that stays on the device: every lane reads the token it drew last, again and again.
//!
//! Everything that changes from step to step (tokens, positions) lives in the device's memory, so a step asks nothing
//! of the host and can be replayed as one graph. For free text without a constraint; turns with stop tokens and
//! admissible actions are [`crate::generation::generator`]'s.

use candle_core::{DType, Tensor};

use crate::qwen2::gpu::{DeviceCache, DeviceModel};
use crate::error::LmError;
use crate::ops::gpu::decode_attention::NewTokens;
use crate::ops::gpu::log_prob as vocabulary;
use webshop_kernels::gpu::launch::{Arg, Launch, Replay, count};

const THREADS: usize = 256;

/// Lanes in the middle of a text.
#[derive(Debug)]
pub struct Stepper<'m> {
    model: &'m DeviceModel,
    cache: &'m mut DeviceCache,
    new: NewTokens,
    /// The token that each lane reads next. `[B]`
    ids: Tensor,
    /// Places in the distributions to draw from. `[B]`
    uniforms: Tensor,
    temperature: f32,
    n_steps: usize,
}

impl DeviceModel {
    /// Begins a text on the first lanes of `cache`, which read `first_ids` next, one each; at temperature 0 every lane
    /// goes on with its most probable token.
    pub fn stepper<'m>(
        &'m self,
        cache: &'m mut DeviceCache,
        first_ids: &[u32],
        temperature: f32,
    ) -> Result<Stepper<'m>, LmError> {
        self.config().check_ids(first_ids)?;
        (0..first_ids.len()).try_for_each(|lane| cache.check(self, lane, 1))?;
        let device = &self.compute().device;
        let runs = (0..first_ids.len()).map(|lane| (lane, cache.len(lane)..cache.len(lane) + 1));
        Ok(Stepper {
            new: NewTokens::new(runs.collect(), device)?,
            ids: self.tensor(first_ids)?,
            uniforms: Tensor::zeros(first_ids.len(), DType::F32, device)?,
            temperature,
            n_steps: 0,
            model: self,
            cache,
        })
    }
}

impl Stepper<'_> {
    /// Sets where the next step draws, a number in [0, 1) for each lane.
    pub fn set_uniforms(&mut self, uniforms: &[f32]) -> Result<(), LmError> {
        let values = Tensor::from_slice(uniforms, uniforms.len(), self.uniforms.device())?;
        Ok(self.uniforms.slice_set(&values, 0, 0)?)
    }

    /// Every lane reads its token and draws the next. Does not wait for the device.
    pub fn step(&mut self) -> Result<(), LmError> {
        for lane in 0..self.new.runs.len() {
            self.cache.check(self.model, lane, 1)?;
        }
        self.enqueue()?;
        self.passed(1);
        Ok(())
    }

    /// Records a step as a graph of the device, which [`replay`](Self::replay) repeats at the price of one launch.
    /// The step is recorded, not made. Fails where there is no GPU.
    pub fn record(&mut self) -> Result<Replay, LmError> {
        let kernels = self.model.kernels().clone();
        let Some(launcher) = kernels.own() else {
            return Err(LmError::Input("only our own kernels can be recorded".to_owned()));
        };
        let mut step = || self.enqueue().map_err(candle_core::Error::wrap);
        Ok(launcher.capture(&mut step)?)
    }

    /// Repeats a recorded step.
    pub fn replay(&mut self, graph: &mut Replay) -> Result<(), LmError> {
        for lane in 0..self.new.runs.len() {
            self.cache.check(self.model, lane, 1)?;
        }
        graph()?;
        self.passed(1);
        Ok(())
    }

    /// Asks the device for a step.
    fn enqueue(&self) -> Result<(), LmError> {
        let (model, kernels) = (self.model, self.model.kernels());
        let hidden = model.hidden(self.cache, &self.ids, &self.new)?;
        let logits = vocabulary::logits(kernels, &hidden, model.weights().head())?;
        vocabulary::draw(kernels, &logits, &self.uniforms, self.temperature, &self.ids)?;
        let positions = &self.new.positions;
        match kernels.own() {
            Some(launcher) => launcher.launch(&Launch {
                kernel: "advance_positions",
                grid: [positions.elem_count().div_ceil(THREADS), 1, 1],
                threads: THREADS,
                args: &[Arg::Out(positions), count(positions.elem_count())],
            })?,
            None => positions.slice_set(&(positions + positions.ones_like()?)?, 0, 0)?,
        }
        Ok(())
    }

    /// The host's own count of what the device holds.
    fn passed(&mut self, n: usize) {
        for (lane, at) in &mut self.new.runs {
            self.cache.advance(*lane, n);
            *at = at.start + n..at.end + n;
        }
        self.n_steps += n;
    }

    /// The tokens drawn last. Waits for the device.
    pub fn ids(&self) -> Result<Vec<u32>, LmError> {
        Ok(self.ids.to_vec1::<u32>()?)
    }

    /// Steps made.
    pub fn n_steps(&self) -> usize {
        self.n_steps
    }
}
