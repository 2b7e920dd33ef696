//! Adapters created by this crate. Tests against recordings of PEFT are in `tests/it/transformers.rs`.

use std::fs;

use serde_json::{Map, Value, json};

use super::*;
use crate::generation::sampler::Sampler;
use crate::qwen2::tests::common::check_slope;
use crate::qwen2::{LaneTokens, PackedTokens, Qwen2, Qwen2Config};

fn base() -> Qwen2 {
    let config = Qwen2Config {
        hidden_size: 12,
        intermediate_size: 10,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: Some(1),
        max_position_embeddings: 16,
        tie_word_embeddings: false,
        initializer_range: 0.3,
        ..Qwen2Config::small(17)
    };
    Qwen2::random(&config, Seed(5)).unwrap()
}

/// An adapter with nonzero B.
fn adapter(base: &Qwen2) -> Lora {
    let mut config = LoraConfig::new(3, 6.0, &["q_proj", "down_proj", "lm_head"]);
    config.rank_pattern = Map::from_iter([("layers.1.*q_proj".to_owned(), json!(2))]);
    let lora = Lora::random(&base.matrices(), &config, Seed(9)).unwrap();
    for module in lora.modules() {
        let count = module.b.elem_count();
        let b: Vec<f32> = (0..count).map(|i| ((i * 7 + 3) % 11) as f32 * 0.05 - 0.2).collect();
        module.b.set(&Tensor::from_vec(b, module.b.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    lora
}

#[test]
fn a_new_adapter_changes_nothing() {
    let base = base();
    let config = LoraConfig { target_modules: "all-linear".into(), ..LoraConfig::new(4, 8.0, &[]) };
    let lora = Lora::random(&base.matrices(), &config, Seed(0)).unwrap();
    assert_eq!(lora.modules().len(), 14);
    assert_eq!(
        base.adapted(lora.clone()).unwrap().merged().unwrap().fingerprint().unwrap(),
        base.fingerprint().unwrap()
    );
    for module in lora.modules() {
        let bound = 1.0 / (module.a.dim(1).unwrap() as f32).sqrt();
        let a = values(&module.a).unwrap();
        assert!(
            a.iter().all(|value| value.abs() <= bound) && a.iter().any(|value| value.abs() > 0.8 * bound)
        );
    }
    let a =
        |seed| values(&Lora::random(&base.matrices(), &config, Seed(seed)).unwrap().modules()[3].a).unwrap();
    assert_eq!(a(0), a(0));
    assert_ne!(a(0), a(1));
}

#[test]
fn ranks_and_scales_follow_the_configuration() {
    let mut config = LoraConfig::new(4, 8.0, &["q_proj", "up_proj"]);
    config.rank_pattern = Map::from_iter([("layers.1.mlp.up_proj".to_owned(), json!(16))]);
    config.alpha_pattern = Map::from_iter([("q_proj".to_owned(), json!(2))]);
    let check = |config: &LoraConfig, module: &str, expected| {
        assert_eq!(config.rank_and_scale(module).unwrap(), expected, "{module}");
    };
    check(&config, "model.layers.0.mlp.up_proj", Some((4, 2.0)));
    check(&config, "model.layers.1.mlp.up_proj", Some((16, 0.5)));
    check(&config, "model.layers.1.self_attn.q_proj", Some((4, 0.5)));
    check(&config, "model.layers.1.self_attn.k_proj", None);
    check(&config, "model.layers.1.mlp.fine_up_proj", None);
    config.use_rslora = true;
    check(&config, "model.layers.1.mlp.up_proj", Some((16, 2.0)));
    config.target_modules = r".*layers\.0\..*_proj".into();
    check(&config, "model.layers.0.self_attn.k_proj", Some((4, 4.0)));
    check(&config, "model.layers.1.self_attn.k_proj", None);
}

#[test]
fn gradients_match_finite_differences() {
    let base = base();
    let lora = adapter(&base);
    let (ids, positions, targets) = ([3, 1, 4, 1, 5, 9, 2, 6], [1, 3, 6], [4, 5, 6]);
    let tokens = PackedTokens { ids: &ids, lengths: &[5, 3], prefix_of: &[] };
    let model = base.adapted(lora.clone()).unwrap();
    let loss_at = || {
        let stats = model.score(&tokens, &positions, &targets, Sampler::UNTEMPERED).unwrap();
        f64::from(stats.log_prob.sum_all().unwrap().to_scalar::<f32>().unwrap())
    };
    let pass = model.record(&tokens, &positions, &targets, Sampler::UNTEMPERED).unwrap();
    let gradients = pass.backward(&pass.stats().log_prob.sum_all().unwrap()).unwrap();
    let names: Vec<&str> = model.learnable().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["lm_head.lora_A.weight", "lm_head.lora_B.weight"]);
    assert_eq!((names.len(), gradients.len()), (2 * lora.modules().len(), names.len()));
    for ((name, var), gradient) in model.learnable().iter().zip(&gradients) {
        assert!(gradient.iter().any(|g| g.abs() > 1e-6), "`{name}` has a zero gradient");
        check_slope(&format!("`{name}`"), var, gradient, 1e-2, loss_at);
    }
}

#[test]
fn an_adapted_model_equals_the_merged_one_bit_for_bit_and_shares_the_weights() {
    let base = base();
    let lora = adapter(&base);
    let model = base.adapted(lora.clone()).unwrap();
    let merged = base.adapted(lora.clone()).unwrap().merged().unwrap();
    let tokens = PackedTokens { ids: &[3, 1, 4, 1, 5], lengths: &[5], prefix_of: &[] };
    let log_probs = |model: &Qwen2| {
        let stats = model.score(&tokens, &[1, 3], &[4, 5], Sampler::UNTEMPERED).unwrap();
        stats.log_prob.to_vec1::<f32>().unwrap()
    };
    assert_eq!(log_probs(&model), log_probs(&merged));
    assert_ne!(log_probs(&model), log_probs(&base));
    assert_eq!(log_probs(&model.base()), log_probs(&base));
    assert_eq!(model.fingerprint().unwrap(), merged.fingerprint().unwrap());
    // The decoder packs the same sums of weight and adapter.
    let decoded = |model: &Qwen2| {
        let mut cache = crate::qwen2::cpu::kv_cache::KvCache::new(model.config(), 1, 8);
        let lane = LaneTokens { lane: 0, ids: tokens.ids };
        model.decoder().unwrap().decode(&mut cache, &[lane]).unwrap().row(0).to_vec()
    };
    assert_eq!(decoded(&model), decoded(&merged));
    // A frozen copy keeps the adapter: updates of the policy change neither the copy nor the weights.
    let (frozen, before) = (model.frozen_copy().unwrap(), base.fingerprint().unwrap());
    for (_, var) in model.learnable() {
        var.set(&(var.as_tensor() * 2.0).unwrap()).unwrap();
    }
    assert_ne!(log_probs(&model), log_probs(&merged));
    assert_eq!(log_probs(&frozen), log_probs(&merged));
    assert_eq!(base.fingerprint().unwrap(), before);
}

#[test]
fn an_adapter_for_another_model_is_refused() {
    let base = base();
    let wide = Qwen2Config { hidden_size: 16, ..base.config().clone() };
    let other = Qwen2::random(&wide, Seed(1)).unwrap();
    let message = other.adapted(adapter(&base)).unwrap_err().to_string();
    assert!(message.contains("`lm_head.weight` has shape [17, 16]"), "{message}");
}

#[test]
fn a_saved_adapter_is_loaded_bit_for_bit() {
    let (base, folder) = (base(), tempfile::tempdir().unwrap());
    let lora = adapter(&base);
    lora.save(folder.path()).unwrap();
    let loaded = Lora::load(folder.path(), &base.matrices()).unwrap();
    assert_eq!(loaded.config(), lora.config());
    for (a, b) in loaded.modules().iter().zip(lora.modules()) {
        assert_eq!((&a.parameter, a.scale), (&b.parameter, b.scale));
        assert_eq!(values(&a.a).unwrap(), values(&b.a).unwrap());
        assert_eq!(values(&a.b).unwrap(), values(&b.b).unwrap());
    }
    let merged = |lora: &Lora| base.adapted(lora.clone()).unwrap().merged().unwrap().fingerprint().unwrap();
    assert_eq!(merged(&loaded), merged(&lora));
    assert_ne!(merged(&lora), base.fingerprint().unwrap());
}

/// Saves an adapter with some fields replaced; the error of loading it must contain each of `named`.
fn check_refusal(fields: Value, named: &[&str]) {
    let (base, folder) = (base(), tempfile::tempdir().unwrap());
    adapter(&base).save(folder.path()).unwrap();
    let path = folder.path().join("adapter_config.json");
    let mut config: Map<String, Value> = read_json(&path);
    config.extend(fields.as_object().unwrap().clone());
    fs::write(&path, Value::Object(config).to_string()).unwrap();
    let message = Lora::load(folder.path(), &base.matrices()).unwrap_err().to_string();
    for named in named {
        assert!(message.contains(named), "`{named}` is not in: {message}");
    }
}

fn read_json(path: &std::path::Path) -> Map<String, Value> {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn unsupported_settings_are_refused_by_name() {
    for (field, value) in [
        ("peft_type", json!("IA3")),
        ("bias", json!("lora_only")),
        ("use_dora", json!(true)),
        ("fan_in_fan_out", json!(true)),
        ("modules_to_save", json!(["lm_head"])),
        ("layers_to_transform", json!([0])),
        ("lora_bias", json!(true)),
        ("exclude_modules", json!(["q_proj"])),
        ("init_lora_weights", json!("pissa")),
        ("something_new", json!(3)),
        ("r", json!(0)),
        ("target_modules", json!(7)),
        ("rank_pattern", json!({"q_proj": "wide"})),
    ] {
        check_refusal(json!({ field: value }), &["adapter_config.json", &format!("`{field}`")]);
    }
    check_refusal(json!({"rank_pattern": {"(": 1}}), &["not a regular expression"]);
}

#[test]
fn wrong_matrices_are_refused_by_name() {
    let weights = "adapter_model.safetensors";
    let key = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    check_refusal(json!({"r": 2}), &[weights, "has shape [3, ", "expected [2, "]);
    check_refusal(json!({"target_modules": ["down_proj", "lm_head"]}), &[weights, key, "does not belong to"]);
    let all = json!(["q_proj", "k_proj", "down_proj", "lm_head"]);
    check_refusal(json!({"target_modules": all}), &[weights, "it has no `", "k_proj.lora_A.weight`"]);

    let base = base();
    let none = Lora::random(&base.matrices(), &LoraConfig::new(2, 2.0, &["w_proj"]), Seed(0))
        .unwrap_err()
        .to_string();
    assert!(none.contains("target_modules") && none.contains("w_proj"), "{none}");
    let lora = adapter(&base);
    let tied = Qwen2Config { tie_word_embeddings: true, ..base.config().clone() };
    let message = Qwen2::random(&tied, Seed(0)).unwrap().adapted(lora).unwrap_err().to_string();
    assert!(message.contains("lm_head.weight"), "{message}");
}
