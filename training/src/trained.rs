//! A trained model, ready to shop: what `eval` and `rollout` load.

use std::path::Path;

use webshop_agent::{Qwen2, ShopTokenizer, checkpoint};

use crate::checkpoint::find_checkpoint;
use crate::config::Config;
use crate::error::Result;
use crate::trainer::{CONFIG, MODEL};

/// What every model folder has.
const MODEL_CONFIG: &str = "config.json";

/// A model with its tokenizer and the configuration it was trained under.
#[derive(Debug)]
pub struct Trained {
    /// How pages are read and turns are bounded; the defaults if the folder is a bare model.
    pub config: Config,
    /// What text becomes.
    pub tokenizer: ShopTokenizer,
    /// The weights.
    pub model: Qwen2,
}

impl Trained {
    /// Loads what `path` names: a run folder, its `checkpoints/last`, a checkpoint, or a bare model folder.
    pub fn load(path: &Path) -> Result<Self> {
        if path.join(MODEL_CONFIG).is_file() {
            return Self::from_model(Config::default(), path);
        }
        // Not the configuration: a run folder has one too.
        let folder = find_checkpoint(path, &format!("{MODEL}/{MODEL_CONFIG}"))?;
        Self::from_model(Config::load(Some(&folder.join(CONFIG)), &[])?, &folder.join(MODEL))
    }

    fn from_model(config: Config, folder: &Path) -> Result<Self> {
        Ok(Self { config, tokenizer: ShopTokenizer::load(folder)?, model: checkpoint::load(folder)? })
    }
}
