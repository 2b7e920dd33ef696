//! What stands in a model folder beside its shape and its weights: tokenizer, chat template, stop tokens.
//!
//! A model made from another one speaks as that one did, so these files go with it as they are.

use std::fs;
use std::path::Path;

use crate::checkpoint::{unreadable, unwritable};
use crate::error::LmError;

/// The files that there may be.
const NAMES: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
];

/// The files of one folder, in memory, so that the folder may go.
#[derive(Clone, Debug)]
pub struct Companions(Vec<(&'static str, Vec<u8>)>);

impl Companions {
    /// Reads those that are there.
    pub fn read(folder: &Path) -> Result<Self, LmError> {
        let there =
            NAMES.into_iter().map(|name| (name, folder.join(name))).filter(|(_, path)| path.is_file());
        let read = |(name, path): (&'static str, std::path::PathBuf)| match fs::read(&path) {
            Ok(bytes) => Ok((name, bytes)),
            Err(error) => Err(unreadable(&path, error)),
        };
        Ok(Self(there.map(read).collect::<Result<_, _>>()?))
    }

    /// Writes them into a folder that is there.
    pub fn write(&self, folder: &Path) -> Result<(), LmError> {
        for (name, bytes) in &self.0 {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|error| unwritable(&path, error))?;
        }
        Ok(())
    }
}
