//! Model folders in the Hugging Face layout: `config.json`, `model.safetensors` or its shards, and
//! `generation_config.json`.
//!
//! [`load`] reads a folder into a [`Qwen2`] (f32, bf16 and f16 files become f32), refusing by name
//! what is missing, misshapen, truncated or not a number. [`save`] writes f32, each file under another
//! name first and renamed when complete, so that a crash leaves the old file or the new one. The
//! tokenizer's files in the same folder are [`crate::tokenizer`]'s. Nothing is downloaded.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::AgentError;
use crate::qwen2::{Qwen2, Qwen2Config};

const CONFIG: &str = "config.json";
const GENERATION_CONFIG: &str = "generation_config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// `model.safetensors.index.json`: which shard holds which tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Reads the model of a folder.
pub fn load(folder: &Path) -> Result<Qwen2, AgentError> {
    let config: Qwen2Config = read_json(&folder.join(CONFIG))?;
    config.validate().map_err(|error| unreadable(&folder.join(CONFIG), error))?;
    let index = folder.join(INDEX);
    let mut tensors = Vec::new();
    if index.exists() {
        let Index { weight_map } = read_json(&index)?;
        let mut shards: Vec<&String> = weight_map.values().collect();
        shards.sort();
        shards.dedup();
        for shard in shards {
            if Path::new(shard).components().count() != 1 {
                return Err(unreadable(&index, format!("the shard `{shard}` is not a plain file name")));
            }
            tensors.extend(read_weights(&folder.join(shard))?);
        }
    } else {
        tensors = read_weights(&folder.join(WEIGHTS))?;
    }
    if config.tie_word_embeddings {
        // Some writers repeat the tied matrix under the head's name.
        tensors.retain(|(name, _)| name != "lm_head.weight");
    }
    let weights = if index.exists() { index } else { folder.join(WEIGHTS) };
    Qwen2::new(&config, tensors).map_err(|error| unreadable(&weights, error))
}

/// Writes the model into a folder, which is created if need be: `config.json`, `model.safetensors`.
pub fn save(model: &Qwen2, folder: &Path) -> Result<(), AgentError> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let values = model.parameters().iter().map(|(name, var)| {
        let bytes =
            var.flatten_all()?.to_vec1::<f32>()?.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok((name, var.dims().to_vec(), bytes))
    });
    let values: Vec<(&String, Vec<usize>, Vec<u8>)> = values.collect::<Result<_, AgentError>>()?;
    let weights = folder.join(WEIGHTS);
    let views = values
        .iter()
        .map(|(name, dims, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, dims.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    let bytes = views.and_then(|views| safetensors::serialize(views, None));
    write_atomically(&weights, &bytes.map_err(|error| unwritable(&weights, error))?)?;
    write_json(&folder.join(CONFIG), model.config())
}

/// Reads `generation_config.json` as it is; an absent file is an empty object.
pub fn load_generation_config(folder: &Path) -> Result<Map<String, Value>, AgentError> {
    let path = folder.join(GENERATION_CONFIG);
    if path.exists() { read_json(&path) } else { Ok(Map::new()) }
}

/// Writes `generation_config.json`.
pub fn save_generation_config(folder: &Path, values: &Map<String, Value>) -> Result<(), AgentError> {
    write_json(&folder.join(GENERATION_CONFIG), values)
}

/// Writes a file under a temporary name beside its place, makes it durable, and renames it.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = fs::File::create(&partial)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        // The half-written file is useless; that it may not be removable either adds nothing.
        let _ = fs::remove_file(&partial);
        unwritable(path, error)
    })
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), AgentError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| unwritable(path, error))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, AgentError> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    serde_json::from_str(&text).map_err(|error| unreadable(path, error))
}

/// The tensors of one file, as f32.
fn read_weights(path: &Path) -> Result<Vec<(String, Tensor)>, AgentError> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, error))?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| unreadable(path, error))?;
    let mut tensors = Vec::new();
    for (name, view) in file.iter() {
        let dtype = match view.dtype() {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            other => {
                return Err(unreadable(path, format!("tensor `{name}` has the unsupported type {other:?}")));
            }
        };
        let tensor = Tensor::from_raw_buffer(view.data(), dtype, view.shape(), &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(DType::F32))
            .map_err(|error| unreadable(path, format!("tensor `{name}`: {error}")))?;
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(unreadable(path, format!("tensor `{name}` holds {} at element {at}", values[at])));
        }
        tensors.push((name.to_owned(), tensor));
    }
    Ok(tensors)
}

fn unreadable(path: &Path, reason: impl ToString) -> AgentError {
    AgentError::Read { path: PathBuf::from(path), reason: reason.to_string() }
}

