//! Saved folders load bit for bit; for damaged ones the error names the file and the tensor.

use candle_core::{DType, Device, Tensor};
use serde_json::json;
use webshop_products::Seed;

use super::*;
use crate::tokenizer::BpeTokenizer;

fn tiny(tied: bool) -> Qwen2 {
    let config = Qwen2Config {
        hidden_size: 8,
        intermediate_size: 6,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: Some(1),
        max_position_embeddings: 16,
        tie_word_embeddings: tied,
        ..Qwen2Config::small(11)
    };
    Qwen2::random(&config, Seed(1)).unwrap()
}

/// Writes tensors as one safetensors file with values of the given type.
fn write(path: &Path, tensors: &[(String, Tensor)], dtype: DType) {
    let tensors: std::collections::HashMap<String, Tensor> =
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.to_dtype(dtype).unwrap())).collect();
    candle_core::safetensors::save(&tensors, path).unwrap();
}

fn tensors(model: &Qwen2) -> Vec<(String, Tensor)> {
    model.parameters().iter().map(|(name, var)| (name.clone(), var.as_detached_tensor())).collect()
}

#[test]
fn a_saved_model_is_loaded_bit_for_bit() {
    for tied in [true, false] {
        let (model, folder) = (tiny(tied), tempfile::tempdir().unwrap());
        let inner = folder.path().join("new/folder");
        save(&model, &inner).unwrap();
        let loaded = load(&inner).unwrap();
        assert_eq!(loaded.fingerprint().unwrap(), model.fingerprint().unwrap());
        assert_eq!(loaded.config(), model.config());
        assert_eq!(names(&inner), ["config.json", "model.safetensors"]);
    }
}

#[test]
fn half_precision_is_widened_and_its_type_returned() {
    for (dtype, weight_type) in
        [(DType::F32, WeightType::F32), (DType::BF16, WeightType::Bf16), (DType::F16, WeightType::F16)]
    {
        let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
        save(&model, folder.path()).unwrap();
        write(&folder.path().join(WEIGHTS), &tensors(&model), dtype);
        let (loaded, found) = load_with_type(folder.path()).unwrap();
        assert_eq!(found, Some(weight_type));
        for ((name, a), (_, b)) in model.parameters().iter().zip(loaded.parameters()) {
            let rounded = a.to_dtype(dtype).unwrap().to_dtype(DType::F32).unwrap();
            assert_eq!(values(&rounded), values(b), "{name}");
        }
    }
    // If tensors have two types, neither is the type of the folder.
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    save(&model, folder.path()).unwrap();
    let mut all: std::collections::HashMap<String, Tensor> = tensors(&model).into_iter().collect();
    let norm = all.get_mut("model.norm.weight").unwrap();
    *norm = norm.to_dtype(DType::BF16).unwrap();
    candle_core::safetensors::save(&all, folder.path().join(WEIGHTS)).unwrap();
    assert_eq!(load_with_type(folder.path()).unwrap().1, None);
}

#[test]
fn half_precision_is_written_with_its_dtype() {
    for (weight_type, name) in [(WeightType::Bf16, "bfloat16"), (WeightType::F16, "float16")] {
        let (mut model, folder) = (tiny(false), tempfile::tempdir().unwrap());
        for field in ["dtype", "torch_dtype"] {
            let mut config = model.config().clone();
            config.other = Map::from_iter([(field.to_owned(), json!("float32"))]);
            model = Qwen2::new(&config, tensors(&model)).unwrap();
            save_as(&model, folder.path(), &SaveOptions { weight_type, ..SaveOptions::default() }).unwrap();
            let (loaded, found) = load_with_type(folder.path()).unwrap();
            assert_eq!(found, Some(weight_type));
            assert_eq!(loaded.config().other, Map::from_iter([(field.to_owned(), json!(name))]));
            for ((_, a), (_, b)) in model.parameters().iter().zip(loaded.parameters()) {
                let rounded = a.to_dtype(weight_type.dtype()).unwrap().to_dtype(DType::F32).unwrap();
                assert_eq!(values(&rounded), values(b));
            }
            // Values rounded once stay the same when they are saved again.
            let again = folder.path().join("again");
            save_as(&loaded, &again, &SaveOptions { weight_type, ..SaveOptions::default() }).unwrap();
            assert_eq!(load(&again).unwrap().fingerprint().unwrap(), loaded.fingerprint().unwrap());
        }
    }
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    let (name, var) = &model.parameters()[0];
    var.set(&(var.as_tensor() + 70_000.0).unwrap()).unwrap();
    let f16 = SaveOptions { weight_type: WeightType::F16, ..SaveOptions::default() };
    let message = save_as(&model, folder.path(), &f16).unwrap_err().to_string();
    assert!(message.contains(name) && message.contains("float16"), "{message}");
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn large_models_are_written_in_files_of_limited_size() {
    let (model, folder) = (tiny(false), tempfile::tempdir().unwrap());
    let sharded = SaveOptions { file_limit_bytes: 1200, ..SaveOptions::default() };
    save(&model, folder.path()).unwrap();
    save_as(&model, folder.path(), &sharded).unwrap();
    let files = names(folder.path());
    assert_eq!(files[..2], ["config.json", "model-00001-of-00004.safetensors"]);
    assert_eq!(files[4..], ["model-00004-of-00004.safetensors", "model.safetensors.index.json"]);
    let index: Value = read_json(&folder.path().join(INDEX)).unwrap();
    let n_values: usize = model.parameters().iter().map(|(_, var)| var.elem_count()).sum();
    assert_eq!(index["metadata"]["total_size"], 4 * n_values);
    assert_eq!(index["weight_map"].as_object().unwrap().len(), model.parameters().len());
    assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());
    // Saving as one file removes the old shards.
    save(&model, folder.path()).unwrap();
    assert_eq!(names(folder.path()), ["config.json", "model.safetensors"]);
}

