//! Generation: the function of [`Qwen2::score`](crate::Qwen2::score) for texts that grow token by token.
//!
//! A [`Decoder`] is a snapshot of a model's weights in the order in which the inner loops read them;
//! it is immutable, so threads share it. [`Decoder::decode`] reads any number of new tokens for each
//! of several lanes of a [`KvCache`] (a whole prompt and a single token are the same call) and
//! returns the [`Logits`] after each lane's last token.
//!
//! Results agree with the forward pass to about 1e-6. A lane's logits are the same bits whichever
//! lanes are computed beside it. Nothing here can be differentiated, samples, or starts a thread.

use std::sync::Arc;

use super::{Qwen2, Qwen2Config};
use crate::cache::KvCache;
use crate::error::AgentError;
use crate::kernels::cached::attend;
use crate::kernels::matmul::{Packed, Store, View, matmul_packed};
use crate::kernels::rope::Rope;
use crate::kernels::rows::{rms_norm, swiglu};

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

    /// The rows in the order of the lanes of the call.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.vocab_size)
    }
}

/// A model's weights at one moment, ready to generate.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: Qwen2Config,
    rope: Arc<Rope>,
    /// `[V, hidden]`
    embedding: Vec<f32>,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    head: Packed,
}

#[derive(Clone, Debug)]
struct Layer {
    input_norm: Vec<f32>,
    qkv: Packed,
    qkv_bias: Vec<f32>,
    o_proj: Packed,
    post_norm: Vec<f32>,
    gate_up: Packed,
    down_proj: Packed,
}

impl Decoder {
    pub(super) fn new(model: &Qwen2) -> Result<Self, AgentError> {
        let read = |name: &str| Ok::<_, AgentError>(model.parameter(name).flatten_all()?.to_vec1::<f32>()?);
        let config = model.config().clone();
        let layers = (0..config.num_hidden_layers).map(|layer| {
            let joined = |names: &[&str]| {
                let parts = names.iter().map(|name| read(&format!("model.layers.{layer}.{name}")));
                Ok::<_, AgentError>(parts.collect::<Result<Vec<_>, _>>()?.concat())
            };
            let packed = |names: &[&str], inputs| {
                Ok::<_, AgentError>(Packed::new(View::rows_of(&joined(names)?, inputs).t()))
            };
            let hidden = config.hidden_size;
            Ok::<_, AgentError>(Layer {
                input_norm: joined(&["input_layernorm.weight"])?,
                qkv: packed(
                    &["self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"],
                    hidden,
                )?,
                qkv_bias: joined(&[
                    "self_attn.q_proj.bias",
                    "self_attn.k_proj.bias",
                    "self_attn.v_proj.bias",
                ])?,
                o_proj: packed(&["self_attn.o_proj.weight"], config.heads().out_width())?,
                post_norm: joined(&["post_attention_layernorm.weight"])?,
                gate_up: packed(&["mlp.gate_proj.weight", "mlp.up_proj.weight"], hidden)?,
                down_proj: packed(&["mlp.down_proj.weight"], config.intermediate_size)?,
            })
        });
        Ok(Self {
            rope: Arc::clone(&model.rope),
            embedding: read("model.embed_tokens.weight")?,
            layers: layers.collect::<Result<_, _>>()?,
            norm: read("model.norm.weight")?,
            head: Packed::new(View::rows_of(&read(model.head_name())?, config.hidden_size).t()),
            config,
        })
    }

    /// The shape of the model.
    pub fn config(&self) -> &Qwen2Config {
        &self.config
    }

