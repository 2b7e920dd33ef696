//! A file of trips that grows while they are made.
//!
//! A [`TripFile`] takes one record a line as soon as its trip has ended, whole or not at all, so that it can be gone on
//! with after any end of the program: [`TripFile::resume`] makes the trips in it again and says which those were. What
//! it holds must have come about as the rest will. It is open to one program at a time.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webshop_env::Shop;

use super::{REMOTE, RemotePolicy};
use crate::dialect::Dialect;
use crate::episode::{Episode, EpisodeCoordinates, EpisodeRecord, PromptStamp, Sampling};
use crate::error::AgentError;
use crate::remake::remake;
use crate::rollout::Task;

/// Trips on disk, and room for more.
#[derive(Debug)]
pub struct TripFile {
    path: PathBuf,
    file: File,
}

/// What a file held when it was gone on with.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The trip of each task that has one, in the order of the tasks.
    pub episodes: Vec<Option<Episode>>,
    /// Bytes of a last line without an end, which were dropped.
    pub dropped_bytes: u64,
}

impl TripFile {
    /// A file that is not there yet.
    ///
    /// # Errors
    /// If it is there, or cannot be.
    pub fn create(path: &Path) -> Result<TripFile, AgentError> {
        let file = File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                cannot_write(path, &"it is there already; to go on with it, resume it")
            }
            _ => cannot_write(path, &error),
        })?;
        TripFile { path: path.to_owned(), file }.locked()
    }

    /// A file of trips that `policy` made for some of these tasks in this shop. A last line that was not written to its
    /// end is dropped from it.
    ///
    /// # Errors
    /// If it is not there, if another program writes to it, or at the first line that does not belong in it.
    pub fn resume(
        path: &Path,
        policy: &RemotePolicy,
        tasks: &[Task],
        shop: &Arc<Shop>,
    ) -> Result<(TripFile, Kept), AgentError> {
        let read = |error: io::Error| cannot_read(path, &error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(read)?;
        let mut here = TripFile { path: path.to_owned(), file }.locked()?;
        let mut bytes = Vec::new();
        here.file.read_to_end(&mut bytes).map_err(read)?;
        let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let dropped_bytes = (bytes.len() - end) as u64;
        let text = std::str::from_utf8(&bytes[..end]).map_err(|error| cannot_read(path, &error))?;
        let terms = Terms { policy, tasks, shop };
        let episodes = terms.read(text).map_err(|error| cannot_read(path, &error))?;
        here.file
            .set_len(end as u64)
            .and_then(|()| here.file.seek(SeekFrom::End(0)))
            .map_err(|error| cannot_write(path, &error))?;
        Ok((here, Kept { episodes, dropped_bytes }))
    }

    /// Adds a trip.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&mut self, record: &EpisodeRecord<'_>) -> Result<(), AgentError> {
        let mut line =
            serde_json::to_vec(record).expect("records hold numbers, texts and lists, which are all JSON");
        line.push(b'\n');
        // A file is not buffered: what is written here survives the program.
        self.file.write_all(&line).map_err(|error| cannot_write(&self.path, &error))
    }

    fn locked(self) -> Result<TripFile, AgentError> {
        match self.file.try_lock() {
            Ok(()) => Ok(self),
            Err(TryLockError::WouldBlock) => Err(cannot_write(&self.path, &"another program writes to it")),
            // Some file systems know no locks; the file is written to all the same.
            Err(TryLockError::Error(_)) => Ok(self),
        }
    }
}

fn cannot_write(path: &Path, reason: &dyn Display) -> AgentError {
    AgentError::Write { path: path.to_owned(), reason: reason.to_string() }
}

fn cannot_read(path: &Path, reason: &dyn Display) -> AgentError {
    AgentError::Read { path: path.to_owned(), reason: reason.to_string() }
}

/// What all trips of a file have in common.
struct Terms<'a> {
    policy: &'a RemotePolicy,
    tasks: &'a [Task],
    shop: &'a Arc<Shop>,
}

impl Terms<'_> {
    /// The trip of each task, where the lines hold one.
    fn read(&self, lines: &str) -> Result<Vec<Option<Episode>>, AgentError> {
        let places: BTreeMap<EpisodeCoordinates, usize> =
            self.tasks.iter().enumerate().map(|(place, task)| (task.coordinates, place)).collect();
        let mut episodes = vec![None; self.tasks.len()];
        for (at, text) in lines.lines().enumerate() {
            let line = at + 1;
            let refuse = |reason: String| Err(AgentError::Line { line, reason });
            if text.trim().is_empty() {
                continue;
            }
            let differing = self.differences(text, line)?;
            if !differing.is_empty() {
                return refuse(format!("not made as the rest would be: {}", differing.join(", ")));
            }
            let episode = remake(text, line, self.shop)?;
            let EpisodeCoordinates { goal, sample, .. } = episode.coordinates;
            let Some(&place) = places.get(&episode.coordinates) else {
                return refuse(format!("a trip for goal {} ({sample}), which is not asked for", goal.0));
            };
            if episodes[place].replace(episode).is_some() {
                return refuse(format!("a second trip for goal {} ({sample})", goal.0));
            }
        }
        Ok(episodes)
    }

    /// In what the trip of a line differs from those that are to be made, then and now.
    fn differences(&self, text: &str, line: usize) -> Result<Vec<String>, AgentError> {
        let record: EpisodeRecord<'_> = serde_json::from_str(text)
            .map_err(|error| AgentError::Line { line, reason: format!("no recorded trip: {error}") })?;
        let PromptStamp { dialect, version, model, sampling } = self.policy.prompt();
        let mut differing: Vec<String> = Vec::new();
        let mut compare = |what: &str, then: String, now: String| {
            if then != now {
                differing.push(format!("{what} `{then}` then, `{now}` now"));
            }
        };
        let name = |name: Option<&str>| name.unwrap_or("none").to_owned();
        compare("policy", record.policy.to_string(), REMOTE.into());
        compare("model", name(record.model.as_deref()), name(model.as_deref()));
        compare("dialect", name(record.dialect.map(Dialect::name)), dialect.name().to_owned());
        compare("prompt", name(record.prompt_version.as_deref()), version.to_string());
        let drawn = |of: Option<Sampling>| serde_json::to_string(&of).expect("numbers are JSON");
        compare("sampling", drawn(record.sampling), drawn(sampling));
        let steps = |steps: u32| steps.to_string();
        compare("max_steps", steps(record.trip.config.max_steps), steps(self.policy.max_steps()));
        let parts = record.fingerprint.differences(self.shop.fingerprint());
        differing.extend((!parts.is_empty()).then(|| format!("another shop ({})", parts.join(", "))));
        Ok(differing)
    }
}
