//! The file that the episodes of people are appended to: a new one, or an earlier recording in the same shop.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webshop_agent::{AgentError, Episode, EpisodeFile, complete_lines, read_episode};
use webshop_env::Shop;
use webshop_products::GoalId;

/// The policy of the episodes.
pub(super) const POLICY: &str = "human";

/// A file of people's episodes in one shop, open for appending.
#[derive(Debug)]
pub struct RecordFile {
    file: EpisodeFile,
    /// The number of episodes for each goal.
    n_written: BTreeMap<GoalId, u64>,
    /// The length of an incomplete last line, which was removed.
    dropped_bytes: u64,
}

/// A file to which the episodes of people cannot be appended.
#[derive(Debug, thiserror::Error)]
pub enum RecordFileError {
    /// It cannot be opened or written.
    #[error(transparent)]
    File(#[from] AgentError),
    /// It has other content.
    #[error(
        "cannot append to `{}`, which must be a new file, or one with episodes of people in this shop: {reason}",
        path.display()
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        reason: String,
    },
}

impl RecordFile {
    /// Creates a file, or opens one, whose episodes are replayed in `shop`. A last line without a line break, which a
    /// full disk leaves, is removed.
    ///
    /// # Errors
    /// If a line of the file is not an episode of a person in this shop; if it cannot be created or opened, or another
    /// program has it open.
    pub fn open(path: &Path, shop: &Arc<Shop>) -> Result<RecordFile, RecordFileError> {
        let (mut file, bytes) = match EpisodeFile::open(path) {
            Err(AgentError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => {
                (EpisodeFile::create(path)?, Vec::new())
            }
            opened => opened?,
        };
        let refuse = |reason: String| RecordFileError::Content { path: path.to_owned(), reason };
        let (text, dropped_bytes) = complete_lines(&bytes).map_err(|error| refuse(error.to_string()))?;
        let n_written = count(text, shop).map_err(|error| refuse(error.to_string()))?;
        if dropped_bytes > 0 {
            file.truncate(text.len() as u64)?;
        }
        Ok(RecordFile { file, n_written, dropped_bytes })
    }

    /// The number of episodes.
    pub fn len(&self) -> u64 {
        self.n_written.values().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.n_written.is_empty()
    }

    /// The length of an incomplete last line that was removed.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    /// The number of episodes for a goal.
    pub(super) fn n_written(&self, goal: GoalId) -> u64 {
        self.n_written.get(&goal).copied().unwrap_or_default()
    }

    /// Appends an episode.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn append(&mut self, episode: &Episode) -> Result<(), AgentError> {
        self.file.append(episode)?;
        *self.n_written.entry(episode.goal).or_default() += 1;
        Ok(())
    }
}

/// The number of episodes for each goal in the lines of a file.
fn count(text: &str, shop: &Arc<Shop>) -> Result<BTreeMap<GoalId, u64>, AgentError> {
    let mut n_written: BTreeMap<GoalId, u64> = BTreeMap::new();
    for (text, line) in text.lines().zip(1..).filter(|(text, _)| !text.trim().is_empty()) {
        let episode = read_episode(text, line, shop)?;
        if *episode.meta.policy != *POLICY {
            let reason = format!("the episode is of the policy `{}`, not `{POLICY}`", episode.meta.policy);
            return Err(AgentError::Line { line, reason });
        }
        *n_written.entry(episode.goal).or_default() += 1;
    }
    Ok(n_written)
}
