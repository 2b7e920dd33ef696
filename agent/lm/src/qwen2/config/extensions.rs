//! Checks of the fields of `config.json` for features that are not implemented.
//!
//! Rotary positions are described in two spellings. transformers 4 has `rope_theta` and, for scaled
//! positions, `rope_scaling` with a `type` or `rope_type`; transformers 5 has `rope_parameters` with the base
//! and the type, for all layers or for each layer type. Only the unscaled type `default` is implemented.

use serde_json::{Map, Value};

use crate::error::LmError;
use crate::qwen2::config::Qwen2Config;

/// The only supported value in `layer_types`.
const FULL_ATTENTION: &str = "full_attention";

/// The base in `rope_parameters`, if given.
pub(super) fn nested_theta(fields: &Map<String, Value>) -> Option<Value> {
    let parameters = fields.get("rope_parameters")?;
    let of_layers = parameters.get(FULL_ATTENTION).unwrap_or(parameters);
    of_layers.get("rope_theta").filter(|theta| !theta.is_null()).cloned()
}

/// Fails, naming the field, if one of these features is in use.
pub(super) fn validate(config: &Qwen2Config) -> Result<(), LmError> {
    let field = |name: &str| config.other.get(name).filter(|value| !value.is_null());
    let refuse = |reason: String| Err(LmError::Config(reason));
    if let Some(scaling) = field("rope_scaling") {
        check_rope("rope_scaling", scaling, config)?;
    }
    if let Some(parameters) = field("rope_parameters") {
        check_rope("rope_parameters", parameters, config)?;
    }
    if let Some(factor) = field("partial_rotary_factor").filter(|factor| factor.as_f64() != Some(1.0)) {
        return refuse(format!("`partial_rotary_factor` is {factor}, only whole heads are rotated"));
    }
    if let Some(used) = field("use_sliding_window").filter(|used| used.as_bool() != Some(false)) {
        return refuse(format!("`use_sliding_window` is {used}, only full attention is known"));
    }
    if let Some(kinds) = field("layer_types") {
        check_layer_types(kinds, config.num_hidden_layers)?;
    }
    if field("quantization_config").is_some() {
        return refuse("`quantization_config` is set, only f32, bf16 and f16 weights are known".to_owned());
    }
    Ok(())
}

/// Fails if a description of rotary positions has anything but unscaled ones.
fn check_rope(name: &str, parameters: &Value, config: &Qwen2Config) -> Result<(), LmError> {
    let refuse = |reason: String| Err(LmError::Config(format!("`{name}` {parameters} {reason}")));
    let Some(fields) = parameters.as_object() else {
        return refuse("is not an object".to_owned());
    };
    let theta = config.rope_theta;
    for (field, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        match field.as_str() {
            FULL_ATTENTION => check_rope(name, value, config)?,
            "rope_type" | "type" if value.as_str() == Some("default") => {}
            "rope_type" | "type" => return refuse("scales positions, only `default` is known".to_owned()),
            "rope_theta" if value.as_f64() == Some(theta) => {}
            "rope_theta" => return refuse(format!("differs from `rope_theta` {theta}")),
            "partial_rotary_factor" if value.as_f64() == Some(1.0) => {}
            _ => return refuse(format!("has `{field}`, which is not known")),
        }
    }
    Ok(())
}

fn check_layer_types(kinds: &Value, n_layers: usize) -> Result<(), LmError> {
    let refuse = |reason: String| Err(LmError::Config(format!("`layer_types` {reason}")));
    let Some(kinds) = kinds.as_array() else {
        return refuse(format!("is {kinds}, not a list"));
    };
    match kinds.iter().find(|kind| kind.as_str() != Some(FULL_ATTENTION)) {
        Some(kind) => refuse(format!("contains {kind}, only `{FULL_ATTENTION}` is known")),
        None if kinds.len() != n_layers => {
            refuse(format!("lists {} layers, `num_hidden_layers` is {n_layers}", kinds.len()))
        }
        None => Ok(()),
    }
}
