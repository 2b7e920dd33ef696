//! What a cached pass reads and answers, on either engine.

use rayon::prelude::*;

use crate::qwen2::Qwen2Config;
use crate::error::LmError;

/// New tokens for one lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneTokens<'a> {
    /// Which lane of the cache.
    pub lane: usize,
    /// What it reads next, at least one token.
    pub ids: &'a [u32],
}

/// Scores of every token of the vocabulary, a row for each lane, before softmax.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    vocab_size: usize,
}

impl Logits {
    /// Rows of `vocab_size` scores, laid end to end.
    pub(super) fn new(values: Vec<f32>, vocab_size: usize) -> Self {
        Self { values, vocab_size }
    }

    /// The row of the `i`-th lane of the call. `[V]`
    ///
    /// # Panics
    /// If there were not that many lanes.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.vocab_size..(i + 1) * self.vocab_size]
    }

    /// [`rows`](Self::rows) for several threads.
    pub(crate) fn par_rows(&self) -> impl IndexedParallelIterator<Item = &[f32]> {
        self.values.par_chunks_exact(self.vocab_size)
    }

    /// The rows in the order of the lanes of the call.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.vocab_size)
    }
}

/// Refuses lanes that are given twice or without tokens, ids outside of the vocabulary, and first what `fits` refuses of a
/// lane, which must be one of `n_lanes`, and its number of new tokens.
pub(super) fn check(
    config: &Qwen2Config,
    lanes: &[LaneTokens],
    n_lanes: usize,
    fits: impl Fn(usize, usize) -> Result<(), LmError>,
) -> Result<(), LmError> {
    let refuse = |reason: String| Err(LmError::Input(reason));
    let mut seen = vec![false; n_lanes];
    for &LaneTokens { lane, ids } in lanes {
        fits(lane, ids.len())?;
        if std::mem::replace(&mut seen[lane], true) {
            return refuse(format!("lane {lane} is given twice"));
        }
        if ids.is_empty() {
            return refuse(format!("lane {lane} is given no tokens"));
        }
        config.check_ids(ids)?;
    }
    Ok(())
}
