//! Reading safetensors, tensor by tensor.
//!
//! [`WeightFiles::open`] reads the headers of a folder's `model.safetensors`, or of the shards listed in its
//! index. [`WeightFiles::check`] compares them with the model's shape. [`WeightFiles::read`] reads one tensor
//! after the other, so that at most one is in memory twice. Files are not memory-mapped: if a mapped file
//! shrinks, the process crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Deserialize;

use crate::checkpoint::{HEAD, INDEX, WEIGHTS, invalid, read_json, unreadable};
use crate::error::LmError;
use crate::qwen2::{Qwen2Config, parameter_shapes};

/// Bytes that state the length of the header.
const LENGTH_BYTES: u64 = 8;

/// The longest header that safetensors files may have.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The type of a weight in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightType {
    /// 32 bits, IEEE 754 single precision.
    F32,
    /// 16 bits, the upper half of an f32.
    Bf16,
    /// 16 bits, IEEE 754 half precision.
    F16,
}

impl WeightType {
    /// The name in `config.json` (`dtype`).
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::Bf16 => "bfloat16",
            Self::F16 => "float16",
        }
    }

    pub(super) fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::Bf16 => DType::BF16,
            Self::F16 => DType::F16,
        }
    }

    /// The safetensors type.
    pub(super) fn in_file(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }

    fn of(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::F32 => Some(Self::F32),
            Dtype::BF16 => Some(Self::Bf16),
            Dtype::F16 => Some(Self::F16),
            _ => None,
        }
    }
}

/// `model.safetensors.index.json`: the file name of the shard of each tensor.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The open weight files of a model folder.
#[derive(Debug)]
pub struct WeightFiles {
    path: PathBuf,
    shards: Vec<Shard>,
    /// The shard of each tensor.
    places: BTreeMap<String, usize>,
}

/// One safetensors file.
#[derive(Debug)]
pub(crate) struct Shard {
    path: PathBuf,
    file: File,
    header: Metadata,
    /// Offset of the first tensor.
    start: u64,
}

impl WeightFiles {
    /// Opens `model.safetensors` or, if it does not exist, the shards listed in the index, and reads their
    /// headers.
    pub fn open(folder: &Path) -> Result<Self, LmError> {
        let index = folder.join(INDEX);
        if folder.join(WEIGHTS).exists() || !index.exists() {
            let path = folder.join(WEIGHTS);
            let shard = Shard::open(&path)?;
            let places = shard.names().map(|name| (name, 0)).collect();
            return Ok(Self { path, shards: vec![shard], places });
        }
        let Index { weight_map } = read_json(&index)?;
        let names: BTreeSet<&String> = weight_map.values().collect();
        let mut shards = Vec::new();
        let mut places = BTreeMap::new();
        for name in names {
            if Path::new(name).components().count() != 1 {
                return Err(invalid(&index, format!("the shard `{name}` is not a plain file name")));
            }
            let shard = Shard::open(&folder.join(name))?;
            check_against_index(&shard, name, &weight_map, &index)?;
            places.extend(shard.names().map(|tensor| (tensor, shards.len())));
            shards.push(shard);
        }
        Ok(Self { path: index, shards, places })
    }

    /// The path of `model.safetensors`, or of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of weight files.
    pub fn n_files(&self) -> usize {
        self.shards.len()
    }

    /// The type of the tensors if all have the same type and it is supported.
    pub fn weight_type(&self) -> Option<WeightType> {
        let mut types = self.places.iter().map(|(name, &shard)| self.shards[shard].info(name).dtype);
        let first = types.next()?;
        types.all(|dtype| dtype == first).then(|| WeightType::of(first)).flatten()
    }

    /// Fails, naming the tensor, unless names and shapes are those of `config` and all types are supported. A
    /// copy of a tied head is allowed.
    pub fn check(&self, config: &Qwen2Config) -> Result<(), LmError> {
        let shapes: BTreeMap<String, Vec<usize>> = parameter_shapes(config).into_iter().collect();
        for (name, shape) in &shapes {
            let Some(&shard) = self.places.get(name) else {
                return Err(unfit(&self.path, format!("parameter `{name}` is missing")));
            };
            let (shard, found) = (&self.shards[shard], &self.shards[shard].info(name).shape);
            if found != shape {
                let reason = format!("parameter `{name}` has shape {found:?}, expected {shape:?}");
                return Err(unfit(&shard.path, reason));
            }
        }
        for (name, &shard) in &self.places {
            let shard = &self.shards[shard];
            // Some writers save a tied matrix under both names.
            let is_tied_head = config.tie_word_embeddings && name == HEAD;
            if !is_tied_head && !shapes.contains_key(name) {
                let reason = format!("parameter `{name}` does not belong to this model");
                return Err(unfit(&shard.path, reason));
            }
            shard.weight_type(name)?;
        }
        Ok(())
    }

    /// Reads every tensor without keeping it. Fails for truncated files and values that are not finite.
    pub(super) fn check_values(&mut self) -> Result<(), LmError> {
        self.places.iter().try_for_each(|(name, shard)| self.shards[*shard].read(name).map(|_| ()))
    }

