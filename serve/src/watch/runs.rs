//! Training runs as the pages at `/watch` see them.
//!
//! Run folders belong to the crates that train, which this one does not know. The command line has both: it gives the server
//! its [`Runs`].

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use webshop_env::{GeneratedCatalog, Shop};
use webshop_lm::BpeTokenizer;

/// Why a run cannot be shown; the text is shown in its place.
pub type RunError = Box<dyn Error + Send + Sync>;

/// Training runs, numbered from 0 in the order in which they were found. A run keeps its number.
pub trait Runs: Send + Sync {
    /// The style of the drawings of [`RunState::charts`].
    fn style(&self) -> &'static str;

    /// The names of all runs so far.
    ///
    /// # Errors
    /// If a folder cannot be read.
    fn names(&self) -> Result<Vec<String>, RunError>;

    /// What a run has recorded so far.
    ///
    /// # Errors
    /// If a file cannot be read.
    fn state(&self, run: usize) -> Result<RunState, RunError>;

    /// The shop of the run's episodes: a generated one, or for `None` the one that the run is configured with.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn shop(&self, run: usize, generated: Option<GeneratedCatalog>) -> Result<Arc<Shop>, RunError>;

    /// The tokenizer of the run's model; `None` before its first checkpoint.
    ///
    /// # Errors
    /// If it cannot be read.
    fn tokenizer(&self, run: usize) -> Result<Option<Arc<BpeTokenizer>>, RunError>;
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStage {
    /// It has not begun.
    Waiting,
    /// It has begun and not ended.
    Running,
    /// It has ended, and does not change any more.
    Finished,
}

/// What a run has recorded so far.
#[derive(Clone, Debug)]
pub struct RunState {
    /// How far it is.
    pub stage: RunStage,
    /// What is trained, in a line.
    pub title: String,
    /// The parts of the run in order.
    pub phases: Vec<RunPhase>,
    /// The latest numbers.
    pub figures: Vec<RunFigure>,
    /// Drawings: SVG without styles or scripts, which [`Runs::style`] colors. They stand in the page as they are.
    pub charts: Vec<String>,
    /// Files of recorded episodes, the newest first. Their names without extension are in addresses.
    pub episodes: Vec<PathBuf>,
}

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPhase {
    /// Its name.
    pub name: String,
    /// Steps done, at most `steps`.
    pub step: u64,
    /// All its steps.
    pub steps: u64,
}

/// A number, formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFigure {
    /// What it is.
    pub name: String,
    /// The number.
    pub value: String,
    /// An interval or a condition; may be empty.
    pub note: String,
}

impl RunState {
    /// The file of episodes with this name in addresses.
    pub(super) fn episode_file(&self, name: &str) -> Option<&PathBuf> {
        self.episodes.iter().find(|path| file_name(path) == name)
    }
}

/// The name of a file of episodes in addresses.
pub(super) fn file_name(path: &std::path::Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
