//! The base model: what `webshop train --preset base` makes from random weights, part of the program.
//!
//! Its four files are in the Hugging Face layout. `model.from = "base"` and `--checkpoint base` name it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Result, TrainingError};

const FILES: [(&str, &[u8]); 4] = [
    ("config.json", include_bytes!("../../../base/config.json")),
    ("model.safetensors", include_bytes!("../../../base/model.safetensors")),
    ("tokenizer.json", include_bytes!("../../../base/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../../../base/tokenizer_config.json")),
];

/// The folder of a loaded model.
#[derive(Debug)]
pub(crate) enum ModelFolder {
    /// A folder of the user's.
    Named(PathBuf),
    /// The files of the base model, removed when this is dropped.
    Unpacked(TempDir),
}

impl ModelFolder {
    /// The files of the base model in a new temporary folder.
    pub(crate) fn of_base() -> Result<Self> {
        let temporary = std::env::temp_dir();
        let folder = tempfile::tempdir().map_err(|error| TrainingError::io("create", &temporary, error))?;
        for (name, bytes) in FILES {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).map_err(|error| TrainingError::io("write", &path, error))?;
        }
        Ok(Self::Unpacked(folder))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Named(folder) => folder,
            Self::Unpacked(folder) => folder.path(),
        }
    }
}
