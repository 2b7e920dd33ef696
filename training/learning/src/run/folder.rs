//! The run folder, and states in it from which a run continues exactly.
//!
//! A [`RunFolder`] is created for a new run or opened to resume one; it is never reused silently. It knows
//! the names of its files:
//!
//! ```text
//! config.toml  cmdline.txt  fingerprint.json  summary.json  baselines.json  judgement.json  value.json
//! metrics.jsonl  metrics.csv  timings.jsonl  events.out.tfevents.webshop  lock
//! report.html  curve.svg  episode.svg  episodes/*.jsonl  completions/*.jsonl
//! checkpoints/step-000100/   model/  optimizer.safetensors  trainer_state.json
//! checkpoints/last           link to the newest checkpoint
//! checkpoints/best           link to the checkpoint of the best evaluation, with `checkpoint.best`
//! ```
//!
//! A checkpoint is written to a temporary folder and renamed when it is complete; then `last` is replaced by
//! a rename. If the process is killed at any instant, the folder holds only complete checkpoints, and `last`
//! names one. The contents of a checkpoint are up to its writer; nothing here knows a model.

pub(crate) use crate::run::checkpoint::names::{Link, set};
pub(crate) use crate::run::checkpoint::names::{find_checkpoint, step_name};

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::error::{Result, TrainingError};
use crate::metrics::METRICS_JSONL;
use crate::run::atomic::{read_json, remove_partial, write_atomically};

/// The command line that started the run.
const COMMAND: &str = "cmdline.txt";
/// Folder of the model in a checkpoint.
pub(crate) const MODEL: &str = "model";
/// Folder of the model at the end of the warm start, in a run folder.
pub(crate) const REFERENCE: &str = "reference";
/// The state of the trainer in a checkpoint.
pub(crate) const TRAINER_STATE: &str = "trainer_state.json";

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

impl RunFolder {
    /// The folder at `root`, whatever it holds.
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// Creates the folder of a new run and saves its configuration. Refuses a folder that is not empty.
    pub fn create(root: &Path, config: &Config) -> Result<Self> {
        fs::create_dir_all(root).map_err(|e| TrainingError::io("create", root, e))?;
        // A start that was killed before its first file was complete is not a run.
        remove_partial(root)?;
        let mut entries = fs::read_dir(root).map_err(|e| TrainingError::io("read", root, e))?;
        if entries.next().is_some() {
            return Err(TrainingError::RunFolderNotEmpty(root.into()));
        }
        let run = Self { root: root.into() };
        // The configuration comes first: with it, a run that is killed here can be resumed.
        write_atomically(&run.config(), config.to_toml().as_bytes())?;
        run.create_folders()?;
        Ok(run)
    }

    /// Removes the folder if the run has not made its first evaluation.
    pub fn remove_if_unbegun(&self) -> Result<()> {
        let episodes = self.episodes();
        let mut measured = fs::read_dir(&episodes).map_err(|e| TrainingError::io("read", &episodes, e))?;
        match measured.next() {
            Some(_) => Ok(()),
            None => fs::remove_dir_all(&self.root).map_err(|e| TrainingError::io("remove", &self.root, e)),
        }
    }

    /// Opens the folder of a run to resume it, and reads its configuration. Refuses one that lacks a key: the version that
    /// wrote it had another program where this one has the key's default.
    pub fn resume(root: &Path) -> Result<(Self, Config)> {
        let run = Self { root: root.into() };
        let (config, text) = run.read_config()?;
        if let [first, ..] = config.unstated_keys(&text).as_slice() {
            let problem = format!(
                "it does not state `{first}`, since another version of the program wrote it; resume the run with that version"
            );
            return Err(TrainingError::BadFile { path: run.config(), problem });
        }
        run.create_folders()?;
        Ok((run, config))
    }

    /// Removes the remains of interrupted writes. No other process may write.
    pub(crate) fn remove_partial(&self) -> Result<()> {
        remove_partial(&self.root)?;
        remove_partial(&self.checkpoints())
    }

    /// Opens the folder of a run, which may be in progress, read-only, and reads its configuration.
    pub fn open(root: &Path) -> Result<(Self, Config)> {
        let run = Self { root: root.into() };
        let (config, _) = run.read_config()?;
        Ok((run, config))
    }

    /// The configuration, and the text that was resolved to it.
    fn read_config(&self) -> Result<(Config, String)> {
        let path = self.config();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(TrainingError::NoRun(self.root.clone())),
            Err(e) => return Err(TrainingError::io("read", &path, e)),
        };
        let config = Config::resolve(&path.display().to_string(), &text, &[])?;
        Ok((config, text))
    }

    fn create_folders(&self) -> Result<()> {
        for folder in [self.checkpoints(), self.episodes()] {
            fs::create_dir_all(&folder).map_err(|e| TrainingError::io("create", &folder, e))?;
        }
        Ok(())
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`: the resolved configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// Saves the command line that started the run, for its report.
    pub fn save_command(&self, command: &str) -> Result<()> {
        write_atomically(&self.root.join(COMMAND), command.as_bytes())
    }

    /// The command line that started the run; empty if a library call started it.
    pub fn command(&self) -> Result<String> {
        let path = self.root.join(COMMAND);
        match fs::read_to_string(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|e| TrainingError::io("read", &path, e)),
        }
    }

    /// `fingerprint.json`: see [`Fingerprint`](crate::Fingerprint).
    pub fn fingerprint(&self) -> PathBuf {
        self.root.join("fingerprint.json")
    }

    /// `summary.json`: see [`RunSummary`](crate::RunSummary).
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// `baselines.json`: a [`Baseline`](webshop_evaluation::Baseline) for each policy without a model, on the
    /// goals of the final evaluation.
    pub fn baselines(&self) -> PathBuf {
        self.root.join("baselines.json")
    }

    /// `judgement.json`: a [`Judgement`](webshop_evaluation::Judgement), unless `judgement.episodes` is 0.
    pub fn judgement(&self) -> PathBuf {
        self.root.join("judgement.json")
    }

    /// `value.json`: V* of the training goals.
    pub fn value(&self) -> PathBuf {
        self.root.join("value.json")
    }

    /// `metrics.jsonl`: the records of all steps so far.
    pub fn metrics(&self) -> PathBuf {
        self.root.join(METRICS_JSONL)
    }

    /// `report.html`: the report page.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// `curve.svg`: the learning curve.
    pub fn curve(&self) -> PathBuf {
        self.root.join("curve.svg")
    }

    /// `episode.svg`: a drawing of one episode.
    pub fn episode_drawing(&self) -> PathBuf {
        self.root.join("episode.svg")
    }

    /// `episodes/`: the held-out episodes of each evaluation.
    pub fn episodes(&self) -> PathBuf {
        self.root.join("episodes")
    }

    /// `completions/`: the completions at held-out steps of each evaluation.
    pub(crate) fn completions(&self) -> PathBuf {
        self.root.join("completions")
    }

    /// `checkpoints/last/model`: the model of the newest checkpoint, with its tokenizer.
    pub fn last_model(&self) -> PathBuf {
        self.checkpoints().join("last").join(MODEL)
    }

    /// `checkpoints/`.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }
}

/// The `trainer_state.json` of a checkpoint.
pub(crate) fn read_trainer_state<S: DeserializeOwned>(checkpoint: &Path) -> Result<S> {
    read_json(&checkpoint.join(TRAINER_STATE))
}
