//! The shape of a Qwen2, as `config.json` of a Hugging Face model folder states it.
//!
//! [`Qwen2Config`] keeps unknown fields (token ids, versions) and writes them back. [`Qwen2Config::validate`]
//! refuses every setting that [`Qwen2`](crate::Qwen2) does not implement and that would change a result:
//! other architectures, scaled rotary positions, sliding windows, quantized weights.
//!
//! Two spellings are supported: transformers 4 writes `rope_theta` and `torch_dtype`, transformers 5
//! `rope_parameters` and `dtype`. A configuration read in the second spelling is written with an additional
//! `rope_theta`, for readers of both.

mod extensions;
#[cfg(test)]
mod tests;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::LmError;
use webshop_kernels::cpu::attention::Heads;

/// The architecture this crate implements, by the name in `architectures`.
const ARCHITECTURE: &str = "Qwen2ForCausalLM";

/// Sizes and constants of a model; the field names are those of the file.
// With `remote`, the derived `deserialize` is a function. The implementation of the trait calls it after it
// has moved the base of the rotary frequencies to `rope_theta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Qwen2Config {
    /// Class names of the architecture.
    #[serde(default = "default_architectures")]
    pub architectures: Vec<String>,
    /// The model family, `qwen2`.
    #[serde(default = "default_model_type")]
    pub model_type: String,
    /// Rows of the embedding and the head; at least the tokenizer's number of ids.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the feed-forward block.
    pub intermediate_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Query heads of a layer.
    pub num_attention_heads: usize,
    /// Key and value heads of a layer; as many as query heads if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_key_value_heads: Option<usize>,
    /// Values of a head; `hidden_size / num_attention_heads` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// Length of the longest supported sequence.
    pub max_position_embeddings: usize,
    /// Base of the rotary frequencies.
    #[serde(default = "default_rope_theta")]
    pub rope_theta: f64,
    /// Added to the mean square in RMSNorm.
    #[serde(default = "default_rms_norm_eps")]
    pub rms_norm_eps: f64,
    /// Whether the head shares the matrix of the embedding.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Standard deviation of random initial weights.
    #[serde(default = "default_initializer_range")]
    pub initializer_range: f64,
    /// Activation function of the gate, `silu`.
    #[serde(default = "default_hidden_act")]
    pub hidden_act: String,
    /// All other fields, in the order of the file.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn default_architectures() -> Vec<String> {
    vec![ARCHITECTURE.to_owned()]
}

fn default_model_type() -> String {
    "qwen2".to_owned()
}

fn default_rope_theta() -> f64 {
    10_000.0
}

fn default_rms_norm_eps() -> f64 {
    1e-6
}

fn default_initializer_range() -> f64 {
    0.02
}

fn default_hidden_act() -> String {
    "silu".to_owned()
}

impl Qwen2Config {
    /// A small model for training from random weights: hidden 128, 3 layers, 4 heads over 2
    /// key heads, tied head, 2,048 positions.
    pub fn small(vocab_size: usize) -> Self {
        Self {
            architectures: default_architectures(),
            model_type: default_model_type(),
            vocab_size,
            hidden_size: 128,
            intermediate_size: 320,
            num_hidden_layers: 3,
            num_attention_heads: 4,
            num_key_value_heads: Some(2),
            head_dim: None,
            max_position_embeddings: 2048,
            rope_theta: default_rope_theta(),
            rms_norm_eps: default_rms_norm_eps(),
            tie_word_embeddings: true,
            initializer_range: default_initializer_range(),
            hidden_act: default_hidden_act(),
            other: Map::new(),
        }
    }

    /// Number of parameter values.
    pub fn n_parameters(&self) -> usize {
        crate::qwen2::parameter_shapes(self).iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Fails if an id is not in the vocabulary.
    pub(crate) fn check_ids(&self, ids: &[u32]) -> Result<(), LmError> {
        match ids.iter().find(|&&id| id as usize >= self.vocab_size) {
            Some(id) => {
                let reason = format!("token {id} is not in a vocabulary of {}", self.vocab_size);
                Err(LmError::Input(reason))
            }
            None => Ok(()),
        }
    }

    /// The sizes of the attention.
    pub(crate) fn heads(&self) -> Heads {
        Heads {
            n_heads: self.num_attention_heads,
            n_kv_heads: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            head_dim: self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1)),
        }
    }

    /// Bytes of a token in the KV cache of the CPU backend.
    pub fn cache_bytes_per_token(&self) -> usize {
        let heads = self.heads();
        2 * self.num_hidden_layers * heads.n_kv_heads * heads.head_dim * size_of::<f32>()
    }

    /// Fails, naming the field, for a model that this crate does not implement.
    pub fn validate(&self) -> Result<(), LmError> {
        let refuse = |reason: String| Err(LmError::Config(reason));
        if !self.architectures.iter().any(|name| name == ARCHITECTURE) {
            return refuse(format!(
                "`architectures` is {:?}, only `{ARCHITECTURE}` is known",
                self.architectures
            ));
        }
        if self.model_type != "qwen2" {
            return refuse(format!("`model_type` is `{}`, only `qwen2` is known", self.model_type));
        }
        if self.hidden_act != "silu" {
            return refuse(format!("`hidden_act` is `{}`, only `silu` is known", self.hidden_act));
        }
        let heads = self.heads();
        // Several times what the largest models have, and small enough for the products of two of them.
        for (name, size, limit) in [
            ("vocab_size", self.vocab_size, 1 << 24),
            ("hidden_size", self.hidden_size, 1 << 20),
            ("intermediate_size", self.intermediate_size, 1 << 22),
            ("num_hidden_layers", self.num_hidden_layers, 1 << 12),
            ("num_attention_heads", self.num_attention_heads, 1 << 16),
            ("num_key_value_heads", heads.n_kv_heads, 1 << 16),
            ("max_position_embeddings", self.max_position_embeddings, 1 << 22),
            ("head_dim", heads.head_dim, 1 << 16),
        ] {
            if size == 0 {
                return refuse(format!("`{name}` is zero"));
            }
            if size > limit {
                return refuse(format!("`{name}` is {size}, at most {limit} is supported"));
            }
        }
        if self.head_dim.is_none() && !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return refuse(format!(
                "`hidden_size` {} is not divisible by `num_attention_heads` {}",
                self.hidden_size, self.num_attention_heads
            ));
        }
        if !heads.n_heads.is_multiple_of(heads.n_kv_heads) {
            return refuse(format!(
                "`num_attention_heads` {} is not a multiple of `num_key_value_heads` {}",
                heads.n_heads, heads.n_kv_heads
            ));
        }
        if heads.head_dim == 0 || !heads.head_dim.is_multiple_of(2) {
            return refuse(format!("heads of {} values cannot be rotated in pairs", heads.head_dim));
        }
        for (name, value) in [("rope_theta", self.rope_theta), ("rms_norm_eps", self.rms_norm_eps)] {
            if !(value.is_finite() && value > 0.0) {
                return refuse(format!("`{name}` is {value}"));
            }
        }
        if !(self.initializer_range.is_finite() && self.initializer_range >= 0.0) {
            return refuse(format!("`initializer_range` is {}", self.initializer_range));
        }
        extensions::validate(self)
    }
}

impl<'de> Deserialize<'de> for Qwen2Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        if let Some(theta) = extensions::nested_theta(&fields) {
            fields.entry("rope_theta").or_insert(theta);
        }
        Self::deserialize(Value::Object(fields)).map_err(D::Error::custom)
    }
}

impl Serialize for Qwen2Config {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}
