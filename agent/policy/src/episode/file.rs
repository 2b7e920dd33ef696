//! A file of trips that grows while they are made.
//!
//! A [`TripFile`] takes one record a line, whole, as soon as it is its turn, so that what was made survives any end of the
//! program. It is open to one program at a time. What a line holds is [`EpisodeRecord`]'s business; going on with a file
//! is that of [`webshop_remote::openai::policy`].

use webshop_lm::LmError;
use std::fmt::Display;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::episode::EpisodeRecord;
use crate::error::AgentError;

/// Trips on disk, and room for more.
#[derive(Debug)]
pub struct TripFile {
    path: PathBuf,
    file: File,
}

impl TripFile {
    /// A file that is not there yet.
    ///
    /// # Errors
    /// If it is there, or cannot be.
    pub fn create(path: &Path) -> Result<TripFile, AgentError> {
        let file = File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => cannot_write(path, &"it is there already; name another"),
            _ => cannot_write(path, &error),
        })?;
        TripFile { path: path.to_owned(), file }.locked()
    }

    /// A file that is there, and all that is in it.
    pub fn open(path: &Path) -> Result<(TripFile, Vec<u8>), AgentError> {
        let read = |error: io::Error| cannot_read(path, &error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(read)?;
        let mut here = TripFile { path: path.to_owned(), file }.locked()?;
        let mut bytes = Vec::new();
        here.file.read_to_end(&mut bytes).map_err(read)?;
        Ok((here, bytes))
    }

    /// Keeps the first `len` bytes; what comes is added to them.
    pub fn cut(&mut self, len: u64) -> Result<(), AgentError> {
        let cut = self.file.set_len(len).and_then(|()| self.file.seek(SeekFrom::End(0)));
        cut.map(|_| ()).map_err(|error| cannot_write(&self.path, &error))
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
    LmError::Write { path: path.to_owned(), reason: reason.to_string() }.into()
}

/// A file of trips that is not one, or not the one that is wanted.
pub fn cannot_read(path: &Path, reason: &dyn Display) -> AgentError {
    LmError::Read { path: path.to_owned(), reason: reason.to_string() }.into()
}
