//! Inputs and outputs of a model's passes, on both backends.
//!
//! A training pass reads [`PackedTokens`] and returns [`TokenStats`]; a generation step reads [`LaneTokens`]
//! and returns [`Logits`].

use candle_core::{Device, Tensor, Var};
use rayon::prelude::*;

use crate::error::LmError;
use crate::qwen2::config::Qwen2Config;

/// Token sequences concatenated without padding; positions start at 0 in each.
#[derive(Clone, Copy, Debug)]
pub struct PackedTokens<'a> {
    /// All tokens. `[T]`
    pub ids: &'a [u32],
    /// Number of tokens of each sequence, at least 1; the sum is T.
    pub lengths: &'a [usize],
    /// `prefix_of[i]`: index of an earlier sequence whose tokens sequence `i` also attends to (a shared
    /// prompt), or `None`. A prefix sequence has no prefix itself. An empty slice means no sharing; the GPU
    /// backend supports only that.
    pub prefix_of: &'a [Option<usize>],
}

impl PackedTokens<'_> {
    /// Fails if lengths, prefixes or ids are not valid for a model of this shape.
    pub(super) fn check(&self, config: &Qwen2Config) -> Result<(), LmError> {
        let (n_sequences, prefix_of) = (self.lengths.len(), self.prefix_of);
        let total: usize = self.lengths.iter().sum();
        if total != self.ids.len() || self.lengths.contains(&0) {
            return Err(LmError::Input(format!("{} ids in sequences of {:?}", self.ids.len(), self.lengths)));
        }
        let is_prefix = |prefix: usize, at: usize| prefix < at && prefix_of[prefix].is_none();
        let fits = |(at, prefix): (usize, &Option<usize>)| prefix.is_none_or(|prefix| is_prefix(prefix, at));
        if !(prefix_of.is_empty() || prefix_of.len() == n_sequences)
            || !prefix_of.iter().enumerate().all(fits)
        {
            return Err(LmError::Input(format!("{n_sequences} sequences with the prefixes {prefix_of:?}")));
        }
        config.check_ids(self.ids)
    }
}

/// Statistics of target tokens under a model.
#[derive(Clone, Debug)]
pub struct TokenStats {
    /// log p(target) at each scored position, in nats. `[N]`
    pub log_prob: Tensor,
    /// Entropy of the distribution at each scored position, in nats. `[N]`
    pub entropy: Vec<f32>,
    /// Number of targets outside the sampler's nucleus; each is added to its own nucleus.
    pub n_outside: usize,
}

impl TokenStats {
    /// Makes the log-probabilities a variable, so that a loss computed from them has a gradient there.
    pub(crate) fn new(log_prob: Vec<f32>, entropy: Vec<f32>, n_outside: usize) -> Result<Self, LmError> {
        let n = log_prob.len();
        let log_prob = Var::from_vec(log_prob, n, &Device::Cpu)?.into_inner();
        Ok(Self { log_prob, entropy, n_outside })
    }

    /// The gradient of the scalar `loss` with respect to each log-probability; zeros if it does not depend on
    /// them. `[N]`
    pub fn d_log_prob(&self, loss: &Tensor) -> Result<Vec<f32>, LmError> {
        Ok(match loss.backward()?.remove(&self.log_prob) {
            Some(gradient) => gradient.to_vec1::<f32>()?,
            None => vec![0.0; self.entropy.len()],
        })
    }
}

/// The gradient of a loss with respect to the outputs of a recorded pass.
#[derive(Clone, Debug)]
pub struct OutputGradients {
    /// With respect to each log-probability. `[N]`
    pub d_log_prob: Vec<f32>,
    /// With respect to final hidden states; `None` for a loss of the log-probabilities alone.
    pub d_hidden: Option<HiddenGradient>,
}

/// The gradient of a loss with respect to final hidden states at scored positions.
#[derive(Clone, Debug)]
pub struct HiddenGradient {
    /// Numbers of scored positions, 0..N. The gradients of a position that is named twice are added.
    pub rows: Vec<u32>,
    /// One row for each, concatenated. `[R, hidden]`
    pub values: Vec<f32>,
}

impl OutputGradients {
    /// Fails unless the sizes are those of a pass with `n_scored` positions over hidden states of this width.
    pub(super) fn check(&self, n_scored: usize, width: usize) -> Result<(), LmError> {
        let n_given = self.d_log_prob.len();
        if n_given != n_scored {
            return Err(LmError::Input(format!("{n_given} gradients for {n_scored} targets")));
        }
        let Some(HiddenGradient { rows, values }) = &self.d_hidden else { return Ok(()) };
        if values.len() != rows.len() * width {
            let (n_values, n_rows) = (values.len(), rows.len());
            let reason = format!("{n_values} gradients for {n_rows} hidden states of width {width}");
            return Err(LmError::Input(reason));
        }
        check_rows(rows, n_scored)
    }
}

impl From<Vec<f32>> for OutputGradients {
    /// The gradient of a loss of the log-probabilities alone.
    fn from(d_log_prob: Vec<f32>) -> Self {
        Self { d_log_prob, d_hidden: None }
    }
}

/// Fails if one of `rows` is not the number of a scored position.
pub(super) fn check_rows(rows: &[u32], n_scored: usize) -> Result<(), LmError> {
    match rows.iter().find(|&&row| row as usize >= n_scored) {
        Some(row) => Err(LmError::Input(format!("hidden state {row} of {n_scored} scored positions"))),
        None => Ok(()),
    }
}

/// New tokens of one lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneTokens<'a> {
    /// The lane of the cache.
    pub lane: usize,
    /// The tokens to append, at least one.
    pub ids: &'a [u32],
}

/// Unnormalized log-probabilities of all tokens, one row for each lane, or for each new token.
#[derive(Clone, Debug, PartialEq)]
pub struct Logits {
    values: Vec<f32>,
    vocab_size: usize,
}

impl Logits {
    /// Rows of `vocab_size` values, concatenated.
    pub(crate) fn new(values: Vec<f32>, vocab_size: usize) -> Self {
        Self { values, vocab_size }
    }

    /// The row of the `i`-th lane or token of the call. `[V]`
    ///
    /// # Panics
    /// If `i` is not less than the number of rows.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.vocab_size..(i + 1) * self.vocab_size]
    }

    /// As [`rows`](Self::rows), as a parallel iterator.
    pub(crate) fn par_rows(&self) -> impl IndexedParallelIterator<Item = &[f32]> {
        self.values.par_chunks_exact(self.vocab_size)
    }

    /// The rows in the order of the lanes or tokens of the call.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.vocab_size)
    }
}

/// Fails if a lane is given twice or without tokens, if an id is outside the vocabulary, or if `fits(lane,
/// n_new)` fails, which must check that the lane is less than `n_lanes`.
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
            return refuse(format!("lane {lane} has no new tokens"));
        }
        config.check_ids(ids)?;
    }
    Ok(())
}