fn unwritable(path: &Path, reason: impl ToString) -> AgentError {
    AgentError::Write { path: PathBuf::from(path), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webshop_products::Seed;

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

    /// Writes tensors as one safetensors file of the given type.
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
            let mut names: Vec<_> =
                fs::read_dir(&inner).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["config.json", "model.safetensors"]);
        }
    }

    #[test]
    fn half_precision_is_widened() {
        for (dtype, tolerance) in [(DType::BF16, 1.0 / 256.0), (DType::F16, 1.0 / 2048.0)] {
            let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
            save(&model, folder.path()).unwrap();
            write(&folder.path().join(WEIGHTS), &tensors(&model), dtype);
            let loaded = load(folder.path()).unwrap();
            for ((_, a), (_, b)) in model.parameters().iter().zip(loaded.parameters()) {
                let (a, b) = (a.flatten_all().unwrap(), b.flatten_all().unwrap());
                for (a, b) in a.to_vec1::<f32>().unwrap().iter().zip(b.to_vec1::<f32>().unwrap()) {
                    assert!((a - b).abs() <= a.abs() * tolerance + 1e-7, "{a} became {b}");
                }
            }
        }
    }

    #[test]
    fn shards_are_put_together() {
        let (model, folder) = (tiny(false), tempfile::tempdir().unwrap());
        save(&model, folder.path()).unwrap();
        fs::remove_file(folder.path().join(WEIGHTS)).unwrap();
        let all = tensors(&model);
        let mut weight_map = Map::new();
        for (shard, tensors) in [("a.safetensors", &all[..7]), ("b.safetensors", &all[7..])] {
            write(&folder.path().join(shard), tensors, DType::F32);
            weight_map.extend(tensors.iter().map(|(name, _)| (name.clone(), shard.into())));
        }
        let index = serde_json::json!({ "metadata": {}, "weight_map": weight_map });
        fs::write(folder.path().join(INDEX), index.to_string()).unwrap();
        assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());

        fs::remove_file(folder.path().join("b.safetensors")).unwrap();
        let message = load(folder.path()).unwrap_err().to_string();
        assert!(message.contains("b.safetensors"), "{message}");
        let index = index.to_string().replace("b.safetensors", "../b.safetensors");
        fs::write(folder.path().join(INDEX), index).unwrap();
        let message = load(folder.path()).unwrap_err().to_string();
        assert!(message.contains("not a plain file name"), "{message}");
    }

    #[test]
    fn a_repeated_tied_head_is_passed_over() {
        let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
        save(&model, folder.path()).unwrap();
        let mut all = tensors(&model);
        let (_, embedding) = all.iter().find(|(name, _)| name == "model.embed_tokens.weight").unwrap();
        all.push(("lm_head.weight".to_owned(), embedding.clone()));
        write(&folder.path().join(WEIGHTS), &all, DType::F32);
        assert_eq!(load(folder.path()).unwrap().fingerprint().unwrap(), model.fingerprint().unwrap());
    }

    /// Saves a model, spoils the folder, and expects every one of `named` in the error of loading it.
    fn check_refusal(spoil: impl Fn(&Path, Vec<(String, Tensor)>), named: &[&str]) {
        let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
        save(&model, folder.path()).unwrap();
        spoil(folder.path(), tensors(&model));
        let message = load(folder.path()).unwrap_err().to_string();
        for named in named {
            assert!(message.contains(named), "`{named}` is not in: {message}");
        }
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
    fn a_failed_write_names_the_file_and_leaves_the_old_one() {
        let (model, folder) = (tiny(true), tempfile::tempdir().unwrap());
        let in_the_way = folder.path().join("file");
        fs::write(&in_the_way, "x").unwrap();
        assert!(save(&model, &in_the_way).unwrap_err().to_string().contains("file"));
        assert_eq!(fs::read_to_string(&in_the_way).unwrap(), "x");

        // A folder in the place of the temporary file cannot be opened for writing.
        save(&model, folder.path()).unwrap();
        fs::create_dir(folder.path().join("model.safetensors.partial")).unwrap();
        let before = fs::read(folder.path().join(WEIGHTS)).unwrap();
        let message = save(&tiny(false), folder.path()).unwrap_err().to_string();
        assert!(message.contains("model.safetensors"), "{message}");
        assert_eq!(fs::read(folder.path().join(WEIGHTS)).unwrap(), before);
    }

    #[test]
    fn generation_config_is_kept_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load_generation_config(folder.path()).unwrap().is_empty());
        let Value::Object(values) = serde_json::json!({"temperature": 0.7, "eos_token_id": [1, 2]}) else {
            unreachable!("the literal is an object")
        };
        save_generation_config(folder.path(), &values).unwrap();
        assert_eq!(load_generation_config(folder.path()).unwrap(), values);
    }
}
