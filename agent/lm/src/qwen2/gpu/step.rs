//! Decoding steps of one new token in each of some lanes, recorded once and replayed.
//!
//! A step launches some ten kernels and products a layer, which can take longer than their work. [`Steps`] records a step through
//! [`Launcher::record`] (on a GPU a CUDA graph) and replays it with one call of the driver. A recording has fixed addresses and a
//! fixed number of rows. So ids, lanes and positions are read from a buffer that is written before each replay, and numbers of
//! rows are rounded up to a few. The rows that are added write to the free slot behind the last token of lanes that are not part
//! of the step, and nothing reads what they compute.
//!
//! An eager step ([`Compute::eager`](crate::device::Compute::eager)) is the same without a recording, so that both have the same bits.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor, TensorId};

use crate::error::LmError;
use crate::ops::gpu::decode_attention;
use crate::ops::gpu::decode_attention::NewTokens;
use crate::ops::gpu::log_prob;
use crate::qwen2::LaneTokens;
use crate::qwen2::gpu::{DeviceCache, DeviceModel};
use webshop_kernels::gpu::launch::{Launcher, Recording};

/// The steps of one cache: their buffers and recordings.
#[derive(Debug)]
pub(super) struct Steps {
    /// The embedding of the recorded weights, which identifies them.
    weights: TensorId,
    /// Ids, lanes and positions of the rows of a step, one after the other. `[3 lanes]`, u32
    inputs: Tensor,
    /// `[lanes, V]`, f32
    logits: Tensor,
    /// By number of rows.
    recordings: BTreeMap<usize, Box<dyn Recording>>,
}

/// One new token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    id: u32,
    lane: usize,
    position: usize,
}

impl DeviceModel {
    /// Appends one new token to each of `lanes` and returns their logits, which the next step overwrites. `[lanes, V]`
    ///
    /// `None`, with the cache unchanged, if a lane has more than one new token, the added rows have no free slots, or an
    /// operation has no kernel for the sizes of the model.
    pub(super) fn step(
        &self,
        cache: &mut DeviceCache,
        lanes: &[LaneTokens],
    ) -> Result<Option<Tensor>, LmError> {
        let (Some(launcher), Some(rows)) = (self.step_launcher(), padded(cache, lanes)) else {
            return Ok(None);
        };
        let weights = self.weights().embedding().id();
        let mut steps = match cache.steps.take().filter(|steps| steps.weights == weights) {
            Some(steps) => steps,
            None => Steps::new(self, cache.lanes())?,
        };
        let logits = steps.run(self, launcher, cache, &rows)?;
        cache.steps = Some(steps);
        Ok(Some(logits.narrow(0, 0, lanes.len())?))
    }

    /// The launcher, if all operations of a step have kernels for the sizes of the model.
    fn step_launcher(&self) -> Option<&dyn Launcher> {
        let (config, dtype) = (self.config(), self.compute().dtype().dtype());
        let widths = [config.hidden_size, config.intermediate_size];
        let launcher = self.kernels().launcher_for_widths(dtype, &widths)?;
        decode_attention::has_kernel(self.kernels(), dtype, config.heads()).then_some(launcher)
    }
}

/// The number of rows with which a step of `n` rows is recorded, if there are that many lanes.
fn rounded(n: usize) -> usize {
    if n <= 8 { n.next_power_of_two() } else { n.next_multiple_of(8) }
}

/// The rows of a step, with those that are added; `None` if a lane has not one new token or there are too few free slots.
fn padded(cache: &DeviceCache, lanes: &[LaneTokens]) -> Option<Vec<Row>> {
    let row = |id, lane| Row { id, lane, position: cache.len(lane) };
    let mut is_free: Vec<bool> = (0..cache.lanes()).map(|lane| cache.len(lane) < cache.capacity()).collect();
    let mut rows = Vec::with_capacity(rounded(lanes.len()));
    for LaneTokens { lane, ids } in lanes {
        let [id] = **ids else { return None };
        rows.push(row(id, *lane));
        is_free[*lane] = false;
    }
    let n_rows = rounded(rows.len()).min(cache.lanes());
    let free = is_free.iter().enumerate().filter(|(_, is_free)| **is_free).map(|(lane, _)| row(0, lane));
    rows.extend(free.take(n_rows - lanes.len()));
    (rows.len() == n_rows).then_some(rows)
}

impl Steps {
    fn new(model: &DeviceModel, n_lanes: usize) -> Result<Self, LmError> {
        let device = model.compute().device();
        Ok(Self {
            weights: model.weights().embedding().id(),
            inputs: Tensor::zeros(3 * n_lanes, DType::U32, device)?,
            logits: Tensor::zeros((n_lanes, model.config().vocab_size), DType::F32, device)?,
            recordings: BTreeMap::new(),
        })
    }

    /// The numbers of rows that are recorded, in increasing order.
    #[cfg(test)]
    pub(super) fn recorded_rows(&self) -> impl Iterator<Item = usize> {
        self.recordings.keys().copied()
    }

    /// The logits after `rows`, which are appended to `cache`. `[rows, V]`
    fn run(
        &mut self,
        model: &DeviceModel,
        launcher: &dyn Launcher,
        cache: &DeviceCache,
        rows: &[Row],
    ) -> Result<Tensor, LmError> {
        let n = rows.len();
        let columns = [|row: &Row| row.id, |row: &Row| row.lane as u32, |row: &Row| row.position as u32];
        let inputs: Vec<u32> = columns.iter().flat_map(|column| rows.iter().map(column)).collect();
        self.inputs.slice_set(&model.tensor(&inputs)?, 0, 0)?;
        let logits = self.logits.narrow(0, 0, n)?;
        if let Some(recording) = self.recordings.get(&n) {
            recording.replay()?;
            return Ok(logits);
        }
        let part = |column: usize| self.inputs.narrow(0, column * n, n);
        let runs = rows.iter().map(|row| (row.lane, row.position..row.position + 1)).collect();
        let (ids, new) = (part(0)?, NewTokens { runs, lanes: part(1)?, positions: part(2)? });
        let work = || {
            let hidden = model.hidden(cache, &ids, &new)?;
            log_prob::logits_into(model.kernels(), &hidden, model.weights().head(), &logits)
        };
        // Before it is recorded it is executed: cuBLAS may prepare itself only outside of a recording.
        work()?;
        if model.compute().records() {
            self.recordings.insert(n, launcher.record(&work)?);
        }
        Ok(logits)
    }
}
