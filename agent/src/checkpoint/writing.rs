//! Writing model folders.
//!
//! [`SaveOptions`] say in which type and how many bytes a file. A model of several files has the names and
//! the index that transformers gives them. Tensors are converted one by one while they are written, so that
//! saving needs no second copy of the model.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use candle_core::{DType, Tensor, Var};
use safetensors::tensor::{Metadata, TensorInfo, View};
use serde_json::{Map, json};

use super::weights::WeightType;
use super::{CONFIG, INDEX, WEIGHTS, unwritable};
use crate::error::AgentError;
use crate::qwen2::{Qwen2, Qwen2Config};

/// How weights are written.
#[derive(Clone, Copy, Debug)]
pub struct SaveOptions {
    /// The type of every tensor.
    pub weight_type: WeightType,
    /// A file that would have more bytes of weights than this becomes several; one tensor is never divided.
    pub file_limit_bytes: u64,
}

impl Default for SaveOptions {
    /// f32, in files of up to 5 GB, which every file system and upload takes.
    fn default() -> Self {
        Self { weight_type: WeightType::F32, file_limit_bytes: 5_000_000_000 }
    }
}

/// Writes the model into a folder, which is created if need be: `config.json` and the weights, as f32.
pub fn save(model: &Qwen2, folder: &Path) -> Result<(), AgentError> {
    save_as(model, folder, &SaveOptions::default())
}

/// As [`save`], with a choice. Weight files of an earlier model in the folder are replaced or removed.
pub fn save_as(model: &Qwen2, folder: &Path, options: &SaveOptions) -> Result<(), AgentError> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let shards = divide(model.parameters(), options);
    let n_shards = shards.len();
    let earlier = weight_files(folder)?;
    let mut written = Vec::new();
    let mut weight_map = Map::new();
    let mut total_size = 0;
    for (shard_idx, shard) in shards.into_iter().enumerate() {
        let name = match n_shards {
            1 => WEIGHTS.to_owned(),
            _ => format!("model-{:05}-of-{n_shards:05}.safetensors", shard_idx + 1),
        };
        for (tensor_name, tensor) in &shard {
            total_size += n_bytes_of(tensor, options.weight_type);
            weight_map.insert(tensor_name.clone(), name.as_str().into());
        }
        write_tensors(&folder.join(&name), &shard, options.weight_type)?;
        written.push(folder.join(name));
    }
    if n_shards > 1 {
        let index = json!({ "metadata": { "total_size": total_size }, "weight_map": weight_map });
        write_json(&folder.join(INDEX), &index)?;
        written.push(folder.join(INDEX));
    }
    write_json(&folder.join(CONFIG), &stated(model.config(), options.weight_type))?;
    for file in earlier.into_iter().filter(|file| !written.contains(file)) {
        fs::remove_file(&file).map_err(|error| unwritable(&file, error))?;
    }
    Ok(())
}

/// Fills files in order of name, each up to the limit.
fn divide(tensors: &[(String, Var)], options: &SaveOptions) -> Vec<Vec<(String, Tensor)>> {
    let mut files: Vec<Vec<(String, Tensor)>> = vec![Vec::new()];
    let mut n_bytes = 0;
    for (name, var) in tensors {
        let more = n_bytes_of(var, options.weight_type);
        if n_bytes + more > options.file_limit_bytes && n_bytes > 0 {
            files.push(Vec::new());
            n_bytes = 0;
        }
        n_bytes += more;
        let tensor = (name.clone(), var.as_detached_tensor());
        files.last_mut().expect("there is one from the start").push(tensor);
    }
    files
}

fn n_bytes_of(tensor: &Tensor, weight_type: WeightType) -> u64 {
    (tensor.elem_count() * weight_type.dtype().size_in_bytes()) as u64
}

/// Writes one safetensors file, tensors in the given order.
pub(crate) fn write_tensors(
    path: &Path,
    tensors: &[(String, Tensor)],
    weight_type: WeightType,
) -> Result<(), AgentError> {
    let header = header(tensors, weight_type).map_err(|error| unwritable(path, error))?;
    atomically(path, |partial| {
        let mut file = BufWriter::new(File::create(partial).map_err(told)?);
        file.write_all(&(header.len() as u64).to_le_bytes()).map_err(told)?;
        file.write_all(&header).map_err(told)?;
        for (name, tensor) in tensors {
            let bytes = in_type(tensor, weight_type).map_err(|error| format!("tensor `{name}` {error}"))?;
            file.write_all(&bytes).map_err(told)?;
        }
        file.into_inner().map_err(told)?.sync_all().map_err(told)
    })
}

/// What precedes the values: names, types, shapes and places as JSON, blank up to a multiple of 8 bytes so
/// that the values are aligned.
fn header(tensors: &[(String, Tensor)], weight_type: WeightType) -> Result<Vec<u8>, String> {
    let mut end = 0;
    let infos = tensors.iter().map(|(name, tensor)| {
        let begin = end;
        end += n_bytes_of(tensor, weight_type) as usize;
        let (dtype, shape) = (weight_type.in_file(), tensor.dims().to_vec());
        (name.clone(), TensorInfo { dtype, shape, data_offsets: (begin, end) })
    });
    // Readers of old ask who wrote the file, and `pt` is the answer that all of them know.
    let origin = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let metadata = Metadata::new(Some(origin), infos.collect()).map_err(told)?;
    let mut header = serde_json::to_vec(&metadata).map_err(told)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// The bytes of a tensor in a type. An f16 holds nothing beyond 65,504; such a weight is refused.
fn in_type(tensor: &Tensor, weight_type: WeightType) -> Result<Vec<u8>, String> {
    let narrow = tensor.to_dtype(weight_type.dtype()).map_err(told)?;
    if weight_type != WeightType::F32 {
        let values = narrow.to_dtype(DType::F32).and_then(|wide| wide.flatten_all()?.to_vec1::<f32>());
        if let Some(at) = values.map_err(told)?.iter().position(|value| !value.is_finite()) {
            return Err(format!("holds what {} cannot, at element {at}", weight_type.name()));
        }
    }
    Ok(View::data(&narrow).into_owned())
}

/// The configuration with the type that the files have, where it speaks of one: transformers loads in that
/// type.
fn stated(config: &Qwen2Config, weight_type: WeightType) -> Qwen2Config {
    let mut config = config.clone();
    for field in ["torch_dtype", "dtype"] {
        if let Some(value) = config.other.get_mut(field) {
            *value = weight_type.name().into();
        }
    }
    if weight_type != WeightType::F32 && !config.other.contains_key("torch_dtype") {
        config.other.entry("dtype").or_insert_with(|| weight_type.name().into());
    }
    config
}

/// The weight files that a folder holds, those of an index too.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, AgentError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unwritable(folder, error))? {
        let path = entry.map_err(|error| unwritable(folder, error))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_shard = name.starts_with("model-") && name.ends_with(".safetensors") && name.contains("-of-");
        if is_shard || name == WEIGHTS || name == INDEX {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a file under a temporary name beside its place, makes it durable, and renames it.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    atomically(path, |partial| {
        let written =
            File::create(partial).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(told)
    })
}

/// Has a file written beside its place and renames it.
fn atomically(path: &Path, write: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), AgentError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = write(&partial).and_then(|()| fs::rename(&partial, path).map_err(told));
    written.map_err(|error| {
        // The half-written file is useless; that it may not be removable either adds nothing.
        let _ = fs::remove_file(&partial);
        unwritable(path, error)
    })
}

pub(crate) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), AgentError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| unwritable(path, error))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

fn told(error: impl ToString) -> String {
    error.to_string()
}
