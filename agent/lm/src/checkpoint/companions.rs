//! The files of a model folder other than configuration and weights: tokenizer, chat template, generation
//! settings, worked examples.
//!
//! They are copied unchanged into the folder of a fine-tuned or merged model.

use std::fs;
use std::path::Path;

use crate::checkpoint::{unreadable, unwritable};
use crate::error::LmError;

/// The file of worked examples that precede every prompt.
pub const FEW_SHOT: &str = "few_shot.json";

/// The names of these files; each may be absent.
const NAMES: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
    FEW_SHOT,
];

/// The companion files of one folder, in memory.
#[derive(Clone, Debug)]
pub struct Companions(Vec<(&'static str, Vec<u8>)>);

impl Companions {
    /// Reads the files that exist in `folder`.
    pub fn read(folder: &Path) -> Result<Self, LmError> {
        let existing =
            NAMES.into_iter().map(|name| (name, folder.join(name))).filter(|(_, path)| path.is_file());
        let read = |(name, path): (&'static str, std::path::PathBuf)| match fs::read(&path) {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(unreadable(&path, error)),
        };
        Ok(Self(existing.map(read).collect::<Result<_, _>>()?))
    }

    /// Writes the files into an existing folder.
    pub fn write(&self, folder: &Path) -> Result<(), LmError> {
        for (name, bytes) in &self.0 {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|error| unwritable(&path, error))?;
        }
        Ok(())
    }
}
