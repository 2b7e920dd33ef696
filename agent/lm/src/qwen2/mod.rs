//! A differentiable Qwen2 ("Qwen2 Technical Report", arXiv 2407.10671).
//!
//! A [`Qwen2`] owns its parameters as candle `Var`s under their checkpoint names. [`Qwen2::record`] computes
//! the log-probabilities of given tokens of [`PackedTokens`] (sequences concatenated without padding); the
//! [`Pass`] it returns computes the gradients of a loss. A layer is
//!
//! ```text
//! x = x + o_proj · attention(qkv_proj · rms_norm(x))       queries, keys and values with a bias
//! x = x + down_proj · (silu(gate_proj · y) ∘ up_proj · y)   with y = rms_norm(x)
//! ```
//!
//! and the head is the embedding matrix (tied) or a separate one. [`Decoder`] computes the same function
//! token by token with a [`KvCache`]. There is no dropout; optimizer steps and files are elsewhere.
//!
//! [`cpu`] is the CPU backend, [`gpu`] the GPU backend; `config`, `batch` and `lora` belong to both.

mod batch;
pub(crate) mod config;
pub(crate) mod cpu;
pub(crate) mod gpu;
mod lane_lengths;
mod lora;
mod shapes;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use sha2::{Digest, Sha256};
use webshop_products::{Seed, hex};

use crate::purpose;

pub use crate::qwen2::batch::{
    HiddenGradient, LaneTokens, Logits, OutputGradients, PackedTokens, TokenStats,
};
pub use crate::qwen2::config::Qwen2Config;
pub use crate::qwen2::cpu::decoder::Decoder;
pub use crate::qwen2::cpu::kv_cache::KvCache;
pub use crate::qwen2::cpu::pass::Pass;
use crate::qwen2::lora::Adapter;
pub use crate::qwen2::shapes::KnownShape;

use crate::error::LmError;
use webshop_kernels::cpu::rope::Rope;
use webshop_kernels::cpu::threads::Threads;

/// A causal language model of the Qwen2 family. A clone shares the weights; [`Qwen2::frozen_copy`] does not.
#[derive(Clone, Debug)]
pub struct Qwen2 {
    config: Qwen2Config,
    parameters: Vec<(String, Var)>,
    rope: Arc<Rope>,
    adapter: Option<Arc<Adapter>>,
    recomputes: bool,
}

impl Qwen2 {
    /// A model with random weights, a function of `config` and `seed` alone.
    ///
    /// Matrices and the embedding are normal with standard deviation `initializer_range`, biases 0, gains 1.
    /// The two projections that write to the residual stream (`o_proj`, `down_proj`) are divided by √(2 ·
    /// layers), as in GPT-2, so that the stream does not grow with depth.
    pub fn random(config: &Qwen2Config, seed: Seed) -> Result<Self, LmError> {
        config.validate()?;
        let shapes = parameter_shapes(config).into_iter().enumerate();
        let parameters = shapes.map(|(idx, (name, shape))| {
            let tensor = random_parameter(config, seed, idx, &name, &shape)?;
            Ok((name, tensor))
        });
        Self::new(config, parameters.collect::<Result<_, LmError>>()?)
    }

    /// A model with the given weights, converted to f32. Fails if a parameter of the configuration is
    /// missing, unknown or of another shape, and names it.
    pub fn new(config: &Qwen2Config, mut tensors: Vec<(String, Tensor)>) -> Result<Self, LmError> {
        config.validate()?;
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        let shapes = parameter_shapes(config);
        for (name, shape) in &shapes {
            match tensors.binary_search_by(|(other, _)| other.cmp(name)) {
                Ok(found) if tensors[found].1.dims() == shape => {}
                Ok(found) => {
                    let dims = tensors[found].1.dims();
                    return Err(LmError::Weights(format!(
                        "parameter `{name}` has shape {dims:?}, expected {shape:?}"
                    )));
                }
                Err(_) => return Err(LmError::Weights(format!("parameter `{name}` is missing"))),
            }
        }
        if let Some((name, _)) =
            tensors.iter().find(|(name, _)| !shapes.iter().any(|(known, _)| known == name))
        {
            return Err(LmError::Weights(format!("parameter `{name}` does not belong to this model")));
        }
        let parameters = tensors
            .into_iter()
            .map(|(name, tensor)| Ok((name, Var::from_tensor(&tensor.to_dtype(DType::F32)?.contiguous()?)?)))
            .collect::<Result<_, LmError>>()?;
        let rope = Rope::new(config.heads().head_dim, config.rope_theta, config.max_position_embeddings);
        Ok(Self {
            config: config.clone(),
            parameters,
            rope: Arc::new(rope),
            adapter: None,
            recomputes: false,
        })
    }

    /// A copy of the learnable parameters that later optimizer steps do not change: a reference model. With
    /// an adapter, the base weights are shared.
    pub fn frozen_copy(&self) -> Result<Self, LmError> {
        if let Some(lora) = self.adapter() {
            return self.adapted(lora.copy()?);
        }
        let tensors = self.parameters.iter().map(|(name, var)| Ok((name.clone(), var.copy()?)));
        Self::new(&self.config, tensors.collect::<Result<_, LmError>>()?)
    }

    /// This model with activation recomputation: a recorded pass keeps only the input of each layer and
    /// recomputes the layer for the gradient ("Training Deep Nets with Sublinear Memory Cost", arXiv
    /// 1604.06174, one segment a layer). Less memory, a third more time, the same bits.
    pub fn recomputing(self) -> Self {
        Self { recomputes: true, ..self }
    }

