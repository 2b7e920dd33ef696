//! The training pass of the GPU backend: forward over packed sequences, and backward with every gradient
//! written out.
//!
//! The equations are those of [`Pass`](crate::Pass). A pass keeps only the input of each layer, and the
//! backward pass recomputes the layer ("Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174, one
//! segment a layer). Gradients are added to f32 tensors on the device, so that micro-batches accumulate
//! there. Shared prefixes are not supported.

use candle_core::{DType, Tensor};

use crate::error::LmError;
use crate::generation::sampler::Sampler;
use crate::ops::gpu::attention;
use crate::ops::gpu::attention::Sequence;
use crate::ops::gpu::log_prob::Scored;
use crate::ops::gpu::rows::Placement;
use crate::ops::gpu::{linear, log_prob, rms_norm, rope, rows, swiglu};
use crate::qwen2::batch::check_rows;
use crate::qwen2::gpu::parameters::Layer;
use crate::qwen2::gpu::{DeviceModel, Parameters};
use crate::qwen2::{OutputGradients, PackedTokens, TokenStats};

/// A forward pass with the activations that its gradient needs.
#[derive(Debug)]
pub struct DevicePass<'m> {
    model: &'m DeviceModel,
    batch: Batch,
    targets: Targets,
    /// Input of each layer. `[T, hidden]`
    inputs: Vec<Tensor>,
    /// The residual stream at the scored positions, before and after the last norm. `[N, hidden]`
    x: Tensor,
    hidden: Tensor,
    scored: Scored,
}

/// The tokens of a pass and the positions it scores, on the device.
#[derive(Debug)]
struct Batch {
    lengths: Vec<usize>,
    ids: Placement,
    /// Position of each token in its sequence. `[T]`
    places: Tensor,
    scored_rows: Placement,
}

/// The tokens whose log-probabilities a pass computes, one for each scored position, on the device.
#[derive(Debug)]
struct Targets {
    ids: Tensor,
    sampler: Sampler,
}

/// Activations of one layer, computed in both passes and not kept. `[T, ·]`
struct Activations {
    normed: Tensor,
    rotated: Tensor,
    attended: Tensor,
    middle: Tensor,
    normed_middle: Tensor,
    gate_up: Tensor,
    activated: Tensor,
}

