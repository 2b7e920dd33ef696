//! The tokens that end a turn, from the files of a model folder.
//!
//! Four files define them: `eos_token_id` in `config.json` and in `generation_config.json` (one id or several), `eos_token`
//! in `tokenizer_config.json`, and the vocabulary in `tokenizer.json`. In a folder assembled from two models they can
//! contradict each other, and generation would not stop or stop too early. [`StopTokens::load`] refuses such a folder.

use std::path::Path;

use serde_json::{Map, Value};

use crate::checkpoint::{CONFIG, GENERATION_CONFIG, invalid, load_generation_config, read_json};
use crate::error::LmError;
use crate::qwen2::Qwen2Config;
use crate::tokenizer::BpeTokenizer;

const TOKENIZER: &str = "tokenizer.json";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// Ids that end a turn: those of both configurations, else that of the tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopTokens {
    /// Ascending, each in the vocabulary of the model and of the tokenizer.
    ids: Vec<u32>,
}

impl StopTokens {
    /// Reads what the folder of this model and tokenizer states, and refuses what does not fit together:
    /// ids beyond the model's vocabulary, stop ids that the tokenizer lacks, and an `eos_token` that is not
    /// among the stop ids. A folder that states nothing has none.
    pub fn load(folder: &Path, config: &Qwen2Config, tokenizer: &BpeTokenizer) -> Result<Self, LmError> {
        let (needed, known) = (tokenizer.vocab_size(), config.vocab_size);
        if needed > known {
            let reason = format!(
                "it has ids up to {}, but the model's `vocab_size` is {known}: it is the tokenizer of another \
                 model",
                needed - 1
            );
            return Err(invalid(&folder.join(TOKENIZER), reason));
        }
        let generation = load_generation_config(folder)?;
        let mut ids = Vec::new();
        for (file, fields) in [(CONFIG, &config.other), (GENERATION_CONFIG, &generation)] {
            let stated = stated_ids(fields).and_then(|stated| {
                stated.iter().try_for_each(|&id| check_known(id, tokenizer)).map(|()| stated)
            });
            ids.extend(stated.map_err(|reason| invalid(&folder.join(file), reason))?);
        }
        ids.sort_unstable();
        ids.dedup();
        if let Some(end) = end_of_turn(folder, tokenizer)? {
            if ids.is_empty() {
                ids.push(end);
            }
            if !ids.contains(&end) {
                let reason = format!(
                    "its `eos_token` has the id {end}, the `eos_token_id` of `{CONFIG}` and `{GENERATION_CONFIG}` \
                     are {ids:?}: add it there, or take the tokenizer of this model"
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

/// `eos_token_id`: a number, a list of them, or nothing.
fn stated_ids(fields: &Map<String, Value>) -> Result<Vec<u32>, String> {
    let id = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| format!("`eos_token_id` holds {value}, which is no token id"))
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
            "`eos_token_id` {id} is no token of `{TOKENIZER}`: one of the two belongs to another model"
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

/// The text of a special token, which is written as a string or as an object with a `content`.
pub(crate) fn special_token<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let token = fields.get(name)?;
    token.get("content").unwrap_or(token).as_str()
}
