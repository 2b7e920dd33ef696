//! Incremental decoding with a KV cache: the function of [`Qwen2::score`](crate::Qwen2::score), token by
//! token.
//!
//! A [`Decoder`] is an immutable snapshot of a model's weights, packed in the order in which the inner loops
//! read them. [`Decoder::decode`] appends any number of new tokens to each of several lanes of a [`KvCache`],
//! whole prompts or single tokens, and returns the [`Logits`] after each lane's last token.
//! [`Decoder::decode_each`] returns those after every token, which scores given tokens.
//!
//! Logits agree with the training pass to about 1e-6. The bits of a lane's logits do not depend on the other
//! lanes, on the number of threads, or on the chunks in which its tokens are appended. Tokens go through the
//! layers in chunks of [`CHUNK`], which bounds the memory for activations. Weights that are exact in bfloat16
//! are stored in it. Only the matrix products of a wide model are divided among threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{Tensor, Var};
use rayon::prelude::*;

use crate::error::LmError;
use crate::ops::cpu as ops;
use crate::qwen2::cpu::kv_cache::KvCache;
use crate::qwen2::lora::{Adapter, with_addition};
use crate::qwen2::{LaneTokens, Logits, Qwen2, Qwen2Config, batch as lanes};
use webshop_kernels::cpu::decode_attention::{append, attend};
use webshop_kernels::cpu::matmul::{Packed, Right, matmul_packed};
use webshop_kernels::cpu::matmul::{Store, View};
use webshop_kernels::cpu::rope::Rope;
use webshop_kernels::cpu::rows::{rms_norm, swiglu};
use webshop_kernels::cpu::threads::Threads;

/// Tokens that go through the layers together: enough to use a wide weight well, few enough for the
/// activations of a small model to stay in the second-level cache.
const CHUNK: usize = 256;
/// Tokens in one task of the parallel attention.
const ATTENDED_TOGETHER: usize = 8;

/// A snapshot of a model's weights, packed for generation.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: Qwen2Config,
    rope: Arc<Rope>,
    /// `[hidden, V]`, one column for each token; `None` if the head is tied to it.
    embedding: Option<Packed>,
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

/// A new token and its position.
#[derive(Clone, Copy)]
struct NewToken {
    id: u32,
    lane: usize,
    position: usize,
    /// Whether logits are computed after it.
    has_logits: bool,
}

/// The new tokens after which logits are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogitsAfter {
    LastTokens,
    EveryToken,
}

/// Activations of the M tokens of a chunk.
struct Rows {
    /// The residual stream. `[M, hidden]`
    x: Vec<f32>,
    /// Normalized. `[M, hidden]`
    y: Vec<f32>,
    /// `[M, (H + 2K) D]`
    qkv: Vec<f32>,
    /// `[M, H D]`
    attended: Vec<f32>,
    /// `[M, 2 intermediate]`
    gate_up: Vec<f32>,
    /// `[M, intermediate]`
    activated: Vec<f32>,
}

/// The parameters not yet packed, by name, and the adapter.
struct Parameters {
    vars: BTreeMap<String, Var>,
    adapter: Option<Arc<Adapter>>,
}

impl Parameters {
    fn take(&mut self, name: &str) -> Tensor {
        let var = self.vars.remove(name).expect("a model has every parameter, and each is packed once");
        with_addition(self.adapter.as_deref(), name, &var)
    }

    fn values(&mut self, name: &str) -> Result<Vec<f32>, LmError> {
        Ok(self.take(name).flatten_all()?.to_vec1::<f32>()?)
    }

    /// The transposes of matrices `[out, in]`, side by side.
    fn packed<const N: usize>(&mut self, names: [&str; N]) -> Result<Packed, LmError> {
        let parts = names.map(|name| self.take(name));
        let tensors = parts.each_ref();
        Ok(ops::read::<N, _>(tensors, |values| {
            let inputs = tensors[0].dims()[1];
            Packed::compact(Right::Beside(&values.map(|values| View::rows_of(values, inputs).t())))
        })?)
    }
}

impl Decoder {
    /// Packs the parameters one after the other and frees each.
    pub fn new(model: Qwen2) -> Result<Self, LmError> {
        let Qwen2 { config, parameters, rope, adapter, .. } = model;
        let mut parameters = Parameters { vars: parameters.into_iter().collect(), adapter };
        let layers = (0..config.num_hidden_layers).map(|layer| Layer::new(&mut parameters, layer));
        let layers = layers.collect::<Result<_, _>>()?;
        let embedding = parameters.packed(["model.embed_tokens.weight"])?;
        let (embedding, head) = if config.tie_word_embeddings {
            (None, embedding)
        } else {
            (Some(embedding), parameters.packed(["lm_head.weight"])?)
        };
        Ok(Self { config, rope, embedding, layers, norm: parameters.values("model.norm.weight")?, head })
    }

