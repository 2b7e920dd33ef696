//! The training pass of the CPU backend: forward over packed sequences, and backward with every gradient
//! written out.
//!
//! [`Qwen2::record`] runs the model and keeps the activations in a [`Pass`]. The caller computes a loss from
//! [`Pass::stats`] with candle; [`Pass::backward`] returns its gradient for each learnable parameter.
//! [`Qwen2::score`] and [`Qwen2::hidden_states`] run the same forward pass without keeping activations.
//!
//! Only the scored positions go through the last feed-forward block and the head. Weights with the same input
//! (q, k, v; gate, up) are multiplied as one matrix. With [`Qwen2::recomputing`], a pass keeps only the
//! inputs of the layers and recomputes the rest.

use candle_core::Tensor;

use crate::error::LmError;
use crate::generation::sampler::Sampler;
use crate::ops::cpu::attention::Attended;
use crate::ops::cpu::linear::Onto;
use crate::ops::cpu::log_prob::Scores;
use crate::ops::cpu::{attention, gather, linear, log_prob, rms_norm, swiglu};
use crate::qwen2::Qwen2;
use crate::qwen2::batch::{HiddenGradient, OutputGradients, PackedTokens, TokenStats, check_rows};
use webshop_kernels::cpu::attention::Sequences;
use webshop_kernels::cpu::rows::RowStats;

const QKV_WEIGHTS: [&str; 3] =
    ["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"];
const QKV_BIASES: [&str; 3] = ["self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"];
const EMBEDDING: &str = "model.embed_tokens.weight";
const GATE_UP_WEIGHTS: [&str; 2] = ["mlp.gate_proj.weight", "mlp.up_proj.weight"];

/// A forward pass with the activations that its gradient needs.
#[derive(Debug)]
pub struct Pass<'m> {
    model: &'m Qwen2,
    ids: Vec<u32>,
    lengths: Vec<usize>,
    prefix_of: Vec<Option<usize>>,
    positions: Vec<u32>,
    targets: Vec<u32>,
    sampler: Sampler,
    layers: Vec<Kept>,
    end: End,
    row_stats: Vec<RowStats>,
    stats: TokenStats,
}

/// The kept activations of a layer: all, or only its input.
#[derive(Debug)]
enum Kept {
    All(Layer),
    Input(Tensor),
}

/// Activations of one layer. From `attended_rows` on, the last layer has rows for the scored positions only;
/// the other layers have rows for all tokens.
#[derive(Debug)]
pub(in crate::qwen2) struct Layer {
    x: Tensor,
    normed: Tensor,
    qkv: Tensor,
    attended: Attended,
    attended_rows: Tensor,
    middle: Tensor,
    normed_middle: Tensor,
    gate_up: Tensor,
    activated: Tensor,
}

/// The residual stream at the scored positions, before and after the last norm. `[N, hidden]`
#[derive(Debug)]
pub(in crate::qwen2) struct End {
    x: Tensor,
    pub(in crate::qwen2) hidden: Tensor,
}

impl Qwen2 {
    /// Log-probability and entropy of `targets[i]` as the token after position `positions[i]` of the packed
    /// tokens, under the distribution of `sampler`. A target outside the nucleus is added to it.
    ///
    /// Targets are not shifted: the target of a position is usually the token at the next position. The
    /// result of a position depends only on the tokens up to it in its own sequence and prefix. Fails at
    /// temperature 0.
    pub fn score(
        &self,
        tokens: &PackedTokens,
        positions: &[u32],
        targets: &[u32],
        sampler: Sampler,
    ) -> Result<TokenStats, LmError> {
        sampler.check_scoring()?;
        let end = self.run(tokens, positions, |_| ())?;
        let head = self.parameter(self.head_name());
        token_stats(&log_prob::forward(&end.hidden, &head, targets, sampler)?)
    }

    /// The final hidden states, after the last norm, at `positions` of the packed tokens, concatenated.
    /// `[N, hidden]`
    pub fn hidden_states(&self, tokens: &PackedTokens, positions: &[u32]) -> Result<Vec<f32>, LmError> {
        Ok(self.run(tokens, positions, |_| ())?.hidden.flatten_all()?.to_vec1()?)
    }