#[test]
fn a_streamed_random_model_equals_the_one_in_memory() {
    let (model, folder) = (tiny(false), tempfile::tempdir().unwrap());
    let n_written = std::cell::Cell::new(0);
    let options = SaveOptions { file_limit_bytes: 1200, ..SaveOptions::default() };
    let count = |values| n_written.set(n_written.get() + values);
    save_random(model.config(), Seed(1), folder.path(), &options, &count).unwrap();
    assert_eq!(n_written.get(), model.config().n_parameters() as u64);
    assert_eq!(names(folder.path()).len(), 6);
    assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());
}

#[test]
fn values_in_a_file_are_aligned_and_the_format_is_set() {
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    save(&model, folder.path()).unwrap();
    let bytes = fs::read(folder.path().join(WEIGHTS)).unwrap();
    let (header_len, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header_len % 8, 0);
    assert_eq!(metadata.metadata().as_ref().unwrap()["format"], "pt");
}

/// A model in two shards, `a.safetensors` and `b.safetensors`, and its index.
fn in_shards(model: &Qwen2, folder: &Path) -> Value {
    save(model, folder).unwrap();
    fs::remove_file(folder.join(WEIGHTS)).unwrap();
    let all = tensors(model);
    let mut weight_map = Map::new();
    for (shard, tensors) in [("a.safetensors", &all[..7]), ("b.safetensors", &all[7..])] {
        write(&folder.join(shard), tensors, DType::F32);
        weight_map.extend(tensors.iter().map(|(name, _)| (name.clone(), shard.into())));
    }
    let index = json!({ "metadata": {}, "weight_map": weight_map });
    fs::write(folder.join(INDEX), index.to_string()).unwrap();
    index
}

#[test]
fn shards_are_loaded_as_one_model() {
    let (model, folder) = (tiny(false), tempfile::tempdir().unwrap());
    in_shards(&model, folder.path());
    assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());
}

/// Splits a model into shards, calls `spoil`, and expects an error that contains every one of `named`.
fn check_shards(spoil: impl Fn(&Path, Value), named: &[&str]) {
    let (model, folder) = (tiny(false), tempfile::tempdir().unwrap());
    let index = in_shards(&model, folder.path());
    spoil(folder.path(), index);
    check_message(&load(folder.path()).unwrap_err().to_string(), named);
}

fn check_message(message: &str, named: &[&str]) {
    for named in named {
        assert!(message.contains(named), "`{named}` is not in: {message}");
    }
}

