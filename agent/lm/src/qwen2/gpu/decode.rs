//! Incremental decoding on a device: new tokens into a cache, logits or samples out.

use std::ops::Range;

use candle_core::Tensor;

use crate::error::LmError;
use crate::generation::sampler::Draw;
use crate::ops::gpu::decode_attention;
use crate::ops::gpu::decode_attention::NewTokens;
use crate::ops::gpu::{linear, log_prob, rms_norm, rows, swiglu};
use crate::qwen2::gpu::step::{Row, Steps, rounded};
use crate::qwen2::gpu::{DeviceCache, DeviceModel};
use crate::qwen2::{LaneTokens, Logits, batch as lanes};
use webshop_kernels::gpu::launch::Launcher;

/// Most tokens that go through the layers together, which bounds the memory for activations.
pub(super) const TOKENS_AT_ONCE: usize = 16_384;

/// New tokens of one chunk.
#[derive(Debug, Default)]
struct Chunk {
    ids: Vec<u32>,
    runs: Vec<(usize, Range<usize>)>,
    /// (index in the call, row in this chunk) of the lanes whose last token is in this chunk.
    ends: Vec<(usize, u32)>,
}

impl DeviceModel {
    /// As [`Decoder::decode`](crate::Decoder::decode): appends the new tokens of each lane to the cache and
    /// returns the logits after each lane's last token, in the order of `lanes`. Waits for the device.
    ///
    /// Fails if a lane is given twice or without tokens, an id is outside the vocabulary, or a lane has no
    /// room; the cache is then unchanged.
    pub fn decode(&self, cache: &mut DeviceCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        let logits = self.read(cache, lanes)?;
        let values = logits.flatten_all()?.to_vec1::<f32>()?;
        Ok(Logits::new(values, self.config().vocab_size))
    }

    /// As [`decode`](Self::decode), but the logits stay on the device, until the next call. `[lanes, V]`, f32
    fn read(&self, cache: &mut DeviceCache, lanes: &[LaneTokens]) -> Result<Tensor, LmError> {
        self.read_by(cache, lanes, TOKENS_AT_ONCE)
    }

    /// As [`decode`](Self::decode), but samples a token for each lane on the device from softmax(logits /
    /// temperature), the most probable one at temperature 0. `uniforms[i]` in [0, 1) is the random number of
    /// `lanes[i]`.
    ///
    /// Fails if a logit is not finite.
    pub fn draw(
        &self,
        cache: &mut DeviceCache,
        lanes: &[LaneTokens],
        uniforms: &[f32],
        temperature: f32,
    ) -> Result<Vec<Draw>, LmError> {
        let logits = self.read(cache, lanes)?;
        let n = lanes.len();
        let uniforms = Tensor::from_slice(uniforms, n, &self.compute().device)?;
        let ids = self.tensor(&vec![0; n])?;
        let draws = log_prob::draw(self.kernels(), &logits, &uniforms, temperature, &ids)?;
        let (ids, log_probs) = (draws.ids.to_vec1::<u32>()?, draws.log_prob.to_vec1::<f32>()?);
        let entropies = draws.entropy.to_vec1::<f32>()?;
        if let Some(lane) = log_probs.iter().position(|log_prob| log_prob.is_nan()) {
            let lane = lanes[lane].lane;
            return Err(LmError::Sampling(format!("a logit of lane `{lane}` is not finite")));
        }
        let drawn = ids.into_iter().zip(log_probs).zip(entropies);
        Ok(drawn.map(|((id, log_prob), entropy)| Draw { id, log_prob, entropy }).collect())
    }

    pub(super) fn read_by(
        &self,
        cache: &mut DeviceCache,
        lanes: &[LaneTokens],
        tokens_at_once: usize,
    ) -> Result<Tensor, LmError> {
        if lanes.is_empty() {
            return Err(LmError::Input("no lanes are given".to_owned()));
        }
        lanes::check(self.config(), lanes, cache.lanes(), |lane, n_new| cache.check(self, lane, n_new))?;
        let logits = match self.step(cache, lanes)? {
            Some(logits) => logits,
            None => self.read_chunks(cache, lanes, tokens_at_once)?,
        };
        lanes.iter().for_each(|lane| cache.advance(lane.lane, lane.ids.len()));
        Ok(logits)
    }

