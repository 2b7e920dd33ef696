//! Model folders in the Hugging Face layout: `config.json`, `model.safetensors` or its shards, and
//! `generation_config.json`.
//!
//! [`load`] reads a folder into a [`Qwen2`] (f32, bf16 and f16 become f32). It fails, naming file and tensor,
//! for missing tensors, wrong shapes, truncated files and values that are not finite. [`save`] writes f32,
//! [`save_as`] a type and file size of choice. Each file is written under a temporary name and renamed when
//! complete, so that a crash leaves the old or the new file. [`StopTokens`] are the tokens that end a turn,
//! [`Companions`] the files beside the weights, which are copied with a fine-tuned model, and [`Survey`]
//! reports on a folder. Nothing is downloaded.

mod companions;
mod stop_tokens;
mod survey;
#[cfg(test)]
mod tests;
mod weights;
mod writing;

use std::path::Path;
use std::{fs, io};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::LmError;
use crate::qwen2::{Qwen2, Qwen2Config};

pub(crate) use crate::checkpoint::companions::{ADDITIONAL_TEMPLATES, jinja_files};
pub use crate::checkpoint::companions::{Companions, FEW_SHOT};
pub use crate::checkpoint::stop_tokens::StopTokens;
pub(crate) use crate::checkpoint::stop_tokens::special_token;
pub use crate::checkpoint::survey::Survey;
pub(crate) use crate::checkpoint::weights::Shard;
pub use crate::checkpoint::weights::{WeightFiles, WeightType};
pub use crate::checkpoint::writing::{
    SaveOptions, save, save_as, save_config, save_random, write_atomically,
};
pub(crate) use crate::checkpoint::writing::{write_json, write_tensors};

const CONFIG: &str = "config.json";
const GENERATION_CONFIG: &str = "generation_config.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The matrix of an untied head.
const HEAD: &str = "lm_head.weight";

/// Reads the model of a folder. Fails, naming file and tensor, if a file is missing, damaged or does not fit.
pub fn load(folder: &Path) -> Result<Qwen2, LmError> {
    Ok(load_with_type(folder)?.0)
}

/// As [`load`], with the type of the weights in the files, or `None` if they have several types. Saving in
/// that type is lossless.
pub fn load_with_type(folder: &Path) -> Result<(Qwen2, Option<WeightType>), LmError> {
    let config = load_config(folder)?;
    let mut files = WeightFiles::open(folder)?;
    files.check(&config)?;
    let tensors = files.read(&config)?;
    let model = Qwen2::new(&config, tensors).map_err(|error| invalid(files.path(), error))?;
    Ok((model, files.weight_type()))
}

/// Reads and validates `config.json`. Fails, naming the field, if the model is not supported.
pub fn load_config(folder: &Path) -> Result<Qwen2Config, LmError> {
    let config: Qwen2Config = read_json(&folder.join(CONFIG))?;
    config.validate().map_err(|error| invalid(&folder.join(CONFIG), error))?;
    Ok(config)
}

/// Reads `generation_config.json`; an absent file gives an empty object.
pub fn load_generation_config(folder: &Path) -> Result<Map<String, Value>, LmError> {
    let path = folder.join(GENERATION_CONFIG);
    if path.exists() { read_json(&path) } else { Ok(Map::new()) }
}

/// Writes `generation_config.json`.
pub fn save_generation_config(folder: &Path, values: &Map<String, Value>) -> Result<(), LmError> {
    write_json(&folder.join(GENERATION_CONFIG), values)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, LmError> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    serde_json::from_str(&text).map_err(|source| LmError::Json { path: path.to_owned(), source })
}

pub(crate) fn unreadable(path: &Path, source: io::Error) -> LmError {
    LmError::Read { path: path.to_owned(), source }
}

pub(crate) fn invalid(path: &Path, reason: impl ToString) -> LmError {
    LmError::Invalid { path: path.to_owned(), reason: reason.to_string() }
}

pub(crate) fn unwritable(path: &Path, source: io::Error) -> LmError {
    LmError::Write { path: path.to_owned(), source }
}
