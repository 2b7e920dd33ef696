//! Configurations as published and as written by transformers 5, and rejected ones.

use serde_json::{Value, json};

use super::*;

/// The fields of a published 0.5B checkpoint, with values shortened if the tests do not use them.
const PUBLISHED: &str = r#"{
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
    "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02,
    "intermediate_size": 4864, "max_position_embeddings": 32768, "max_window_layers": 21,
    "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
    "sliding_window": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936
}"#;

/// Written by `save_pretrained` of transformers 5.23 for a small model.
const OF_TRANSFORMERS_5: &str = r#"{
    "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": null,
    "dtype": "float32", "eos_token_id": null, "hidden_act": "silu", "hidden_size": 8,
    "initializer_range": 0.02, "intermediate_size": 6, "layer_types": ["full_attention"],
    "max_position_embeddings": 32768, "max_window_layers": 28, "model_type": "qwen2",
    "num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 1, "pad_token_id": null,
    "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"},
    "sliding_window": null, "tie_word_embeddings": false, "transformers_version": "5.23.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 11
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
fn a_theta_in_rope_parameters_is_also_written_as_rope_theta() {
    let config: Qwen2Config = serde_json::from_str(OF_TRANSFORMERS_5).unwrap();
    config.validate().unwrap();
    assert_eq!(config.rope_theta, 500_000.0);
    let mut expected: Value = serde_json::from_str(OF_TRANSFORMERS_5).unwrap();
    expected["rope_theta"] = 500_000.0.into();
    assert_eq!(serde_json::to_value(&config).unwrap(), expected);
}

/// Reads [`OF_TRANSFORMERS_5`] with some fields replaced, or removed if the replacement is null.
fn changed(fields: Value) -> Qwen2Config {
    let mut json: Value = serde_json::from_str(OF_TRANSFORMERS_5).unwrap();
    let object = json.as_object_mut().unwrap();
    for (name, value) in fields.as_object().unwrap() {
        object.remove(name);
        if !value.is_null() {
            object.insert(name.clone(), value.clone());
        }
    }
    serde_json::from_value(json).unwrap()
}

#[test]
fn unscaled_rotary_positions_are_accepted_in_every_spelling() {
    for (fields, theta) in [
        (json!({"rope_parameters": null}), 10_000.0),
        (json!({"rope_parameters": {}, "rope_theta": 7.0}), 7.0),
        (json!({"rope_parameters": {"rope_type": "default"}, "rope_theta": 7.0}), 7.0),
        (json!({"rope_parameters": {"rope_theta": 7.0}, "rope_theta": 7.0}), 7.0),
        (json!({"rope_parameters": {"full_attention": {"rope_theta": 7, "rope_type": "default"}}}), 7.0),
        (json!({"rope_parameters": null, "rope_scaling": {"type": "default"}, "rope_theta": 7.0}), 7.0),
    ] {
        let config = changed(fields.clone());
        config.validate().unwrap_or_else(|error| panic!("{fields}: {error}"));
        assert_eq!(config.rope_theta, theta, "{fields}");
    }
    // An absent value may also be written as null.
    let nulls = PUBLISHED.replacen('{', r#"{"rope_scaling": null, "rope_parameters": null,"#, 1);
    serde_json::from_str::<Qwen2Config>(&nulls).unwrap().validate().unwrap();
}

/// Expects an error whose message contains every one of `named`.
fn check_refusal(config: &Qwen2Config, named: &[&str]) {
    let message = config.validate().unwrap_err().to_string();
    for named in named {
        assert!(message.contains(named), "`{named}` is not in: {message}");
    }
}

#[test]
fn scaled_rotary_positions_are_refused_in_every_spelling() {
    for kind in ["linear", "dynamic", "yarn", "longrope", "llama3", "mrope"] {
        for spelling in ["type", "rope_type"] {
            let scaling = json!({ spelling: kind, "factor": 4.0 });
            for field in ["rope_scaling", "rope_parameters"] {
                check_refusal(&changed(json!({ field: scaling })), &[field, kind]);
            }
            let nested = json!({"rope_parameters": {"full_attention": scaling}});
            check_refusal(&changed(nested), &["rope_parameters", kind]);
        }
    }
    let theta = json!({"rope_parameters": {"rope_theta": 5.0}, "rope_theta": 6.0});
    check_refusal(&changed(theta), &["rope_parameters", "differs from `rope_theta` 6"]);
    let factor = json!({"rope_parameters": {"partial_rotary_factor": 0.5}});
    check_refusal(&changed(factor), &["partial_rotary_factor"]);
    let window = json!({"rope_parameters": {"sliding_attention": {"rope_theta": 5.0}}});
    check_refusal(&changed(window), &["sliding_attention"]);
}

#[test]
fn unsupported_settings_are_refused_by_name() {
    for (field, value, named) in [
        ("architectures", json!(["LlamaForCausalLM"]), "LlamaForCausalLM"),
        ("model_type", "qwen3".into(), "qwen3"),
        ("hidden_act", "gelu".into(), "gelu"),
        ("rope_scaling", "yarn".into(), "rope_scaling"),
        ("partial_rotary_factor", 0.5.into(), "partial_rotary_factor"),
        ("use_sliding_window", true.into(), "use_sliding_window"),
        ("layer_types", json!(["sliding_attention"]), "sliding_attention"),
        ("layer_types", json!(["full_attention", "full_attention"]), "lists 2 layers"),
        ("layer_types", "full_attention".into(), "layer_types"),
        ("quantization_config", json!({"quant_method": "gptq"}), "quantization_config"),
        ("num_key_value_heads", 3.into(), "num_key_value_heads"),
        ("num_attention_heads", 3.into(), "num_attention_heads"),
        ("head_dim", 7.into(), "7 values"),
        ("vocab_size", 0.into(), "vocab_size"),
        ("max_position_embeddings", 10_000_000_000_000_u64.into(), "at most 4194304 is supported"),
        ("num_hidden_layers", 1_000_000_000.into(), "at most 4096 is supported"),
        ("rms_norm_eps", 0.0.into(), "rms_norm_eps"),
    ] {
        check_refusal(&changed(json!({ field: value })), &[named]);
    }
}