    /// The shape of the model.
    pub fn config(&self) -> &Qwen2Config {
        &self.config
    }

    /// Appends the new tokens of each lane to the cache and returns the logits after each lane's last token,
    /// in the order of `lanes`.
    ///
    /// Fails if a lane is given twice or without tokens, an id is outside the vocabulary, or a lane has no
    /// room; the cache is then unchanged.
    pub fn decode(&self, cache: &mut KvCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        self.decode_with(cache, lanes, LogitsAfter::LastTokens)
    }

    /// As [`decode`](Self::decode), with logits after every new token: those of the first lane in the order of
    /// its tokens, then those of the next. The row of a lane's last token has the bits that `decode` returns.
    pub fn decode_each(&self, cache: &mut KvCache, lanes: &[LaneTokens]) -> Result<Logits, LmError> {
        self.decode_with(cache, lanes, LogitsAfter::EveryToken)
    }

    fn decode_with(
        &self,
        cache: &mut KvCache,
        lanes: &[LaneTokens],
        after: LogitsAfter,
    ) -> Result<Logits, LmError> {
        lanes::check(&self.config, lanes, cache.lanes(), |lane, n_new| {
            cache.check(&self.config, lane, n_new)
        })?;
        Ok(match self.threads() {
            Threads::One => self.read(cache, lanes, after),
            // Enters the thread pool once instead of with every product.
            Threads::All => rayon::scope(|_| self.read(cache, lanes, after)),
        })
    }

    pub(crate) fn threads(&self) -> Threads {
        Threads::for_width(self.config.hidden_size)
    }

    fn read(&self, cache: &mut KvCache, lanes: &[LaneTokens], after: LogitsAfter) -> Logits {
        let hidden = self.config.hidden_size;
        let tokens = new_tokens(cache, lanes, after);
        let n_rows = tokens.iter().filter(|token| token.has_logits).count();
        let mut read = Vec::with_capacity(n_rows * hidden); // [rows, hidden]
        for tokens in tokens.chunks(CHUNK) {
            let x = self.run(cache, tokens);
            for (token, x) in tokens.iter().zip(x.chunks_exact(hidden)) {
                if token.has_logits {
                    read.extend_from_slice(x);
                }
            }
        }
        for lane in lanes {
            cache.advance(lane.lane, lane.ids.len());
        }
        let mut normed = vec![0.0; read.len()];
        rms_norm(&read, &self.norm, self.eps(), &mut normed);
        let vocab_size = self.config.vocab_size;
        let mut values = vec![0.0; n_rows * vocab_size];
        multiply(&normed, &self.head, Store::Set, &mut values);
        Logits::new(values, vocab_size)
    }

    /// Runs tokens through all layers and returns the residual stream after the last. `[M, hidden]`
    fn run(&self, cache: &mut KvCache, tokens: &[NewToken]) -> Vec<f32> {
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        let threads = self.threads();
        let mut rows = self.rows(tokens);
        for (layer_idx, layer) in self.layers.iter().enumerate() {
            let norm = |weight: &[f32], x: &[f32], y: &mut [f32]| {
                threads.each_part([(x, hidden)], (y, hidden), |[x], y| rms_norm(x, weight, self.eps(), y));
            };
            norm(&layer.input_norm, &rows.x, &mut rows.y);
            for row in rows.qkv.chunks_exact_mut(layer.qkv_bias.len()) {
                row.copy_from_slice(&layer.qkv_bias);
            }
            multiply(&rows.y, &layer.qkv, Store::Add, &mut rows.qkv);
            self.attend(cache, layer_idx, tokens, &mut rows);
            multiply(&rows.attended, &layer.o_proj, Store::Add, &mut rows.x);
            norm(&layer.post_norm, &rows.x, &mut rows.y);
            multiply(&rows.y, &layer.gate_up, Store::Set, &mut rows.gate_up);
            let gate_up = [(&rows.gate_up[..], 2 * inner)];
            threads.each_part(gate_up, (&mut rows.activated, inner), |[x], y| swiglu(x, inner, y));
            multiply(&rows.activated, &layer.down_proj, Store::Add, &mut rows.x);
        }
        rows.x
    }