    /// As [`score`](Self::score), keeping the activations for [`Pass::backward`].
    pub fn record(
        &self,
        tokens: &PackedTokens,
        positions: &[u32],
        targets: &[u32],
        sampler: Sampler,
    ) -> Result<Pass<'_>, LmError> {
        sampler.check_scoring()?;
        let mut layers = Vec::with_capacity(self.config.num_hidden_layers);
        let end = self.run(tokens, positions, |layer| {
            layers.push(if self.recomputes { Kept::Input(layer.x) } else { Kept::All(layer) });
        })?;
        let scores = log_prob::forward(&end.hidden, &self.parameter(self.head_name()), targets, sampler)?;
        let stats = token_stats(&scores)?;
        Ok(Pass {
            model: self,
            ids: tokens.ids.to_vec(),
            lengths: tokens.lengths.to_vec(),
            prefix_of: tokens.prefix_of.to_vec(),
            positions: positions.to_vec(),
            targets: targets.to_vec(),
            sampler,
            layers,
            end,
            row_stats: scores.rows,
            stats,
        })
    }

    /// The forward pass up to the last norm. Calls `keep` with the activations of each layer.
    pub(in crate::qwen2) fn run(
        &self,
        tokens: &PackedTokens,
        positions: &[u32],
        mut keep: impl FnMut(Layer),
    ) -> Result<End, LmError> {
        tokens.check(&self.config)?;
        let n_layers = self.config.num_hidden_layers;
        let mut x = gather::forward(&self.parameter(EMBEDDING), tokens.ids)?; // [T, hidden]
        for layer_idx in 0..n_layers {
            let layer = self.layer(layer_idx, x, sequences(tokens), positions)?;
            let down_proj = self.layer_parameter(layer_idx, "mlp.down_proj.weight");
            x = linear::forward(&layer.activated, [&down_proj], Onto::Residual(&layer.middle))?;
            keep(layer);
        }
        let hidden = rms_norm::forward(&x, &self.parameter("model.norm.weight"), self.eps())?;
        Ok(End { x, hidden })
    }

    /// One layer up to its last matrix product, for rows `x` of all tokens. The last layer continues after
    /// attention with the rows at `positions` only.
    fn layer(
        &self,
        layer_idx: usize,
        x: Tensor,
        sequences: Sequences<'_>,
        positions: &[u32],
    ) -> Result<Layer, LmError> {
        let is_last = layer_idx + 1 == self.config.num_hidden_layers;
        let weight = |name: &str| self.layer_parameter(layer_idx, name);
        let (qkv_weights, gate_up_weights) = (QKV_WEIGHTS.map(weight), GATE_UP_WEIGHTS.map(weight));
        let bias = Tensor::cat(&QKV_BIASES.map(weight), 0)?;

        let normed = rms_norm::forward(&x, &weight("input_layernorm.weight"), self.eps())?;
        let qkv = linear::forward(&normed, qkv_weights.each_ref(), Onto::Bias(&bias))?; // [T, (H + 2K) D]
        let attended = attention::forward(&qkv, sequences, self.config.heads(), &self.rope)?; // [T, H D]
        let (attended_rows, residual) = if is_last {
            (gather::forward(&attended.out, positions)?, gather::forward(&x, positions)?) // [N, …]
        } else {
            (attended.out.clone(), x.clone())
        };
        let o_proj = weight("self_attn.o_proj.weight");
        let middle = linear::forward(&attended_rows, [&o_proj], Onto::Residual(&residual))?;
        let normed_middle =
            rms_norm::forward(&middle, &weight("post_attention_layernorm.weight"), self.eps())?;
        let gate_up = linear::forward(&normed_middle, gate_up_weights.each_ref(), Onto::Nothing)?; // [·, 2 intermediate]
        let activated = swiglu::forward(&gate_up)?; // [·, intermediate]
        Ok(Layer { x, normed, qkv, attended, attended_rows, middle, normed_middle, gate_up, activated })
    }

    fn eps(&self) -> f32 {
        self.config.rms_norm_eps as f32
    }
}

fn sequences<'a>(tokens: &PackedTokens<'a>) -> Sequences<'a> {
    Sequences { lengths: tokens.lengths, prefix_of: tokens.prefix_of }
}

