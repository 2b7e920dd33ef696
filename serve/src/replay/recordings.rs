//! Recorded episodes in memory, each with its shop.

use std::io::{self, BufRead};
use std::sync::Arc;

use webshop_agent::{AgentError, Episode, read_episode};
use webshop_env::{EnvError, GeneratedCatalog, Shop};

/// Recorded episodes, numbered from 0 in the order in which they were read.
#[derive(Debug, Default)]
pub struct Recordings(Vec<Recording>);

/// An episode that was replayed in its shop without a difference.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) shop: Arc<Shop>,
    pub(crate) episode: Episode,
}

/// A file whose episodes cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum RecordingsError {
    /// Reading the file failed.
    #[error("line {line} cannot be read")]
    Read {
        /// The line, from 1.
        line: usize,
        /// The cause.
        source: io::Error,
    },
    /// A line is no episode of its shop.
    #[error(transparent)]
    Episode(#[from] AgentError),
    /// The shop of an episode cannot be opened.
    #[error("line {line}: the shop of the episode cannot be opened")]
    Shop {
        /// The line, from 1.
        line: usize,
        /// The cause.
        source: EnvError,
    },
}

impl Recordings {
    /// Reads a file of `webshop rollout` behind the episodes that are there, and replays each of its episodes;
    /// blank lines are skipped. `shop_of` returns the shop of a generated catalog, or for `None` the one of all
    /// other episodes.
    ///
    /// # Errors
    /// [`RecordingsError`], at the first line that cannot be shown.
    pub fn read(
        &mut self,
        file: impl BufRead,
        mut shop_of: impl FnMut(Option<GeneratedCatalog>) -> Result<Arc<Shop>, EnvError>,
    ) -> Result<(), RecordingsError> {
        for (text, line) in file.lines().zip(1..) {
            let text = text.map_err(|source| RecordingsError::Read { line, source })?;
            if text.trim().is_empty() {
                continue;
            }
            let refuse = |reason: String| AgentError::Line { line, reason };
            let read = Episode::read(&text).map_err(|error| refuse(error.to_string()))?;
            let shop = shop_of(read.meta.fingerprint.generated);
            let shop = shop.map_err(|source| RecordingsError::Shop { line, source })?;
            let episode = read_episode(&text, line, &shop)?;
            self.0.push(Recording { shop, episode });
        }
        Ok(())
    }

    /// The number of episodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An episode.
    pub(crate) fn get(&self, number: usize) -> Option<&Recording> {
        self.0.get(number)
    }

    /// All episodes with their numbers, the last first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = (usize, &Episode)> {
        self.0.iter().map(|recording| &recording.episode).enumerate().rev()
    }
}