    /// Allocates the activations of `tokens`, with their embeddings in `x`.
    fn rows(&self, tokens: &[NewToken]) -> Rows {
        let (hidden, heads, inner) =
            (self.config.hidden_size, self.config.heads(), self.config.intermediate_size);
        let mut x = Vec::with_capacity(tokens.len() * hidden);
        for token in tokens {
            self.embedding.as_ref().unwrap_or(&self.head).push_column(token.id as usize, &mut x);
        }
        let zeros = |width: usize| vec![0.0; tokens.len() * width];
        Rows {
            x,
            y: zeros(hidden),
            qkv: zeros(heads.qkv_width()),
            attended: zeros(heads.out_width()),
            gate_up: zeros(2 * inner),
            activated: zeros(inner),
        }
    }

    /// Appends the keys and values of `tokens` to the cache and computes their attention.
    fn attend(&self, cache: &mut KvCache, layer_idx: usize, tokens: &[NewToken], rows: &mut Rows) {
        let (heads, layout) = (self.config.heads(), cache.layout());
        for (token, qkv) in tokens.iter().zip(rows.qkv.chunks_exact(heads.qkv_width())) {
            let block = cache.block_mut(token.lane, layer_idx);
            append(qkv, token.position, heads, &self.rope, block, layout);
        }
        let cache = &*cache;
        let attend_to = |tokens: &[NewToken], qkv: &[f32], out: &mut [f32]| {
            let mut work = Vec::new();
            let rows = qkv.chunks_exact(heads.qkv_width()).zip(out.chunks_exact_mut(heads.out_width()));
            for (token, (qkv, out)) in tokens.iter().zip(rows) {
                let block = cache.block(token.lane, layer_idx);
                attend(qkv, token.position, heads, &self.rope, block, &mut work, out);
            }
        };
        match self.threads() {
            Threads::One => attend_to(tokens, &rows.qkv, &mut rows.attended),
            Threads::All => tokens
                .par_chunks(ATTENDED_TOGETHER)
                .zip(rows.qkv.par_chunks(ATTENDED_TOGETHER * heads.qkv_width()))
                .zip(rows.attended.par_chunks_mut(ATTENDED_TOGETHER * heads.out_width()))
                .for_each(|((tokens, qkv), out)| attend_to(tokens, qkv, out)),
        }
    }

    fn eps(&self) -> f32 {
        self.config.rms_norm_eps as f32
    }
}

impl Layer {
    fn new(parameters: &mut Parameters, layer_idx: usize) -> Result<Self, LmError> {
        let name = |part: &str| format!("model.layers.{layer_idx}.{part}");
        let attention = |part: &str, kind: &str| name(&format!("self_attn.{part}_proj.{kind}"));
        let of_each = |kind: &str| ["q", "k", "v"].map(|part| attention(part, kind));
        let mut qkv_bias = Vec::new();
        for name in of_each("bias") {
            qkv_bias.extend(parameters.values(&name)?);
        }
        let qkv = of_each("weight");
        Ok(Self {
            input_norm: parameters.values(&name("input_layernorm.weight"))?,
            qkv: parameters.packed([&qkv[0], &qkv[1], &qkv[2]])?,
            qkv_bias,
            o_proj: parameters.packed([&attention("o", "weight")])?,
            post_norm: parameters.values(&name("post_attention_layernorm.weight"))?,
            gate_up: parameters.packed([&name("mlp.gate_proj.weight"), &name("mlp.up_proj.weight")])?,
            down_proj: parameters.packed([&name("mlp.down_proj.weight")])?,
        })
    }
}

/// The new tokens of all lanes, in order.
fn new_tokens(cache: &KvCache, lanes: &[LaneTokens], after: LogitsAfter) -> Vec<NewToken> {
    let of_lane = |tokens: &LaneTokens| {
        let (lane, start, len) = (tokens.lane, cache.len(tokens.lane), tokens.ids.len());
        let ids = tokens.ids.iter().enumerate();
        let has_logits = move |i| after == LogitsAfter::EveryToken || i + 1 == len;
        let token = move |(i, &id)| NewToken { id, lane, position: start + i, has_logits: has_logits(i) };
        ids.map(token).collect::<Vec<_>>()
    };
    lanes.iter().flat_map(of_lane).collect()
}

/// `out = x · weight` or `out += x · weight`.
fn multiply(x: &[f32], weight: &Packed, store: Store, out: &mut [f32]) {
    let (inputs, outputs) = (weight.n_rows(), weight.n_cols());
    let threads = Threads::for_width(inputs.min(outputs));
    matmul_packed(out, outputs, View::rows_of(x, inputs), weight, outputs, store, threads);
}