    /// The same model for contexts of `n` tokens, or of as many as it has positions if these are more. Rotary embeddings
    /// have no weights; longer contexts than it was trained on are new to it.
    pub fn with_positions(mut self, n: usize) -> Self {
        if n > self.config.max_position_embeddings {
            self.config.max_position_embeddings = n;
            self.rope = Arc::new(Rope::new(self.config.heads().head_dim, self.config.rope_theta, n));
        }
        self
    }

    /// The shape of the model.
    pub fn config(&self) -> &Qwen2Config {
        &self.config
    }

    /// The parameters with their checkpoint names, sorted by name; without an adapter's additions.
    pub fn parameters(&self) -> &[(String, Var)] {
        &self.parameters
    }

    /// SHA-256 in hex over names, shapes and little-endian bytes of the weights, including an adapter's
    /// additions, in order of name.
    pub fn fingerprint(&self) -> Result<String, LmError> {
        let mut hash = Sha256::new();
        for (idx, (name, var)) in self.parameters.iter().enumerate() {
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update((var.rank() as u64).to_le_bytes());
            for &dim in var.dims() {
                hash.update((dim as u64).to_le_bytes());
            }
            for value in self.weight(idx).flatten_all()?.to_vec1::<f32>()? {
                hash.update(value.to_le_bytes());
            }
        }
        Ok(hex(&hash.finalize()))
    }

    /// A snapshot of the weights for generation.
    pub fn decoder(&self) -> Result<Decoder, LmError> {
        self.clone().into_decoder()
    }

    /// As [`decoder`](Self::decoder), consuming the model. Unless a clone shares it, each parameter is freed
    /// as soon as it is packed, so that the weights never exist twice.
    pub fn into_decoder(self) -> Result<Decoder, LmError> {
        Decoder::new(self)
    }

    /// Whether one pass uses all threads. Passes of a wide model should run one after another: in parallel
    /// they would need more memory and not be faster.
    pub fn is_wide(&self) -> bool {
        Threads::for_width(self.config.hidden_size) == Threads::All
    }

    /// Zeros of the shape of the embedding, which is also that of the head.
    fn embedding_zeros(&self) -> Vec<f32> {
        let (vocab_size, width) = (self.config.vocab_size, self.config.hidden_size);
        Threads::for_width(width.min(vocab_size)).zeros(vocab_size * width)
    }

    fn head_name(&self) -> &'static str {
        if self.config.tie_word_embeddings { "model.embed_tokens.weight" } else { "lm_head.weight" }
    }

    /// The values of a parameter including an adapter's addition, without candle's history: gradients are
    /// written out.
    fn parameter(&self, name: &str) -> Tensor {
        self.weight(self.position(name))
    }

    fn layer_parameter(&self, layer_idx: usize, name: &str) -> Tensor {
        self.parameter(&format!("model.layers.{layer_idx}.{name}"))
    }

    /// The index of a parameter.
    fn position(&self, name: &str) -> usize {
        self.parameters
            .binary_search_by(|(other, _)| other.as_str().cmp(name))
            .expect("the constructor checked that every parameter is there")
    }
}

/// Every parameter of a model with its shape, sorted by name.
pub(crate) fn parameter_shapes(config: &Qwen2Config) -> Vec<(String, Vec<usize>)> {
    let heads = config.heads();
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let (q, kv) = (heads.out_width(), heads.n_kv_heads * heads.head_dim);
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, hidden]),
        ("model.norm.weight".to_owned(), vec![hidden]),
    ];
    if !config.tie_word_embeddings {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab_size, hidden]));
    }
    for layer in 0..config.num_hidden_layers {
        for (name, shape) in [
            ("input_layernorm.weight", vec![hidden]),
            ("self_attn.q_proj.weight", vec![q, hidden]),
            ("self_attn.q_proj.bias", vec![q]),
            ("self_attn.k_proj.weight", vec![kv, hidden]),
            ("self_attn.k_proj.bias", vec![kv]),
            ("self_attn.v_proj.weight", vec![kv, hidden]),
            ("self_attn.v_proj.bias", vec![kv]),
            ("self_attn.o_proj.weight", vec![hidden, q]),
            ("post_attention_layernorm.weight", vec![hidden]),
            ("mlp.gate_proj.weight", vec![inner, hidden]),
            ("mlp.up_proj.weight", vec![inner, hidden]),
            ("mlp.down_proj.weight", vec![hidden, inner]),
        ] {
            shapes.push((format!("model.layers.{layer}.{name}"), shape));
        }
    }
    shapes.sort();
    shapes
}

/// The initial weights of parameter `idx` in [`Qwen2::random`]; parameters are independent of each other.
pub(crate) fn random_parameter(
    config: &Qwen2Config,
    seed: Seed,
    idx: usize,
    name: &str,
    shape: &[usize],
) -> Result<Tensor, LmError> {
    let writes_to_residual = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    let deviation = if writes_to_residual {
        config.initializer_range / libm::sqrt(2.0 * config.num_hidden_layers as f64)
    } else {
        config.initializer_range
    };
    let count = shape.iter().product();
    let values = match shape.len() {
        1 if name.ends_with(".bias") => vec![0.0; count],
        1 => vec![1.0; count],
        _ => normal(&mut seed.rng(purpose::INIT, &[idx as u64]), count, deviation),
    };
    Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
}

/// Normal numbers by the Box-Muller transform, computed in double precision.
fn normal(rng: &mut ChaCha8Rng, count: usize, deviation: f64) -> Vec<f32> {
    // 53 bits, shifted by half a step, so that the argument of the logarithm is never 0.
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        let radius = libm::sqrt(-2.0 * libm::log(uniform())) * deviation;
        let angle = 2.0 * std::f64::consts::PI * uniform();
        values.push((radius * libm::cos(angle)) as f32);
        values.push((radius * libm::sin(angle)) as f32);
    }
    values.truncate(count);
    values
}
