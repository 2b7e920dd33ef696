//! The shape of a Qwen2, as `config.json` of a Hugging Face model folder states it.
//!
//! [`Qwen2Config`] reads the file, keeps what it does not know (token ids, version stamps) to write it
//! back, and [`Qwen2Config::validate`] refuses what [`Qwen2`](crate::Qwen2) does not compute: other
//! architectures, scaled rotary positions, sliding windows. Nothing is silently ignored that would
//! change a number.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::AgentError;
use crate::kernels::attention::Heads;

/// The architecture this crate implements, by the name in `architectures`.
const ARCHITECTURE: &str = "Qwen2ForCausalLM";

/// Sizes and constants of a model; the field names are those of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Qwen2Config {
    /// Classes the checkpoint says it is for.
    #[serde(default = "default_architectures")]
    pub architectures: Vec<String>,
    /// The family, `qwen2`.
    #[serde(default = "default_model_type")]
    pub model_type: String,
    /// Tokens the embedding and the head know; may exceed the tokenizer's.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward part.
    pub intermediate_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Query heads a layer.
    pub num_attention_heads: usize,
    /// Key and value heads a layer; all query heads if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_key_value_heads: Option<usize>,
    /// Values a head; `hidden_size / num_attention_heads` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// Longest sequence; positions beyond it are refused.
    pub max_position_embeddings: usize,
    /// Base of the rotary frequencies.
    #[serde(default = "default_rope_theta")]
    pub rope_theta: f64,
    /// Added to the mean square in RMSNorm.
    #[serde(default = "default_rms_norm_eps")]
    pub rms_norm_eps: f64,
    /// Whether the head is the embedding.
    #[serde(default)]
    pub tie_word_embeddings: bool,
    /// Standard deviation of random first weights.
    #[serde(default = "default_initializer_range")]
    pub initializer_range: f64,
    /// Activation of the gate, `silu`.
    #[serde(default = "default_hidden_act")]
    pub hidden_act: String,
    /// Everything else in the file, in its order.
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
    /// The small model this project trains from random weights: hidden 128, 3 layers, 4 heads over 2
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

    /// The sizes of an attention layer.
    pub(crate) fn heads(&self) -> Heads {
        Heads {
            n_heads: self.num_attention_heads,
            n_kv_heads: self.num_key_value_heads.unwrap_or(self.num_attention_heads),
            head_dim: self.head_dim.unwrap_or(self.hidden_size / self.num_attention_heads.max(1)),
        }
    }

    /// Bytes of keys and values that a cache holds for a token.
    pub fn cached_bytes(&self) -> usize {
        let heads = self.heads();
        2 * self.num_hidden_layers * heads.n_kv_heads * heads.head_dim * size_of::<f32>()
    }

    /// Refuses a model that this crate would compute wrongly or not at all, naming the field.
    pub fn validate(&self) -> Result<(), AgentError> {
        let refuse = |reason: String| Err(AgentError::Config(reason));
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
        for (name, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", heads.n_kv_heads),
            ("max_position_embeddings", self.max_position_embeddings),
        ] {
            if size == 0 {
                return refuse(format!("`{name}` is zero"));
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
        self.validate_extensions()
    }

    /// Looks through the fields that belong to features this crate lacks.
    fn validate_extensions(&self) -> Result<(), AgentError> {
        let refuse = |reason: String| Err(AgentError::Config(reason));
        let field = |name: &str| self.other.get(name).filter(|value| !value.is_null());
        if let Some(scaling) = field("rope_scaling") {
            return refuse(format!("`rope_scaling` {scaling} is in use"));
        }
        if let Some(parameters) = field("rope_parameters") {
            let kind = parameters.get("rope_type").and_then(Value::as_str).unwrap_or("default");
            let theta = parameters.get("rope_theta").and_then(Value::as_f64).unwrap_or(self.rope_theta);
            if kind != "default" || theta != self.rope_theta {
                return refuse(format!(
                    "`rope_parameters` {parameters} differ from `rope_theta` {}",
                    self.rope_theta
                ));
            }
        }
        if field("use_sliding_window").is_some_and(|used| used.as_bool() != Some(false)) {
            return refuse("`use_sliding_window` is set".to_owned());
        }
        if let Some(kinds) = field("layer_types").and_then(Value::as_array)
            && let Some(kind) = kinds.iter().find(|kind| kind.as_str() != Some("full_attention"))
        {
            return refuse(format!("`layer_types` contains {kind}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a published 0.5B checkpoint, values shortened where they do not matter here.
    const PUBLISHED: &str = r#"{
        "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
        "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
        "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 21,
        "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
        "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
        "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "use_cache": true, "use_sliding_window": false, "vocab_size": 151936
    }"#;

    #[test]
    fn a_published_config_is_read_and_written_back() {
        let config: Qwen2Config = serde_json::from_str(PUBLISHED).unwrap();
        config.validate().unwrap();
        assert_eq!(config.heads(), Heads { n_heads: 14, n_kv_heads: 2, head_dim: 64 });
        let written: Value = serde_json::to_value(&config).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(PUBLISHED).unwrap());
    }

    #[test]
    fn what_is_not_computed_is_refused_by_name() {
        for (field, value, named) in [
            ("architectures", serde_json::json!(["LlamaForCausalLM"]), "LlamaForCausalLM"),
            ("model_type", "qwen3".into(), "qwen3"),
            ("hidden_act", "gelu".into(), "gelu"),
            ("rope_scaling", serde_json::json!({"type": "yarn", "factor": 4.0}), "rope_scaling"),
            ("rope_parameters", serde_json::json!({"rope_type": "yarn"}), "rope_parameters"),
            ("use_sliding_window", true.into(), "use_sliding_window"),
            ("layer_types", serde_json::json!(["sliding_attention"]), "sliding_attention"),
            ("num_key_value_heads", 3.into(), "num_key_value_heads"),
            ("num_attention_heads", 13.into(), "num_attention_heads"),
            ("head_dim", 7.into(), "7 values"),
            ("vocab_size", 0.into(), "vocab_size"),
            ("rms_norm_eps", 0.0.into(), "rms_norm_eps"),
        ] {
            let mut json: Value = serde_json::from_str(PUBLISHED).unwrap();
            json[field] = value;
            let config: Qwen2Config = serde_json::from_value(json).unwrap();
            let message = config.validate().unwrap_err().to_string();
            assert!(message.contains(named), "{field}: {message}");
        }
    }
}
