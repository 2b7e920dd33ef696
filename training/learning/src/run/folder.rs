//! The run folder, and states in it from which a run continues exactly.
//!
//! A [`RunFolder`] is made once for a new run or opened to resume one, never reused silently. It knows the names of
//! the files in it:
//!
//! ```text
//! config.toml  cmdline.txt  fingerprint.json  summary.json  value.json
//! metrics.jsonl  metrics.csv  timings.jsonl  events.out.tfevents.webshop
//! report.html  curve.svg  trip.svg  episodes/*.jsonl
//! checkpoints/step-000100/   model/  optimizer.safetensors  trainer_state.json
//! checkpoints/last           a link to the newest complete one
//! checkpoints/best           a link to that of the best evaluation, if it is asked for
//! ```
//!
//! A checkpoint is written beside its place and renamed when it is complete, and `last` is replaced by a rename
//! afterwards: killed at any instant, the folder holds only whole checkpoints and a `last` that names one. What
//! belongs into a checkpoint is its writer's business; nothing here knows a model.


pub(crate) use crate::run::checkpoint::names::{Link, set};
pub use crate::run::checkpoint::names::{find_checkpoint, step_name};

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::config::Config;
use crate::run::atomic::{read_json, remove_partial, write_atomically};
use crate::error::{Result, TrainingError};

/// The command line that began the run.
const COMMAND: &str = "cmdline.txt";
/// The file that says where the trainer stood.
pub const TRAINER_STATE: &str = "trainer_state.json";

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    pub root: PathBuf,
}

impl RunFolder {
    /// Makes the folder of a new run and saves its configuration. A folder that holds anything is refused.
    pub fn create(root: &Path, config: &Config) -> Result<Self> {
        fs::create_dir_all(root).map_err(|e| TrainingError::io("create", root, e))?;
        // A start that was cut short before its first file was whole is no run.
        remove_partial(root)?;
        let mut entries = fs::read_dir(root).map_err(|e| TrainingError::io("read", root, e))?;
        if entries.next().is_some() {
            return Err(TrainingError::RunFolderNotEmpty(root.into()));
        }
        let run = Self { root: root.into() };
        // The configuration comes first: with it, a run that was cut short here can be resumed.
        write_atomically(&run.config(), config.to_toml().as_bytes())?;
        run.create_folders()?;
        Ok(run)
    }

    /// Removes the folder if nothing has been measured in it yet: a run that was refused at its door is none.
    pub fn remove_if_unbegun(&self) -> Result<()> {
        let episodes = self.episodes();
        let mut measured = fs::read_dir(&episodes).map_err(|e| TrainingError::io("read", &episodes, e))?;
        match measured.next() {
            Some(_) => Ok(()),
            None => fs::remove_dir_all(&self.root).map_err(|e| TrainingError::io("remove", &self.root, e)),
        }
    }

    /// Opens the folder of a run that was begun, to go on with it, and reads its configuration. Remains of a write that
    /// was cut short are removed.
    pub fn resume(root: &Path) -> Result<(Self, Config)> {
        let (run, config) = Self::look(root)?;
        run.create_folders()?;
        remove_partial(&run.root)?;
        remove_partial(&run.checkpoints())?;
        Ok((run, config))
    }

    /// Opens the folder of a run that was begun and may be under way, to read it only.
    pub fn look(root: &Path) -> Result<(Self, Config)> {
        let run = Self { root: root.into() };
        let path = run.config();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(TrainingError::NoRun(root.into())),
            Err(e) => return Err(TrainingError::io("read", &path, e)),
        };
        let config = Config::resolve(&path.display().to_string(), &text, &[])?;
        Ok((run, config))
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

    /// Keeps the command the run was begun with, for its report.
    pub fn save_command(&self, command: &str) -> Result<()> {
        write_atomically(&self.root.join(COMMAND), command.as_bytes())
    }

    /// The command the run was begun with; empty if it was not begun by one.
    pub fn command(&self) -> Result<String> {
        let path = self.root.join(COMMAND);
        match fs::read_to_string(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|e| TrainingError::io("read", &path, e)),
        }
    }

    /// `fingerprint.json`: what the results are about.
    pub fn fingerprint(&self) -> PathBuf {
        self.root.join("fingerprint.json")
    }

    /// `summary.json`: the results that stand at the top of the report.
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// `value.json`: V* of every training goal.
    pub fn value(&self) -> PathBuf {
        self.root.join("value.json")
    }

    /// `report.html`: the page that a person reads.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// `curve.svg`: the learning curve alone.
    pub fn curve(&self) -> PathBuf {
        self.root.join("curve.svg")
    }

    /// `trip.svg`: a whole trip as a drawing.
    pub fn trip(&self) -> PathBuf {
        self.root.join("trip.svg")
    }

    /// `episodes/`: whole trips.
    pub fn episodes(&self) -> PathBuf {
        self.root.join("episodes")
    }

    /// Answers at held-out steps, a file an evaluation, where steps are judged.
    pub fn answers(&self) -> PathBuf {
        self.root.join("answers")
    }

    /// `checkpoints/`.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }
}

/// The `trainer_state.json` of a checkpoint.
pub fn read_trainer_state<S: DeserializeOwned>(checkpoint: &Path) -> Result<S> {
    read_json(&checkpoint.join(TRAINER_STATE))
}