/// `d_hidden` `[N, hidden]` plus the rows of `more`.
fn with_rows(d_hidden: &Tensor, more: &HiddenGradient) -> Result<Tensor, LmError> {
    let mut sum = d_hidden.flatten_all()?.to_vec1()?;
    let rows = Tensor::from_slice(&more.values, (more.rows.len(), d_hidden.dim(1)?), d_hidden.device())?;
    gather::backward(&more.rows, &rows, &mut sum)?;
    Ok(Tensor::from_vec(sum, d_hidden.shape(), d_hidden.device())?)
}

/// The scores of an operation as [`TokenStats`].
fn token_stats(scores: &Scores) -> Result<TokenStats, LmError> {
    TokenStats::new(
        scores.rows.iter().map(|row| row.log_prob).collect(),
        scores.rows.iter().map(|row| row.entropy).collect(),
        scores.is_outside.iter().filter(|is_outside| **is_outside).count(),
    )
}

impl Pass<'_> {
    /// The results of the forward pass.
    pub fn stats(&self) -> &TokenStats {
        &self.stats
    }

    /// The final hidden states, after the last norm, at the scored positions of these numbers, concatenated.
    /// `[R, hidden]`
    pub fn hidden_states(&self, rows: &[u32]) -> Result<Vec<f32>, LmError> {
        check_rows(rows, self.targets.len())?;
        Ok(gather::forward(&self.end.hidden, rows)?.flatten_all()?.to_vec1()?)
    }

    /// The gradients of `loss`, a scalar computed from the log-probabilities of [`stats`](Self::stats), with
    /// respect to each learnable parameter, flat, in the order of [`Qwen2::learnable`].
    pub fn backward(&self, loss: &Tensor) -> Result<Vec<Vec<f32>>, LmError> {
        let mut gradients = vec![Vec::new(); self.model.learnable().len()];
        self.backward_each(loss, |place, gradient| gradients[place] = gradient)?;
        Ok(gradients)
    }

    /// As [`backward`](Self::backward), but calls `put` with the index in [`Qwen2::learnable`] and the
    /// gradient as soon as it is finished, so that a caller that sums gradients need not hold a second set.
    pub fn backward_each(&self, loss: &Tensor, put: impl FnMut(usize, Vec<f32>)) -> Result<(), LmError> {
        self.backward_from(&self.stats.d_log_prob(loss)?.into(), put)
    }

    /// As [`backward_each`](Self::backward_each), from the gradient of the loss with respect to the outputs.
    pub fn backward_from(
        &self,
        outputs: &OutputGradients,
        put: impl FnMut(usize, Vec<f32>),
    ) -> Result<(), LmError> {
        let model = self.model;
        outputs.check(self.targets.len(), model.config.hidden_size)?;
        let mut gradients = Gradients { model, put };
        let head = model.parameter(model.head_name());
        let scored = (&self.row_stats[..], self.sampler);
        let zeros = |name| model.learns(name).then(|| model.embedding_zeros());
        let mut d_head = zeros(model.head_name());
        let (hidden, targets) = (&self.end.hidden, &self.targets);
        let d_hidden =
            log_prob::backward(hidden, &head, targets, scored, &outputs.d_log_prob, d_head.as_deref_mut())?;
        let d_hidden = match &outputs.d_hidden {
            Some(more) => with_rows(&d_hidden, more)?,
            None => d_hidden,
        };
        let norm = model.parameter("model.norm.weight");
        let (mut d_x, d_norm) = rms_norm::backward(&self.end.x, &norm, model.eps(), &d_hidden, None)?;
        gradients.put("model.norm.weight", d_norm)?;
        for (layer_idx, kept) in self.layers.iter().enumerate().rev() {
            d_x = match kept {
                Kept::All(layer) => self.layer_backward(layer_idx, layer, d_x, &mut gradients)?,
                Kept::Input(x) => {
                    let layer = model.layer(layer_idx, x.clone(), self.sequences(), &self.positions)?;
                    self.layer_backward(layer_idx, &layer, d_x, &mut gradients)?
                }
            };
        }
        if !model.config.tie_word_embeddings {
            if let Some(d_head) = d_head {
                gradients.put(model.head_name(), d_head)?;
            }
            d_head = zeros(EMBEDDING);
        }
        if let Some(mut d_embedding) = d_head {
            gather::backward(&self.ids, &d_x, &mut d_embedding)?;
            gradients.put(EMBEDDING, d_embedding)?;
        }
        Ok(())
    }

    /// Takes the gradient of a layer's output to that of its input. `[T, hidden]`
    fn layer_backward(
        &self,
        layer_idx: usize,
        layer: &Layer,
        d_y: Tensor,
        gradients: &mut Gradients<impl FnMut(usize, Vec<f32>)>,
    ) -> Result<Tensor, LmError> {
        let model = self.model;
        let weight = |name: &str| model.layer_parameter(layer_idx, name);
        let mut put =
            |name: &str, gradient| gradients.put(&format!("model.layers.{layer_idx}.{name}"), gradient);

        let down_proj = weight("mlp.down_proj.weight");
        let (d_activated, [d_weight]) = linear::backward(&layer.activated, [&down_proj], &d_y)?;
        put("mlp.down_proj.weight", d_weight)?;
        let d_gate_up = swiglu::backward(&layer.gate_up, &d_activated)?;
        let weights = GATE_UP_WEIGHTS.map(weight);
        let (d_normed, d_weights) = linear::backward(&layer.normed_middle, weights.each_ref(), &d_gate_up)?;
        for (name, d_weight) in GATE_UP_WEIGHTS.into_iter().zip(d_weights) {
            put(name, d_weight)?;
        }
        let gain = weight("post_attention_layernorm.weight");
        let (d_middle, d_gain) =
            rms_norm::backward(&layer.middle, &gain, model.eps(), &d_normed, Some(&d_y))?;
        put("post_attention_layernorm.weight", d_gain)?;
        let o_proj = weight("self_attn.o_proj.weight");
        let (d_attended, [d_weight]) = linear::backward(&layer.attended_rows, [&o_proj], &d_middle)?;
        put("self_attn.o_proj.weight", d_weight)?;
        let (d_attended, d_residual) = if layer_idx + 1 == self.layers.len() {
            (self.scatter(&d_attended)?, self.scatter(&d_middle)?) // [T, …]
        } else {
            (d_attended, d_middle)
        };
        let (sequences, heads) = (self.sequences(), model.config.heads());
        let d_qkv =
            attention::backward(&layer.qkv, sequences, heads, &model.rope, &layer.attended, &d_attended)?;
        let mut d_bias = &linear::bias_backward(&d_qkv)?[..];
        let weights = QKV_WEIGHTS.map(weight);
        let (d_normed, d_weights) = linear::backward(&layer.normed, weights.each_ref(), &d_qkv)?;
        for ((weight, bias), (d_weight, of)) in
            QKV_WEIGHTS.into_iter().zip(QKV_BIASES).zip(d_weights.into_iter().zip(&weights))
        {
            put(weight, d_weight)?;
            let (own, rest) = d_bias.split_at(of.dim(0)?);
            put(bias, own.to_vec())?;
            d_bias = rest;
        }
        let gain = weight("input_layernorm.weight");
        let (d_x, d_gain) = rms_norm::backward(&layer.x, &gain, model.eps(), &d_normed, Some(&d_residual))?;
        put("input_layernorm.weight", d_gain)?;
        Ok(d_x)
    }

    fn sequences(&self) -> Sequences<'_> {
        Sequences { lengths: &self.lengths, prefix_of: &self.prefix_of }
    }

    /// Scatters gradients of the scored rows to the rows of all tokens; the others are zero.
    fn scatter(&self, d_rows: &Tensor) -> Result<Tensor, LmError> {
        let shape = (self.ids.len(), d_rows.dim(1)?);
        let mut all = vec![0.0; shape.0 * shape.1];
        gather::backward(&self.positions, d_rows, &mut all)?;
        Ok(Tensor::from_vec(all, shape, d_rows.device())?)
    }
}

/// Passes finished gradients to the caller, by index of the learnable parameter.
struct Gradients<'m, F> {
    model: &'m Qwen2,
    put: F,
}

impl<F: FnMut(usize, Vec<f32>)> Gradients<'_, F> {
    fn put(&mut self, name: &str, gradient: Vec<f32>) -> Result<(), LmError> {
        self.model.put_gradient(self.model.position(name), gradient, &mut self.put)
    }
}
