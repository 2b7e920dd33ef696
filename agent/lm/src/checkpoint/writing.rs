//! Writing model folders.
//!
//! [`SaveOptions`] hold the type and the file size. Shards and their index are named as transformers names
//! them. Tensors are converted one by one while they are written, so that saving needs no second copy of the
//! model.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::{DType, Tensor};
use rayon::prelude::*;
use safetensors::tensor::{Metadata, TensorInfo, View};
use serde_json::{Map, json};
use webshop_products::{Seed, atomically};

use crate::checkpoint::weights::WeightType;
use crate::checkpoint::{CONFIG, INDEX, WEIGHTS, unwritable};
use crate::error::LmError;
use crate::qwen2::{Qwen2, Qwen2Config, parameter_shapes, random_parameter};

/// Number of parameters of a random model that are generated in parallel: those of two layers.
const GENERATED_AT_ONCE: usize = 24;

/// How weights are written.
#[derive(Clone, Copy, Debug)]
pub struct SaveOptions {
    /// The type of every tensor.
    pub weight_type: WeightType,
    /// Maximum number of bytes of weights in a file; a tensor is never split.
    pub file_limit_bytes: u64,
}

impl Default for SaveOptions {
    /// f32, in files of at most 5 GB, the default of transformers.
    fn default() -> Self {
        Self { weight_type: WeightType::F32, file_limit_bytes: 5_000_000_000 }
    }
}

/// Writes `config.json` and the weights as f32, including an adapter's additions, into a folder, which is
/// created if it does not exist.
pub fn save(model: &Qwen2, folder: &Path) -> Result<(), LmError> {
    save_as(model, folder, &SaveOptions::default())
}

/// As [`save`], with options. Weight files of an earlier model in the folder are replaced or removed.
pub fn save_as(model: &Qwen2, folder: &Path, options: &SaveOptions) -> Result<(), LmError> {
    write_folder(model.config(), folder, options, &mut |idx| Ok(model.weight(idx)))
}

/// Writes only `config.json` into an existing folder.
pub fn save_config(config: &Qwen2Config, folder: &Path) -> Result<(), LmError> {
    write_json(&folder.join(CONFIG), &with_dtype(config, WeightType::F32))
}

/// Writes the model of [`Qwen2::random`], a few parameters in memory at a time. Calls `written` with the
/// number of values of each parameter, before it is written.
pub fn save_random(
    config: &Qwen2Config,
    seed: Seed,
    folder: &Path,
    options: &SaveOptions,
    written: &dyn Fn(u64),
) -> Result<(), LmError> {
    config.validate()?;
    let shapes = parameter_shapes(config);
    // Parameters are independent of each other, so several are generated in parallel.
    let mut ahead: VecDeque<Tensor> = VecDeque::new();
    write_folder(config, folder, options, &mut |idx| {
        if ahead.is_empty() {
            let end = (idx + GENERATED_AT_ONCE).min(shapes.len());
            let generate = |idx: usize| random_parameter(config, seed, idx, &shapes[idx].0, &shapes[idx].1);
            ahead = (idx..end).into_par_iter().map(generate).collect::<Result<_, _>>()?;
        }
        let tensor = ahead.pop_front().expect("just filled");
        written(tensor.elem_count() as u64);
        Ok(tensor)
    })
}

/// Returns the values of a parameter by index; called once for each, in order.
type Source<'s> = dyn FnMut(usize) -> Result<Tensor, LmError> + 's;

fn write_folder(
    config: &Qwen2Config,
    folder: &Path,
    options: &SaveOptions,
    tensor: &mut Source,
) -> Result<(), LmError> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let shapes = parameter_shapes(config);
    let files = divide(&shapes, options);
    let earlier = weight_files(folder)?;
    let mut written = Vec::new();
    let mut weight_map = Map::new();
    for (file_idx, range) in files.iter().enumerate() {
        let name = match files.len() {
            1 => WEIGHTS.to_owned(),
            n_files => format!("model-{:05}-of-{n_files:05}.safetensors", file_idx + 1),
        };
        weight_map.extend(shapes[range.clone()].iter().map(|(of, _)| (of.clone(), name.as_str().into())));
        let path = folder.join(&name);
        let start = range.start;
        write_file(&path, &shapes[range.clone()], options.weight_type, &mut |idx| tensor(start + idx))?;
        written.push(path);
    }
    if files.len() > 1 {
        let total_size: u64 = shapes.iter().map(|(_, shape)| n_bytes_of(shape, options.weight_type)).sum();
        let index = json!({ "metadata": { "total_size": total_size }, "weight_map": weight_map });
        write_json(&folder.join(INDEX), &index)?;
        written.push(folder.join(INDEX));
    }
    write_json(&folder.join(CONFIG), &with_dtype(config, options.weight_type))?;
    for file in earlier.into_iter().filter(|file| !written.contains(file)) {
        fs::remove_file(&file).map_err(|error| unwritable(&file, error))?;
    }
    Ok(())
}