impl DeviceModel {
    /// As [`Qwen2::record`](crate::Qwen2::record): log-probability and entropy of `targets[i]` after position
    /// `positions[i]` of the packed tokens under the distribution of `sampler`, with the activations for the
    /// gradient.
    pub fn record(
        &self,
        tokens: &PackedTokens,
        positions: &[u32],
        targets: &[u32],
        sampler: Sampler,
    ) -> Result<DevicePass<'_>, LmError> {
        let mut inputs = Vec::with_capacity(self.config().num_hidden_layers);
        let targets = self.targets(targets, positions.len(), sampler)?;
        let batch = self.batch(tokens, positions)?;
        let (x, hidden) = self.forward(&batch, |x| inputs.push(x.clone()))?;
        let scored = self.log_prob(&hidden, &targets)?;
        Ok(DevicePass { model: self, batch, targets, inputs, x, hidden, scored })
    }

    /// As [`Qwen2::score`](crate::Qwen2::score): the results only, on the host. Waits for the device.
    pub fn score(
        &self,
        tokens: &PackedTokens,
        positions: &[u32],
        targets: &[u32],
        sampler: Sampler,
    ) -> Result<TokenStats, LmError> {
        let targets = self.targets(targets, positions.len(), sampler)?;
        let (_, hidden) = self.forward(&self.batch(tokens, positions)?, |_| ())?;
        to_host(&self.log_prob(&hidden, &targets)?)
    }

    /// As [`Qwen2::hidden_states`](crate::Qwen2::hidden_states), on the host. Waits for the device.
    pub fn hidden_states(&self, tokens: &PackedTokens, positions: &[u32]) -> Result<Vec<f32>, LmError> {
        let (_, hidden) = self.forward(&self.batch(tokens, positions)?, |_| ())?;
        rows_to_host(&hidden)
    }

    fn targets(&self, ids: &[u32], n_positions: usize, sampler: Sampler) -> Result<Targets, LmError> {
        sampler.check_scoring()?;
        if ids.len() != n_positions {
            return Err(LmError::Input(format!("{n_positions} positions with {} targets", ids.len())));
        }
        self.config().check_ids(ids)?;
        Ok(Targets { ids: self.tensor(ids)?, sampler })
    }

    fn batch(&self, tokens: &PackedTokens, positions: &[u32]) -> Result<Batch, LmError> {
        let refuse = |reason: String| Err(LmError::Input(reason));
        tokens.check(self.config())?;
        if !tokens.prefix_of.is_empty() {
            return refuse("the GPU backend does not support shared prefixes".into());
        }
        let limit = self.config().max_position_embeddings;
        if let Some(length) = tokens.lengths.iter().find(|&&length| length > limit) {
            return refuse(format!("a sequence of {length} tokens exceeds the model's {limit} positions"));
        }
        if let Some(position) = positions.iter().find(|&&position| position as usize >= tokens.ids.len()) {
            return refuse(format!("position {position} of {} tokens", tokens.ids.len()));
        }
        let places: Vec<u32> = tokens.lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let device = &self.compute().device;
        Ok(Batch {
            lengths: tokens.lengths.to_vec(),
            ids: Placement::new(tokens.ids, device)?,
            places: self.tensor(&places)?,
            scored_rows: Placement::new(positions, device)?,
        })
    }

    /// The residual stream at the scored positions, before and after the last norm. `[N, hidden]`
    fn forward(&self, batch: &Batch, mut keep: impl FnMut(&Tensor)) -> Result<(Tensor, Tensor), LmError> {
        let (kernels, weights) = (self.kernels(), self.weights());
        let mut x = rows::gather(kernels, weights.embedding(), batch.ids.ids())?; // [T, hidden]
        for idx in 0..self.config().num_hidden_layers {
            keep(&x);
            let layer = weights.layer(idx);
            let activations = self.activations(&layer, &x, batch)?;
            x = (activations.middle + linear::forward(kernels, &activations.activated, layer.down_proj)?)?;
        }
        let x = if batch.scored_rows.ids().elem_count() == 0 {
            x.narrow(0, 0, 0)?
        } else {
            rows::gather(kernels, &x, batch.scored_rows.ids())? // [N, hidden]
        };
        let hidden = if x.elem_count() == 0 {
            x.clone()
        } else {
            rms_norm::forward(kernels, &x, weights.norm(), self.eps())?
        };
        Ok((x, hidden))
    }

    fn log_prob(&self, hidden: &Tensor, targets: &Targets) -> Result<Scored, LmError> {
        let head = (hidden, self.weights().head());
        Ok(log_prob::forward(self.kernels(), head, &targets.ids, targets.sampler)?)
    }

    fn activations(&self, layer: &Layer, x: &Tensor, batch: &Batch) -> Result<Activations, LmError> {
        let (kernels, heads) = (self.kernels(), self.config().heads());
        let normed = rms_norm::forward(kernels, x, layer.input_norm, self.eps())?;
        let qkv = linear::forward(kernels, &normed, layer.qkv)?;
        let rotated = rope::forward(kernels, &qkv, layer.qkv_bias, &batch.places, &self.rope, heads)?;
        let attended = self
            .sequences(&rotated, &batch.lengths)?
            .iter()
            .map(|sequence| attention::forward(kernels, sequence, heads))
            .collect::<candle_core::Result<Vec<_>>>()?;
        let attended = Tensor::cat(&attended, 0)?; // [T, H D]
        let written = linear::forward(kernels, &attended, layer.o_proj)?;
        let (middle, normed_middle) =
            rms_norm::add_forward(kernels, x, &written, layer.post_norm, self.eps())?;
        let gate_up = linear::forward(kernels, &normed_middle, layer.gate_up)?;
        let activated = swiglu::forward(kernels, &gate_up)?;
        Ok(Activations { normed, rotated, attended, middle, normed_middle, gate_up, activated })
    }

    /// Queries, keys and values of each sequence, from rotated rows `q ‖ k ‖ v`.
    fn sequences(&self, rotated: &Tensor, lengths: &[usize]) -> Result<Vec<Sequence>, LmError> {
        let heads = self.config().heads();
        let (n_tokens, kv_heads) = (rotated.dim(0)?, heads.n_kv_heads);
        let by_head = rotated.reshape((n_tokens, heads.n_heads + 2 * kv_heads, heads.head_dim))?;
        let mut start = 0;
        let sequences = lengths.iter().map(|&length| {
            let rows = by_head.narrow(0, start, length)?;
            start += length;
            let keys = |first| rows.narrow(1, first, kv_heads)?.transpose(0, 1)?.contiguous(); // [K, L, D]
            Ok(Sequence {
                q: rows.narrow(1, 0, heads.n_heads)?,
                k: keys(heads.n_heads)?,
                v: keys(heads.n_heads + kv_heads)?,
                first: 0,
            })
        });
        sequences.collect()
    }
}

