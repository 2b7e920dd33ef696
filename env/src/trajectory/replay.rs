//! Replay of a file of recorded episodes.
//!
//! [`replay`] reads a rollout file of one shop, one [`Episode`] a line, and stops at the first [`Difference`]. A line
//! that is not an episode of this shop is a [`ReplayError`] with its line number. [`replay_in`] reads a file of several
//! shops, such as the episodes of an evaluation: those of generated shops name what their catalog was generated from.
//!
//! It opens no file and prints nothing.

use crate::fingerprint::GeneratedCatalog;
use crate::shop::{EnvError, Shop};
use crate::trajectory::record::{Difference, Episode, EpisodeError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead};
use std::sync::Arc;

/// The result of replaying a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Episodes replayed, including the one that differs.
    pub episodes: usize,
    /// Turns of the episodes without a difference.
    pub turns: usize,
    /// The first difference, if any; the rest of the file was not read.
    pub difference: Option<EpisodeDifference>,
}

/// A difference and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EpisodeDifference {
    /// The line of the episode, from 1.
    pub line: usize,
    /// The number of its goal.
    pub goal: u32,
    /// The difference.
    #[serde(flatten)]
    pub difference: Difference,
}

impl fmt::Display for EpisodeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, goal {}: {}", self.line, self.goal, self.difference)
    }
}

/// A file that cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Reading the file failed.
    #[error("line {line} cannot be read: {source}")]
    Read {
        /// The line, from 1.
        line: usize,
        /// The I/O error.
        source: io::Error,
    },
    /// A line is not an episode of this shop.
    #[error("line {line}: {problem}")]
    Episode {
        /// The line, from 1.
        line: usize,
        /// The reason.
        problem: EpisodeError,
    },
    /// The shop of an episode cannot be opened.
    #[error("line {line}: the shop of the episode cannot be opened: {source}")]
    Shop {
        /// The line, from 1.
        line: usize,
        /// The reason.
        source: EnvError,
    },
    /// The file has no episodes.
    #[error("the file has no episodes")]
    Empty,
}

/// Replays every episode up to the first difference. Blank lines are skipped.
///
/// # Errors
/// [`ReplayError`], at the first line that cannot be replayed.
pub fn replay(episodes: impl BufRead, shop: &Arc<Shop>) -> Result<Replay, ReplayError> {
    replay_in(episodes, |_| Ok(Arc::clone(shop)))
}

/// The fields of an episode that name its shop, as an agent records them.
#[derive(Deserialize)]
struct ShopFields {
    #[serde(default)]
    fingerprint: Option<GeneratorField>,
}

#[derive(Deserialize)]
struct GeneratorField {
    #[serde(default)]
    generated: Option<GeneratedCatalog>,
}

/// Like [`replay`], for episodes of several shops: `shop_of` returns the shop of a generated catalog, or for `None`
/// the one of all other episodes.
///
/// # Errors
/// [`ReplayError`], at the first line that cannot be replayed.
pub fn replay_in(
    episodes: impl BufRead,
    mut shop_of: impl FnMut(Option<GeneratedCatalog>) -> Result<Arc<Shop>, EnvError>,
) -> Result<Replay, ReplayError> {
    let mut replayed = Replay::default();
    for (text, line) in episodes.lines().zip(1..) {
        let text = text.map_err(|source| ReplayError::Read { line, source })?;
        if text.trim().is_empty() {
            continue;
        }
        let refuse = |problem| ReplayError::Episode { line, problem };
        let episode = Episode::<(), ShopFields>::read(&text).map_err(refuse)?;
        let generated = episode.meta.fingerprint.as_ref().and_then(|fingerprint| fingerprint.generated);
        let shop = shop_of(generated).map_err(|source| ReplayError::Shop { line, source })?;
        replayed.episodes += 1;
        if let Some(difference) = episode.replay(&shop).map_err(refuse)? {
            replayed.difference = Some(EpisodeDifference { line, goal: episode.goal.0, difference });
            return Ok(replayed);
        }
        replayed.turns += episode.turns.len();
    }
    match replayed.episodes {
        0 => Err(ReplayError::Empty),
        _ => Ok(replayed),
    }
}