    /// Reads the new tokens of each lane, appends them to the cache, and returns the logits after
    /// each lane's last token, in the order of `lanes`.
    ///
    /// An error (a lane twice or without tokens, an id outside of the vocabulary, no room) leaves the
    /// cache as it was.
    pub fn decode(&self, cache: &mut KvCache, lanes: &[LaneTokens]) -> Result<Logits, AgentError> {
        self.check(cache, lanes)?;
        let (hidden, heads) = (self.config.hidden_size, self.config.heads());
        let eps = self.config.rms_norm_eps as f32;
        let mut x = Vec::new(); // [M, hidden], M new tokens in all
        for &id in lanes.iter().flat_map(|lane| lane.ids) {
            let row = id as usize * hidden;
            x.extend_from_slice(&self.embedding[row..row + hidden]);
        }
        let n_rows = x.len() / hidden;
        let inner = self.config.intermediate_size;
        let mut y = vec![0.0; x.len()];
        let mut qkv = Vec::new(); // [M, (H + 2K) D]
        let mut attended = vec![0.0; n_rows * heads.out_width()];
        let mut gate_up = vec![0.0; n_rows * 2 * inner];
        let mut activated = vec![0.0; n_rows * inner];
        let mut scores = Vec::new();
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            rms_norm(&x, &layer.input_norm, eps, &mut y);
            qkv.clear();
            (0..n_rows).for_each(|_| qkv.extend_from_slice(&layer.qkv_bias));
            multiply(&y, &layer.qkv, Store::Add, &mut qkv);
            let rows = qkv.chunks_exact(heads.qkv_width()).zip(attended.chunks_exact_mut(heads.out_width()));
            for ((lane, position), (qkv, out)) in positions(cache, lanes).into_iter().zip(rows) {
                let mut block = cache.block(lane, layer_idx);
                attend(qkv, position, heads, &self.rope, &mut block, &mut scores, out);
            }
            multiply(&attended, &layer.o_proj, Store::Add, &mut x);
            rms_norm(&x, &layer.post_norm, eps, &mut y);
            multiply(&y, &layer.gate_up, Store::Set, &mut gate_up);
            swiglu(&gate_up, inner, &mut activated);
            multiply(&activated, &layer.down_proj, Store::Add, &mut x);
        }
        let mut last = Vec::with_capacity(lanes.len() * hidden); // [lanes, hidden]
        let mut end = 0;
        for lane in lanes {
            end += lane.ids.len() * hidden;
            last.extend_from_slice(&x[end - hidden..end]);
            cache.advance(lane.lane, lane.ids.len());
        }
        let mut normed = vec![0.0; last.len()];
        rms_norm(&last, &self.norm, eps, &mut normed);
        let vocab_size = self.config.vocab_size;
        let mut values = vec![0.0; lanes.len() * vocab_size];
        multiply(&normed, &self.head, Store::Set, &mut values);
        Ok(Logits { values, vocab_size })
    }

    fn check(&self, cache: &KvCache, lanes: &[LaneTokens]) -> Result<(), AgentError> {
        let refuse = |reason: String| Err(AgentError::Input(reason));
        let mut seen = vec![false; cache.lanes()];
        for tokens in lanes {
            cache.check(&self.config, tokens.lane, tokens.ids.len())?;
            if std::mem::replace(&mut seen[tokens.lane], true) {
                return refuse(format!("lane {} is given twice", tokens.lane));
            }
            if tokens.ids.is_empty() {
                return refuse(format!("lane {} is given no tokens", tokens.lane));
            }
            if let Some(id) = tokens.ids.iter().find(|&&id| id as usize >= self.config.vocab_size) {
                return refuse(format!("token {id} is not in a vocabulary of {}", self.config.vocab_size));
            }
        }
        Ok(())
    }
}

/// (lane, position) of every new token, in order.
fn positions(cache: &KvCache, lanes: &[LaneTokens]) -> Vec<(usize, usize)> {
    let of_lane = |tokens: &LaneTokens| {
        let (lane, start) = (tokens.lane, cache.len(tokens.lane));
        (start..start + tokens.ids.len()).map(move |position| (lane, position))
    };
    lanes.iter().flat_map(of_lane).collect()
}

/// `out` = (or +=) rows of `x` times a packed weight.
fn multiply(x: &[f32], weight: &Packed, store: Store, out: &mut [f32]) {
    let x = View::rows_of(x, weight.n_rows());
    matmul_packed(out, weight.n_cols(), x, weight, weight.n_cols(), store);
}