    /// Reads all tensors as f32, in order of name; the copy of a tied head is compared and left out. Fails
    /// for values that are not finite.
    ///
    /// # Panics
    /// If [`check`](Self::check) would fail because the embedding is missing.
    pub fn read(&mut self, config: &Qwen2Config) -> Result<Vec<(String, Tensor)>, LmError> {
        let mut tensors = Vec::new();
        for (name, shard) in &self.places {
            if !(config.tie_word_embeddings && name == HEAD) {
                tensors.push((name.clone(), self.shards[*shard].read(name)?));
            }
        }
        if config.tie_word_embeddings
            && let Some(&shard) = self.places.get(HEAD)
        {
            let is_embedding = |(name, _): &&(String, Tensor)| name == "model.embed_tokens.weight";
            let embedding = tensors.iter().find(is_embedding).expect("the folder was checked");
            check_repeated_head(&mut self.shards[shard], embedding)?;
        }
        Ok(tensors)
    }
}

fn unfit(path: &Path, reason: String) -> LmError {
    invalid(path, LmError::Weights(reason))
}

/// Fails if a shard does not hold exactly the tensors that the index lists for it, as in a partially copied
/// folder.
fn check_against_index(
    shard: &Shard,
    name: &str,
    weight_map: &BTreeMap<String, String>,
    index: &Path,
) -> Result<(), LmError> {
    let held: BTreeSet<String> = shard.names().collect();
    let listed = weight_map.iter().filter(|(_, place)| *place == name).map(|(tensor, _)| tensor);
    for tensor in listed {
        if !held.contains(tensor) {
            let reason = format!("the shard `{name}` does not hold `{tensor}`, which the index lists for it");
            return Err(invalid(index, reason));
        }
    }
    match held.iter().find(|tensor| weight_map.get(*tensor).is_none_or(|place| place != name)) {
        Some(tensor) => {
            let reason = format!("the shard `{name}` holds `{tensor}`, which the index does not list");
            Err(invalid(index, reason))
        }
        None => Ok(()),
    }
}

/// Fails if the head differs from the embedding: the weights are then not tied, contrary to the
/// configuration.
fn check_repeated_head(shard: &mut Shard, embedding: &(String, Tensor)) -> Result<(), LmError> {
    let head = shard.read(HEAD)?;
    let (name, embedding) = embedding;
    let equal = head.dims() == embedding.dims()
        && head.flatten_all()?.to_vec1::<f32>()? == embedding.flatten_all()?.to_vec1::<f32>()?;
    if equal {
        return Ok(());
    }
    let reason =
        format!("`{HEAD}` differs from `{name}` although `tie_word_embeddings` is set; set it to false");
    Err(unfit(&shard.path, reason))
}

impl Shard {
    /// Opens a file and reads its header. Fails if the length of the file is not that in the header.
    pub(crate) fn open(path: &Path) -> Result<Self, LmError> {
        let failed = |error: std::io::Error| unreadable(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let n_bytes = file.metadata().map_err(failed)?.len();
        let too_short = |needed: u64| {
            let reason = format!("it has {n_bytes} bytes of {needed}: it is truncated; copy it again");
            invalid(path, reason)
        };
        let mut length = [0; LENGTH_BYTES as usize];
        if n_bytes < LENGTH_BYTES {
            return Err(too_short(LENGTH_BYTES));
        }
        file.read_exact(&mut length).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(invalid(path, "it is not a safetensors file"));
        }
        let start = LENGTH_BYTES + length;
        if n_bytes < start {
            return Err(too_short(start));
        }
        let mut header = Vec::new();
        file.by_ref().take(length).read_to_end(&mut header).map_err(failed)?;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|error| invalid(path, format!("its header is not valid: {error}")))?;
        let needed = start + header.data_len() as u64;
        if n_bytes < needed {
            return Err(too_short(needed));
        }
        if n_bytes > needed {
            return Err(invalid(path, format!("it has {n_bytes} bytes, its header describes {needed}")));
        }
        Ok(Self { path: path.to_owned(), file, header, start })
    }

    /// The names of the tensors, in the order of the file.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.header.offset_keys().into_iter()
    }

    /// The header entry of an existing tensor.
    pub(crate) fn info(&self, name: &str) -> &TensorInfo {
        self.header.info(name).expect("the name came from this header")
    }

    fn weight_type(&self, name: &str) -> Result<WeightType, LmError> {
        let dtype = self.info(name).dtype;
        WeightType::of(dtype).ok_or_else(|| {
            let known = "only F32, BF16 and F16 are known";
            invalid(&self.path, format!("tensor `{name}` has the unsupported type {dtype:?}, {known}"))
        })
    }

    /// Reads one tensor as f32. Fails if a value is not finite.
    pub(crate) fn read(&mut self, name: &str) -> Result<Tensor, LmError> {
        let weight_type = self.weight_type(name)?;
        let info = self.info(name);
        let (shape, (begin, end)) = (info.shape.clone(), info.data_offsets);
        let failed = |error: String| invalid(&self.path, format!("tensor `{name}`: {error}"));
        let mut bytes = vec![0; end - begin];
        self.file
            .seek(SeekFrom::Start(self.start + begin as u64))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| failed(error.to_string()))?;
        let tensor = Tensor::from_raw_buffer(&bytes, weight_type.dtype(), &shape, &Device::Cpu)
            .and_then(|tensor| tensor.to_dtype(DType::F32))
            .map_err(|error| failed(error.to_string()))?;
        drop(bytes);
        let values = tensor.flatten_all()?.to_vec1::<f32>()?;
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let reason = format!("tensor `{name}` holds {} at element {at}", values[at]);
                Err(invalid(&self.path, reason))
            }
            None => Ok(tensor),
        }
    }
}