#[test]
fn bad_shards_are_refused_by_name() {
    let write_index = |folder: &Path, index: &str| fs::write(folder.join(INDEX), index).unwrap();
    check_shards(|folder, _| fs::remove_file(folder.join("b.safetensors")).unwrap(), &["b.safetensors"]);
    check_shards(
        |folder, index| write_index(folder, &index.to_string().replace("b.safetensors", "../b.safetensors")),
        &[INDEX, "`../b.safetensors` is not a plain file name"],
    );
    check_shards(
        |folder, mut index| {
            index["weight_map"]["model.norm.weight"] = "a.safetensors".into();
            write_index(folder, &index.to_string());
        },
        &[INDEX, "`a.safetensors` does not hold `model.norm.weight`"],
    );
    check_shards(
        |folder, mut index| {
            index["weight_map"].as_object_mut().unwrap().remove("model.norm.weight");
            write_index(folder, &index.to_string());
        },
        &[INDEX, "`b.safetensors` holds `model.norm.weight`"],
    );
    check_shards(|folder, _| write_index(folder, "{\"metadata\": {}}"), &[INDEX, "weight_map"]);
    let shorten = |folder: &Path, n_bytes: usize| {
        let path = folder.join("b.safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len().min(n_bytes)]).unwrap();
    };
    // Truncated inside the values, the header, and its length.
    for n_bytes in [1500, 100, 5] {
        let has = format!("it has {n_bytes} bytes of");
        check_shards(|folder, _| shorten(folder, n_bytes), &["b.safetensors", &has, "truncated"]);
    }
    check_shards(
        |folder, _| fs::write(folder.join("b.safetensors"), "<!DOCTYPE html>").unwrap(),
        &["b.safetensors", "it is not a safetensors file"],
    );
    check_shards(
        |folder, _| {
            let path = folder.join("b.safetensors");
            fs::write(&path, [fs::read(&path).unwrap(), vec![0; 4]].concat()).unwrap();
        },
        &["b.safetensors", "its header describes"],
    );
}

#[test]
fn a_repeated_tied_head_is_ignored() {
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    save(&model, folder.path()).unwrap();
    let mut all = tensors(&model);
    let (_, embedding) = all.iter().find(|(name, _)| name == "model.embed_tokens.weight").unwrap();
    let embedding = embedding.clone();
    all.push(("lm_head.weight".to_owned(), embedding.clone()));
    write(&folder.path().join(WEIGHTS), &all, DType::F32);
    assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());

    // If `lm_head.weight` differs from the embedding, the head is not tied.
    all.last_mut().unwrap().1 = (embedding + 1.0).unwrap();
    write(&folder.path().join(WEIGHTS), &all, DType::F32);
    let message = load(folder.path()).unwrap_err().to_string();
    check_message(&message, &["`lm_head.weight` differs", "tie_word_embeddings"]);
}

/// Saves a model, calls `spoil`, and expects an error of loading that contains every one of `named`.
fn check_refusal(spoil: impl Fn(&Path, Vec<(String, Tensor)>), named: &[&str]) {
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    save(&model, folder.path()).unwrap();
    spoil(folder.path(), tensors(&model));
    check_message(&load(folder.path()).unwrap_err().to_string(), named);
}

#[test]
fn bad_folders_are_refused_by_name() {
    let weights = |folder: &Path| folder.join(WEIGHTS);
    check_refusal(|folder, _| fs::remove_file(folder.join(CONFIG)).unwrap(), &["config.json"]);
    check_refusal(|folder, _| fs::write(folder.join(CONFIG), "{").unwrap(), &["config.json"]);
    check_refusal(
        |folder, _| {
            let text = fs::read_to_string(folder.join(CONFIG)).unwrap();
            fs::write(folder.join(CONFIG), text.replace("silu", "gelu")).unwrap();
        },
        &["config.json", "gelu"],
    );
    check_refusal(|folder, _| fs::remove_file(weights(folder)).unwrap(), &["model.safetensors"]);
    check_refusal(
        |folder, _| {
            let bytes = fs::read(weights(folder)).unwrap();
            fs::write(weights(folder), &bytes[..bytes.len() - 1]).unwrap();
        },
        &["model.safetensors"],
    );
    check_refusal(
        |folder, mut all| {
            all.retain(|(name, _)| name != "model.norm.weight");
            write(&weights(folder), &all, DType::F32);
        },
        &["model.safetensors", "`model.norm.weight` is missing"],
    );
    check_refusal(
        |folder, mut all| {
            all.push(("model.extra".to_owned(), all[0].1.clone()));
            write(&weights(folder), &all, DType::F32);
        },
        &["`model.extra` does not belong"],
    );
    let spoiled = |values: Vec<f32>| {
        move |folder: &Path, mut all: Vec<(String, Tensor)>| {
            let norm = all.iter_mut().find(|(name, _)| name == "model.norm.weight").unwrap();
            norm.1 = Tensor::new(values.as_slice(), &Device::Cpu).unwrap();
            write(&weights(folder), &all, DType::F32);
        }
    };
    check_refusal(spoiled(vec![1.0; 9]), &["`model.norm.weight` has shape [9], expected [8]"]);
    let mut values = vec![1.0; 8];
    values[3] = f32::NAN;
    check_refusal(spoiled(values), &["model.safetensors", "`model.norm.weight` holds NaN at element 3"]);
    check_refusal(
        |folder, mut all| {
            all[0].1 = all[0].1.to_dtype(DType::F64).unwrap();
            let all: std::collections::HashMap<String, Tensor> = all.into_iter().collect();
            candle_core::safetensors::save(&all, weights(folder)).unwrap();
        },
        &["unsupported type F64"],
    );
}