/// The range of parameters in each file: in order of name, each file filled up to the limit.
fn divide(shapes: &[(String, Vec<usize>)], options: &SaveOptions) -> Vec<Range<usize>> {
    let mut files = Vec::new();
    let (mut start, mut n_bytes) = (0, 0);
    for (idx, (_, shape)) in shapes.iter().enumerate() {
        let more = n_bytes_of(shape, options.weight_type);
        if n_bytes + more > options.file_limit_bytes && idx > start {
            files.push(start..idx);
            (start, n_bytes) = (idx, 0);
        }
        n_bytes += more;
    }
    files.push(start..shapes.len());
    files
}

fn n_bytes_of(shape: &[usize], weight_type: WeightType) -> u64 {
    (shape.iter().product::<usize>() * weight_type.dtype().size_in_bytes()) as u64
}

/// Writes tensors into one safetensors file.
pub(crate) fn write_tensors(
    path: &Path,
    tensors: &[(String, Tensor)],
    weight_type: WeightType,
) -> Result<(), LmError> {
    let shapes: Vec<_> =
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.dims().to_vec())).collect();
    write_file(path, &shapes, weight_type, &mut |idx| Ok(tensors[idx].1.clone()))
}

/// Writes one safetensors file; `tensor` returns the values of each of `shapes` by index, in order.
fn write_file(
    path: &Path,
    shapes: &[(String, Vec<usize>)],
    weight_type: WeightType,
    tensor: &mut Source,
) -> Result<(), LmError> {
    let header = header(shapes, weight_type).map_err(|error| unwritable(path, error))?;
    atomically(path, |partial| {
        let mut file = BufWriter::new(File::create(partial)?);
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        for (idx, (name, _)) in shapes.iter().enumerate() {
            let tensor = tensor(idx).map_err(io::Error::other)?;
            let bytes = in_type(&tensor, weight_type)
                .map_err(|error| io::Error::other(format!("tensor `{name}` {error}")))?;
            file.write_all(&bytes)?;
        }
        file.into_inner()?.sync_all()
    })
    .map_err(|error| unwritable(path, error))
}

/// The header of a safetensors file: names, types, shapes and offsets as JSON, padded with spaces to a
/// multiple of 8 bytes so that the values are aligned.
fn header(shapes: &[(String, Vec<usize>)], weight_type: WeightType) -> io::Result<Vec<u8>> {
    let mut end = 0;
    let infos = shapes.iter().map(|(name, shape)| {
        let begin = end;
        end += n_bytes_of(shape, weight_type) as usize;
        let info =
            TensorInfo { dtype: weight_type.in_file(), shape: shape.clone(), data_offsets: (begin, end) };
        (name.clone(), info)
    });
    // Older versions of transformers refuse a file whose metadata lacks `format`.
    let format = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let metadata = Metadata::new(Some(format), infos.collect()).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata).map_err(io::Error::other)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// The bytes of a tensor converted to a type. Fails if a value becomes infinite: the largest f16 is 65,504.
fn in_type(tensor: &Tensor, weight_type: WeightType) -> io::Result<Vec<u8>> {
    let narrow = tensor.to_dtype(weight_type.dtype()).map_err(io::Error::other)?;
    if weight_type != WeightType::F32 {
        let values = narrow.to_dtype(DType::F32).and_then(|wide| wide.flatten_all()?.to_vec1::<f32>());
        if let Some(at) = values.map_err(io::Error::other)?.iter().position(|value| !value.is_finite()) {
            let reason = format!("holds a value beyond the range of {} at element {at}", weight_type.name());
            return Err(io::Error::other(reason));
        }
    }
    Ok(View::data(&narrow).into_owned())
}

/// The configuration with `dtype` or `torch_dtype`, whichever it has, set to the type of the weights:
/// transformers loads them in that type. A configuration without either gets `dtype`, except for f32.
fn with_dtype(config: &Qwen2Config, weight_type: WeightType) -> Qwen2Config {
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

/// The weight files in a folder: shards, the single file and the index, sorted by path.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, LmError> {
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

/// Writes a file as [`webshop_products::write_atomically`] does. After a failure an older file is unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), LmError> {
    webshop_products::write_atomically(path, bytes).map_err(|error| unwritable(path, error))
}

pub(crate) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), LmError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| unwritable(path, error.into()))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}
