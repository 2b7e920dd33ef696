//! A trained model, ready to shop: what `eval` and `rollout` load.

use std::path::Path;

use webshop_agent::checkpoint::{self, StopTokens};
use webshop_agent::{Qwen2, ShopTokenizer};

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
        let tokenizer = ShopTokenizer::load(folder)?;
        // Before the weights, which take longer to read than to find wrong.
        StopTokens::load(folder, &checkpoint::load_config(folder)?, &tokenizer)?;
        Ok(Self { config, tokenizer, model: checkpoint::load(folder)? })
    }
}