    /// The logits of lanes with any number of tokens, at most `tokens_at_once` of which go through the layers together.
    fn read_chunks(
        &self,
        cache: &DeviceCache,
        lanes: &[LaneTokens],
        tokens_at_once: usize,
    ) -> Result<Tensor, LmError> {
        let (mut last, mut order) = (Vec::new(), Vec::new());
        for chunk in chunks(cache, lanes, tokens_at_once) {
            let new = NewTokens::new(chunk.runs, &self.compute().device)?;
            let hidden = self.hidden(cache, &self.tensor(&chunk.ids)?, &new)?; // [M, hidden]
            let rows: Vec<u32> = chunk.ends.iter().map(|(_, row)| *row).collect();
            order.extend(chunk.ends.iter().map(|(place, _)| *place));
            if rows.len() == chunk.ids.len() {
                last.push(hidden);
            } else if !rows.is_empty() {
                last.push(rows::gather(self.kernels(), &hidden, &self.tensor(&rows)?)?);
            }
        }
        debug_assert!(order.is_sorted(), "chunks keep the order of the lanes");
        let last = if last.len() == 1 { last.remove(0) } else { Tensor::cat(&last, 0)? };
        Ok(log_prob::logits(self.kernels(), &last, self.weights().head())?)
    }

    /// Appends one new token to each of `lanes` and returns their logits, which the next step overwrites. `[lanes, V]`
    ///
    /// `None`, with the cache unchanged, if a lane has more than one new token, the added rows have no free slots, or an
    /// operation has no kernel for the sizes of the model.
    fn step(&self, cache: &mut DeviceCache, lanes: &[LaneTokens]) -> Result<Option<Tensor>, LmError> {
        let (Some(launcher), Some(rows)) = (self.step_launcher(), padded(cache, lanes)) else {
            return Ok(None);
        };
        let embedding = self.weights().embedding();
        let mut steps = match cache.steps.take().filter(|steps| steps.is_of(embedding)) {
            Some(steps) => steps,
            None => Steps::new(embedding, cache.lanes())?,
        };
        let recorder = self.compute().records().then_some(launcher);
        let logits = steps.run(&rows, recorder, |ids, new, logits| {
            let hidden = self.hidden(cache, ids, new)?;
            log_prob::logits_into(self.kernels(), &hidden, self.weights().head(), logits)
        })?;
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

    /// Appends keys and values of new tokens and returns their rows after the last norm. `[M, hidden]`
    pub(super) fn hidden(
        &self,
        cache: &DeviceCache,
        ids: &Tensor,
        new: &NewTokens,
    ) -> candle_core::Result<Tensor> {
        let (kernels, weights, heads) = (self.kernels(), self.weights(), self.config().heads());
        let mut x = rows::gather(kernels, weights.embedding(), ids)?;
        let mut normed = rms_norm::forward(kernels, &x, weights.layer(0).input_norm, self.eps())?;
        for (idx, of_layer) in cache.layers.iter().enumerate() {
            let layer = weights.layer(idx);
            let qkv = linear::forward(kernels, &normed, layer.qkv)?;
            let q =
                decode_attention::append(kernels, &qkv, layer.qkv_bias, new, &self.rope, heads, of_layer)?;
            let attended = decode_attention::attend(kernels, &q, new, heads, of_layer)?;
            let written = linear::forward(kernels, &attended, layer.o_proj)?;
            (x, normed) = rms_norm::add_forward(kernels, &x, &written, layer.post_norm, self.eps())?;
            let gate_up = linear::forward(kernels, &normed, layer.gate_up)?;
            let written = linear::forward(kernels, &swiglu::forward(kernels, &gate_up)?, layer.down_proj)?;
            let is_last = idx + 1 == cache.layers.len();
            let gain = if is_last { weights.norm() } else { weights.layer(idx + 1).input_norm };
            (x, normed) = rms_norm::add_forward(kernels, &x, &written, gain, self.eps())?;
        }
        Ok(normed)
    }
}

/// The rows of a step, with those that are added to it; `None` if a lane has not one new token or there are too few free slots.
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

/// Divides the new tokens of the lanes, in their order, into chunks of at most `limit` tokens.
fn chunks(cache: &DeviceCache, lanes: &[LaneTokens], limit: usize) -> Vec<Chunk> {
    let mut chunks = vec![Chunk::default()];
    for (place, tokens) in lanes.iter().enumerate() {
        let (mut rest, mut position) = (tokens.ids, cache.len(tokens.lane));
        while !rest.is_empty() {
            if chunks.last().is_some_and(|chunk| chunk.ids.len() == limit) {
                chunks.push(Chunk::default());
            }
            let chunk = chunks.last_mut().expect("there is one from the start");
            let (now, later) = rest.split_at(rest.len().min(limit - chunk.ids.len()));
            chunk.ids.extend(now);
            chunk.runs.push((tokens.lane, position..position + now.len()));
            if later.is_empty() {
                chunk.ends.push((place, chunk.ids.len() as u32 - 1));
            }
            position += now.len();
            rest = later;
        }
    }
    chunks
}
