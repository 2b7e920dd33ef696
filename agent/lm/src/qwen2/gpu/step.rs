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
use crate::ops::gpu::decode_attention::NewTokens;
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
pub(super) struct Row {
    pub(super) id: u32,
    pub(super) lane: usize,
    pub(super) position: usize,
}

/// The number of rows with which a step of `n` rows is recorded, if there are that many lanes.
pub(super) fn rounded(n: usize) -> usize {
    if n <= 8 { n.next_power_of_two() } else { n.next_multiple_of(8) }
}

impl Steps {
    /// No steps yet, for models with the embedding `[V, hidden]` and a cache of `n_lanes` lanes.
    pub(super) fn new(embedding: &Tensor, n_lanes: usize) -> Result<Self, LmError> {
        let (vocab_size, device) = (embedding.dim(0)?, embedding.device());
        Ok(Self {
            weights: embedding.id(),
            inputs: Tensor::zeros(3 * n_lanes, DType::U32, device)?,
            logits: Tensor::zeros((n_lanes, vocab_size), DType::F32, device)?,
            recordings: BTreeMap::new(),
        })
    }

    /// Whether they are those of the weights with this embedding.
    pub(super) fn is_of(&self, embedding: &Tensor) -> bool {
        self.weights == embedding.id()
    }

    /// The numbers of rows that are recorded, in increasing order.
    #[cfg(test)]
    pub(super) fn recorded_rows(&self) -> impl Iterator<Item = usize> {
        self.recordings.keys().copied()
    }

    /// The logits after `rows`, which the next call overwrites. `[rows, V]`
    ///
    /// `work` computes them from ids and rows on the device and writes them to its last argument. It is recorded by `recorder`,
    /// if there is one.
    pub(super) fn run(
        &mut self,
        rows: &[Row],
        recorder: Option<&dyn Launcher>,
        work: impl Fn(&Tensor, &NewTokens, &Tensor) -> candle_core::Result<()>,
    ) -> Result<Tensor, LmError> {
        let n = rows.len();
        let columns = [|row: &Row| row.id, |row: &Row| row.lane as u32, |row: &Row| row.position as u32];
        let inputs: Vec<u32> = columns.iter().flat_map(|column| rows.iter().map(column)).collect();
        self.inputs.slice_set(&Tensor::from_vec(inputs, 3 * n, self.inputs.device())?, 0, 0)?;
        let logits = self.logits.narrow(0, 0, n)?;
        if let Some(recording) = self.recordings.get(&n) {
            recording.replay()?;
            return Ok(logits);
        }
        let part = |column: usize| self.inputs.narrow(0, column * n, n);
        let runs = rows.iter().map(|row| (row.lane, row.position..row.position + 1)).collect();
        let (ids, new) = (part(0)?, NewTokens { runs, lanes: part(1)?, positions: part(2)? });
        let work = || work(&ids, &new, &logits);
        // Before it is recorded it is executed: cuBLAS may prepare itself only outside of a recording.
        work()?;
        if let Some(recorder) = recorder {
            self.recordings.insert(n, recorder.record(&work)?);
        }
        Ok(logits)
    }
}