/// Copies rows to the host as f32. Waits for the device.
fn rows_to_host(rows: &Tensor) -> Result<Vec<f32>, LmError> {
    Ok(rows.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
}

/// Copies the results to the host. Waits for the device.
fn to_host(scored: &Scored) -> Result<TokenStats, LmError> {
    let read = |x: &Tensor| x.to_vec1::<f32>();
    let n_outside = read(&scored.outside)?.into_iter().filter(|is_outside| *is_outside > 0.0).count();
    TokenStats::new(read(&scored.stats.log_prob)?, read(&scored.stats.entropy)?, n_outside)
}

impl DevicePass<'_> {
    /// The results of the forward pass on the host, for computing a loss; [`backward`](Self::backward) takes
    /// its gradient [`TokenStats::d_log_prob`]. Waits for the device.
    pub fn stats(&self) -> Result<TokenStats, LmError> {
        to_host(&self.scored)
    }

    /// log p(target) at each scored position, on the device. `[N]`
    pub fn log_prob(&self) -> &Tensor {
        &self.scored.stats.log_prob
    }

    /// Entropy in nats at each scored position, on the device. `[N]`
    pub fn entropy(&self) -> &Tensor {
        &self.scored.stats.entropy
    }

    /// 1 at each scored position whose target is outside the nucleus, else 0; on the device. `[N]`
    pub fn outside(&self) -> &Tensor {
        &self.scored.outside
    }

    /// As [`Pass::hidden_states`](crate::Pass::hidden_states), on the host. Waits for the device.
    pub fn hidden_states(&self, rows: &[u32]) -> Result<Vec<f32>, LmError> {
        check_rows(rows, self.n_scored())?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.model.tensor(rows)?;
        rows_to_host(&rows::gather(self.model.kernels(), &self.hidden, &rows)?)
    }

    fn n_scored(&self) -> usize {
        self.targets.ids.elem_count()
    }

    /// Adds to `gradients` those of a loss with the gradient `d_log_prob` with respect to the
    /// log-probabilities.
    pub fn backward(&self, d_log_prob: &[f32], gradients: &Parameters) -> Result<(), LmError> {
        self.backward_from(&d_log_prob.to_vec().into(), gradients)
    }

    /// As [`backward`](Self::backward), from the gradient of the loss with respect to the outputs.
    pub fn backward_from(&self, outputs: &OutputGradients, gradients: &Parameters) -> Result<(), LmError> {
        let model = self.model;
        let (kernels, weights, device) = (model.kernels(), model.weights(), &model.compute().device);
        outputs.check(self.n_scored(), model.config().hidden_size)?;
        if self.n_scored() == 0 {
            return Ok(());
        }
        let d_hidden = self.d_hidden(outputs, gradients)?;
        let around = (&d_hidden, &self.x.zeros_like()?);
        let d_rows =
            rms_norm::backward(kernels, &self.x, weights.norm(), model.eps(), around, gradients.norm())?;
        let n_tokens: usize = self.batch.lengths.iter().sum();
        let sums = Tensor::zeros((n_tokens, model.config().hidden_size), DType::F32, device)?;
        rows::scatter(kernels, &d_rows, &self.batch.scored_rows, &sums)?;
        let mut d_x = sums.to_dtype(self.x.dtype())?; // [T, hidden]
        for (idx, x) in self.inputs.iter().enumerate().rev() {
            d_x = self.layer_backward(&weights.layer(idx), &gradients.layer(idx), x, &d_x)?;
        }
        Ok(rows::scatter(kernels, &d_x, &self.batch.ids, gradients.embedding())?)
    }

    /// The gradient of the final hidden states; adds that of the head. `[N, hidden]`
    fn d_hidden(&self, outputs: &OutputGradients, gradients: &Parameters) -> Result<Tensor, LmError> {
        let model = self.model;
        let (kernels, weights, device) = (model.kernels(), model.weights(), &model.compute().device);
        let d_log_prob = Tensor::from_slice(&outputs.d_log_prob, self.n_scored(), device)?;
        let head = (&self.hidden, weights.head());
        let (targets, d_head) = (&self.targets.ids, gradients.head());
        let d_hidden = log_prob::backward(kernels, head, targets, &self.scored, &d_log_prob, d_head)?;
        let Some(more) = outputs.d_hidden.as_ref().filter(|more| !more.rows.is_empty()) else {
            return Ok(d_hidden);
        };
        let dtype = d_hidden.dtype();
        let rows = Tensor::from_slice(&more.values, (more.rows.len(), d_hidden.dim(1)?), device)?;
        let sums = d_hidden.to_dtype(DType::F32)?;
        rows::scatter(kernels, &rows.to_dtype(dtype)?, &Placement::new(&more.rows, device)?, &sums)?;
        Ok(sums.to_dtype(dtype)?)
    }

    /// The gradient of a layer's input from that of its output; recomputes the layer. `[T, hidden]`
    fn layer_backward(
        &self,
        layer: &Layer,
        gradients: &Layer,
        x: &Tensor,
        d_y: &Tensor,
    ) -> Result<Tensor, LmError> {
        let (model, kernels) = (self.model, self.model.kernels());
        let (heads, eps) = (model.config().heads(), model.eps());
        let a = model.activations(layer, x, &self.batch)?;
        let d_activated = linear::backward(kernels, &a.activated, layer.down_proj, d_y, gradients.down_proj)?;
        let d_gate_up = swiglu::backward(kernels, &a.gate_up, &d_activated)?;
        let d_normed =
            linear::backward(kernels, &a.normed_middle, layer.gate_up, &d_gate_up, gradients.gate_up)?;
        let around = (&d_normed, d_y);
        let d_middle =
            rms_norm::backward(kernels, &a.middle, layer.post_norm, eps, around, gradients.post_norm)?;
        let d_attended = linear::backward(kernels, &a.attended, layer.o_proj, &d_middle, gradients.o_proj)?;
        let d_rotated = self.attention_backward(&a.rotated, &d_attended)?;
        let d_qkv = rope::backward(kernels, &d_rotated, &self.batch.places, &model.rope, heads)?;
        linear::bias_backward(kernels, &d_qkv, gradients.qkv_bias)?;
        let d_normed = linear::backward(kernels, &a.normed, layer.qkv, &d_qkv, gradients.qkv)?;
        let around = (&d_normed, &d_middle);
        Ok(rms_norm::backward(kernels, x, layer.input_norm, eps, around, gradients.input_norm)?)
    }

    /// `[T, H D]` → `[T, (H + 2K) D]`
    fn attention_backward(&self, rotated: &Tensor, d_attended: &Tensor) -> Result<Tensor, LmError> {
        let (model, heads) = (self.model, self.model.config().heads());
        let d_attended = d_attended.reshape((rotated.dim(0)?, heads.n_heads, heads.head_dim))?;
        let mut start = 0;
        let mut parts = Vec::new();
        for (sequence, &length) in
            model.sequences(rotated, &self.batch.lengths)?.iter().zip(&self.batch.lengths)
        {
            let d_out = d_attended.narrow(0, start, length)?;
            start += length;
            let (d_q, d_k, d_v) = attention::backward(model.kernels(), sequence, heads, &d_out)?;
            let kv_width = heads.n_kv_heads * heads.head_dim;
            let by_row = |x: Tensor| x.transpose(0, 1)?.contiguous()?.reshape((length, kv_width));
            parts.push(Tensor::cat(&[d_q, by_row(d_k)?, by_row(d_v)?], 1)?);
        }
        Ok(Tensor::cat(&parts, 0)?)
    }
}
