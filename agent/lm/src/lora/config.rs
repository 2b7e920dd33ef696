//! `adapter_config.json`: target modules, ranks and scales of an adapter.

use regex::Regex;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::LmError;

/// The modules of a layer that `all-linear` selects.
const LINEAR: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

const BASE: &str = "base_model_name_or_path";

/// Fields that are accepted and not used: the origin of an adapter, and settings of its training.
const IGNORED: [&str; 12] = [
    "task_type",
    BASE,
    "revision",
    "peft_version",
    "auto_mapping",
    "inference_mode",
    "lora_dropout",
    "megatron_core",
    "runtime_config",
    "loftq_config",
    "qalora_group_size",
    "ensure_weight_tying",
];

/// The configuration of an adapter, with PEFT's field names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoraConfig {
    /// `LORA`.
    pub peft_type: String,
    /// The rank of the products.
    pub r: usize,
    /// alpha: the scale of a product, before division by r or √r.
    #[serde(serialize_with = "write_number")]
    pub lora_alpha: f64,
    /// A list of name endings, a regular expression for whole names, or `all-linear`.
    pub target_modules: Value,
    /// Whether alpha is divided by √r instead of r.
    #[serde(default)]
    pub use_rslora: bool,
    /// Ranks for modules whose names end in a match of the key; the first match counts.
    #[serde(default, deserialize_with = "map_or_null")]
    pub rank_pattern: Map<String, Value>,
    /// Values of alpha for such modules, in the same form.
    #[serde(default, deserialize_with = "map_or_null")]
    pub alpha_pattern: Map<String, Value>,
    /// The trained biases; only `none` is supported.
    #[serde(default = "none")]
    pub bias: String,
    /// The initialization of A and B. Initializations that change the base weights are refused.
    #[serde(default = "yes")]
    pub init_lora_weights: Value,
    /// All other fields, in the order of the file.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn none() -> String {
    "none".to_owned()
}

fn yes() -> Value {
    true.into()
}

/// Writes a whole number as an integer, as PEFT does.
fn write_number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *number as i64;
    if whole as f64 == *number { serializer.serialize_i64(whole) } else { serializer.serialize_f64(*number) }
}

fn map_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl LoraConfig {
    /// An adapter of rank `r` for the modules whose names end in one of `targets`.
    pub fn new(r: usize, alpha: f64, targets: &[&str]) -> Self {
        Self {
            peft_type: "LORA".to_owned(),
            r,
            lora_alpha: alpha,
            target_modules: targets.iter().copied().collect(),
            use_rslora: false,
            rank_pattern: Map::new(),
            alpha_pattern: Map::new(),
            bias: none(),
            init_lora_weights: yes(),
            other: Map::from_iter([("task_type".to_owned(), "CAUSAL_LM".into())]),
        }
    }

    /// Sets the base model; see [`LoraConfig::base`].
    pub fn with_base(mut self, base: &str) -> Self {
        self.other.insert(BASE.to_owned(), base.into());
        self
    }

    /// The base model: a folder or a name that PEFT can load.
    pub fn base(&self) -> Option<&str> {
        self.other.get(BASE).and_then(Value::as_str)
    }

    /// Fails, naming the field, unless the adapter computes exactly W + s · B A.
    pub fn validate(&self) -> Result<(), LmError> {
        let refuse = |reason: String| Err(LmError::Adapter(reason));
        if self.peft_type != "LORA" {
            return refuse(format!("`peft_type` is `{}`, only `LORA` is known", self.peft_type));
        }
        if self.bias != "none" {
            return refuse(format!("`bias` is `{}`, only `none` is known", self.bias));
        }
        if self.r == 0 || !self.lora_alpha.is_finite() {
            return refuse(format!("`r` is {} and `lora_alpha` {}", self.r, self.lora_alpha));
        }
        let is_supported = match &self.init_lora_weights {
            Value::Bool(_) | Value::Null => true,
            kind => kind == "gaussian",
        };
        if !is_supported {
            return refuse(format!(
                "`init_lora_weights` is {}, which also changes the base weights",
                self.init_lora_weights
            ));
        }
        for (field, value) in &self.other {
            let is_off = match value {
                Value::Null | Value::Bool(false) => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            if !is_off && !IGNORED.contains(&field.as_str()) {
                return refuse(format!("`{field}` is {value}, which is not supported"));
            }
        }
        self.rank_and_scale("").map(|_| ())
    }

    /// (r, s) of a module, if it is adapted.
    pub(super) fn rank_and_scale(&self, module: &str) -> Result<Option<(usize, f32)>, LmError> {
        let number = |pattern: &str, value: &Value| {
            let number = value.as_f64().filter(|number| number.is_finite());
            let refused = || LmError::Adapter(format!("`{pattern}` holds {value}, not a number"));
            number.ok_or_else(refused)
        };
        let rank = match first_match(&self.rank_pattern, module)? {
            Some(rank) => number("rank_pattern", rank)? as usize,
            None => self.r,
        };
        let alpha = match first_match(&self.alpha_pattern, module)? {
            Some(alpha) => number("alpha_pattern", alpha)?,
            None => self.lora_alpha,
        };
        if !self.is_target(module)? {
            return Ok(None);
        }
        if rank == 0 {
            return Err(LmError::Adapter(format!("`rank_pattern` gives `{module}` the rank 0")));
        }
        let divisor = if self.use_rslora { libm::sqrt(rank as f64) } else { rank as f64 };
        Ok(Some((rank, (alpha / divisor) as f32)))
    }

    fn is_target(&self, module: &str) -> Result<bool, LmError> {
        let ends_in = |target: &str| {
            module.strip_suffix(target).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let unknown = || {
            let targets = &self.target_modules;
            LmError::Adapter(format!("`target_modules` is {targets}, neither a list of names nor a string"))
        };
        match &self.target_modules {
            Value::String(all) if all == "all-linear" => Ok(LINEAR.into_iter().any(ends_in)),
            Value::String(pattern) => Ok(expression(&format!("^(?:{pattern})$"))?.is_match(module)),
            Value::Array(targets) => {
                let targets: Option<Vec<&str>> = targets.iter().map(Value::as_str).collect();
                Ok(targets.ok_or_else(unknown)?.into_iter().any(ends_in))
            }
            _ => Err(unknown()),
        }
    }

    pub(super) fn no_target(&self) -> LmError {
        LmError::Adapter(format!("no matrix of the model is among `target_modules` {}", self.target_modules))
    }
}

/// The value of the first key that matches the end of a module's name.
fn first_match<'p>(pattern: &'p Map<String, Value>, module: &str) -> Result<Option<&'p Value>, LmError> {
    for (key, value) in pattern {
        if expression(&format!(r"^(?:.*\.)?(?:{key})$"))?.is_match(module) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn expression(pattern: &str) -> Result<Regex, LmError> {
    Regex::new(pattern)
        .map_err(|error| LmError::Adapter(format!("`{pattern}` is not a regular expression: {error}")))
}
