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
    config
        .validate()
        .map_err(|error| unreadable(&folder.join(CONFIG), error))?;
    let index = folder.join(INDEX);
    let mut tensors = Vec::new();
    if index.exists() {
        let Index { weight_map } = read_json(&index)?;
        let mut shards: Vec<&String> = weight_map.values().collect();
        shards.sort();
        shards.dedup();
        for shard in shards {
            if Path::new(shard).components().count() != 1 {
                return Err(unreadable(
                    &index,
                    format!("the shard `{shard}` is not a plain file name"),
                ));
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
    let weights = if index.exists() {
        index
    } else {
        folder.join(WEIGHTS)
    };
    Qwen2::new(&config, tensors).map_err(|error| unreadable(&weights, error))
}

/// Writes the model into a folder, which is created if need be: `config.json`, `model.safetensors`.
pub fn save(model: &Qwen2, folder: &Path) -> Result<(), AgentError> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let values = model.parameters().iter().map(|(name, var)| {
        let bytes = var
            .flatten_all()?
            .to_vec1::<f32>()?
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
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
    if path.exists() {
        read_json(&path)
    } else {
        Ok(Map::new())
    }
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
                return Err(unreadable(
                    path,
                    format!("tensor `{name}` has the unsupported type {other:?}"),
                ));
            }
        };
        let tensor = Tensor::from_raw_buffer(view.data(), dtype, view.shape(), &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(DType::F32))
            .map_err(|error| unreadable(path, format!("tensor `{name}`: {error}")))?;
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(unreadable(
                path,
                format!("tensor `{name}` holds {} at element {at}", values[at]),
            ));
        }
        tensors.push((name.to_owned(), tensor));
    }
    Ok(tensors)
}

fn unreadable(path: &Path, reason: impl ToString) -> AgentError {
    AgentError::Read {
        path: PathBuf::from(path),
        reason: reason.to_string(),
    }
}

fn unwritable(path: &Path, reason: impl ToString) -> AgentError {
    AgentError::Write {
        path: PathBuf::from(path),
        reason: reason.to_string(),
    }
}