#[test]
fn a_failed_write_names_the_file_and_keeps_the_old_one() {
    let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "x").unwrap();
    assert!(save(&model, &in_the_way).unwrap_err().to_string().contains("file"));
    assert_eq!(fs::read_to_string(&in_the_way).unwrap(), "x");

    // A file cannot be renamed over a folder.
    let folder = folder.path().join("model");
    fs::create_dir_all(folder.join(WEIGHTS)).unwrap();
    let message = save(&model, &folder).unwrap_err().to_string();
    assert!(message.contains("model.safetensors"), "{message}");
    let left = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(webshop_products::PARTIAL)));
}

#[test]
fn a_generation_config_is_written_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    assert!(load_generation_config(folder.path()).unwrap().is_empty());
    let Value::Object(values) = serde_json::json!({"temperature": 0.7, "eos_token_id": [1, 2]}) else {
        unreachable!("the literal is an object")
    };
    save_generation_config(folder.path(), &values).unwrap();
    assert_eq!(load_generation_config(folder.path()).unwrap(), values);
}

/// A tokenizer of at most 300 ids whose `<|im_end|>` has the id 2.
fn tokenizer() -> BpeTokenizer {
    BpeTokenizer::train(["a lamp and a black lamp"], 300, &[]).unwrap()
}

/// The stop tokens of a folder with these ids in its files and this `eos_token`.
fn stop_tokens(config: Value, generation: Value, eos_token: Value) -> Result<Vec<u32>, String> {
    let (folder, tokenizer) = (tempfile::tempdir().unwrap(), tokenizer());
    let with_ids = |ids: Value| Map::from_iter([("eos_token_id".to_owned(), ids)]);
    let shape = Qwen2Config { other: with_ids(config), ..Qwen2Config::small(tokenizer.vocab_size()) };
    tokenizer.save(folder.path()).unwrap();
    save_generation_config(folder.path(), &with_ids(generation)).unwrap();
    let fields = json!({ "eos_token": eos_token });
    fs::write(folder.path().join("tokenizer_config.json"), fields.to_string()).unwrap();
    let stop = StopTokens::load(folder.path(), &shape, &tokenizer);
    stop.map(|stop| stop.ids().to_vec()).map_err(|error| error.to_string())
}

#[test]
fn stop_tokens_are_collected_from_all_files() {
    let end = || json!("<|im_end|>");
    assert_eq!(stop_tokens(json!(2), json!([2, 0]), end()), Ok(vec![0, 2]));
    assert_eq!(stop_tokens(json!(0), json!([2]), json!({"content": "<|im_end|>"})), Ok(vec![0, 2]));
    assert_eq!(stop_tokens(json!(null), json!(null), end()), Ok(vec![2]));
    assert_eq!(stop_tokens(json!(1), json!(null), json!(null)), Ok(vec![1]));
    assert_eq!(stop_tokens(json!(null), json!(null), json!(null)), Ok(vec![]));
}

#[test]
fn contradictory_stop_tokens_are_refused() {
    let check = |config, generation, eos_token, named: &[&str]| {
        check_message(&stop_tokens(config, generation, eos_token).unwrap_err(), named);
    };
    let end = || json!("<|im_end|>");
    let no_token = "`eos_token_id` 9999 is not in `tokenizer.json`";
    check(json!(9999), json!(null), end(), &["/config.json", no_token]);
    check(json!(null), json!([2, 9999]), end(), &["generation_config.json", no_token]);
    check(json!("2"), json!(null), end(), &["/config.json", "not a token id"]);
    check(json!(0), json!([1]), end(), &["tokenizer_config.json", "id 2", "[0, 1]"]);
    check(json!(2), json!(2), json!("<|eot|>"), &["tokenizer_config.json", "`<|eot|>` is not in"]);
}

#[test]
fn a_tokenizer_with_more_ids_than_the_model_is_refused() {
    let (folder, tokenizer) = (tempfile::tempdir().unwrap(), tokenizer());
    let shape = Qwen2Config::small(tokenizer.vocab_size() - 1);
    let message = StopTokens::load(folder.path(), &shape, &tokenizer).unwrap_err().to_string();
    let highest = format!("ids up to {}", tokenizer.vocab_size() - 1);
    check_message(&message, &["tokenizer.json", &highest, "`vocab_size`", "own tokenizer"]);
}
