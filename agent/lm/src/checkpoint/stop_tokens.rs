//! The tokens that end a turn, from the files of a model folder.
//!
//! They are defined by `eos_token_id` in `config.json` and `generation_config.json` (one id or several) and
//! `eos_token` in `tokenizer_config.json`, which refer to the vocabulary in `tokenizer.json`. In a folder
//! assembled from two models the files can contradict each other, and generation would not stop or would stop
//! too early. [`StopTokens::load`] refuses such a folder.

use std::path::Path;

use serde_json::{Map, Value};

use crate::checkpoint::{CONFIG, GENERATION_CONFIG, invalid, load_generation_config, read_json};
use crate::error::LmError;
use crate::qwen2::Qwen2Config;
use crate::tokenizer::BpeTokenizer;

const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The ids that end a turn: those in `config.json` and `generation_config.json`, or else that of `eos_token`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopTokens {
    /// Ascending; each is in the vocabularies of the model and of the tokenizer.
    ids: Vec<u32>,
}

impl StopTokens {
    /// Reads the stop tokens of a folder, given its model's `config` and its `tokenizer`. Without any
    /// definition the result is empty.
    ///
    /// Fails if the tokenizer has more ids than the model, if it lacks a stop token, or if `eos_token` is not
    /// among the stop tokens.
    pub fn load(folder: &Path, config: &Qwen2Config, tokenizer: &BpeTokenizer) -> Result<Self, LmError> {
        let (needed, known) = (tokenizer.vocab_size(), config.vocab_size);
        if needed > known {
            let reason = format!(
                "it has ids up to {}, but the model's `vocab_size` is {known}; use the model's own tokenizer",
                needed - 1
            );
            return Err(invalid(&folder.join(TOKENIZER), reason));
        }
        let generation = load_generation_config(folder)?;
        let mut ids = Vec::new();
        for (file, fields) in [(CONFIG, &config.other), (GENERATION_CONFIG, &generation)] {
            let listed = listed_ids(fields).and_then(|listed| {
                listed.iter().try_for_each(|&id| check_known(id, tokenizer)).map(|()| listed)
            });
            ids.extend(listed.map_err(|reason| invalid(&folder.join(file), reason))?);
        }
        ids.sort_unstable();
        ids.dedup();
        if let Some(end) = end_of_turn(folder, tokenizer)? {
            if ids.is_empty() {
                ids.push(end);
            }
            if !ids.contains(&end) {
                let reason = format!(
                    "its `eos_token` has the id {end}, but the `eos_token_id` in `{CONFIG}` and \
                     `{GENERATION_CONFIG}` are {ids:?}: add the id there, or use the tokenizer of this model"
                );
                return Err(invalid(&folder.join(TOKENIZER_CONFIG), reason));
            }
        }
        Ok(Self { ids })
    }

    /// The ids, ascending.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

/// `eos_token_id`: a number, a list of numbers, null or absent.
fn listed_ids(fields: &Map<String, Value>) -> Result<Vec<u32>, String> {
    let id = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| format!("`eos_token_id` holds {value}, which is not a token id"))
    };
    match fields.get("eos_token_id") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(ids)) => ids.iter().map(id).collect(),
        Some(value) => Ok(vec![id(value)?]),
    }
}

fn check_known(id: u32, tokenizer: &BpeTokenizer) -> Result<(), String> {
    match tokenizer.token(id) {
        Some(_) => Ok(()),
        None => Err(format!(
            "`eos_token_id` {id} is not in `{TOKENIZER}`: one of the two files belongs to another model"
        )),
    }
}

/// The id of `eos_token` in `tokenizer_config.json`, if there is one.
fn end_of_turn(folder: &Path, tokenizer: &BpeTokenizer) -> Result<Option<u32>, LmError> {
    let path = folder.join(TOKENIZER_CONFIG);
    if !path.exists() {
        return Ok(None);
    }
    let fields: Map<String, Value> = read_json(&path)?;
    let Some(token) = special_token(&fields, "eos_token") else {
        return Ok(None);
    };
    match tokenizer.id(token) {
        Some(id) => Ok(Some(id)),
        None => Err(invalid(&path, format!("its `eos_token` `{token}` is not in `{TOKENIZER}`"))),
    }
}

/// The text of a special token: a string, or the `content` of an object.
pub(crate) fn special_token<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let token = fields.get(name)?;
    token.get("content").unwrap_or(token).as_str()
}
