//! A file of episodes that grows during a rollout.
//!
//! An [`EpisodeFile`] takes one episode a line and writes it at once, so that what it was given survives any
//! end of the program. It is open to one program at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::episode::Episode;
use crate::error::AgentError;

/// A rollout file open for appending.
#[derive(Debug)]
pub struct EpisodeFile {
    path: PathBuf,
    file: File,
}

impl EpisodeFile {
    /// Creates the file.
    ///
    /// # Errors
    /// If it exists or cannot be created.
    pub fn create(path: &Path) -> Result<EpisodeFile, AgentError> {
        let file = File::create_new(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => AgentError::Exists { path: path.to_owned() },
            _ => AgentError::write(path, error),
        })?;
        EpisodeFile { path: path.to_owned(), file }.locked()
    }

    /// Opens an existing file and reads it whole; [`complete_lines`] are its episodes.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, or is open in another program.
    pub fn open(path: &Path) -> Result<(EpisodeFile, Vec<u8>), AgentError> {
        let read = |error: io::Error| AgentError::read(path, error);
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(read)?;
        let mut file = EpisodeFile { path: path.to_owned(), file }.locked()?;
        let mut bytes = Vec::new();
        file.file.read_to_end(&mut bytes).map_err(read)?;
        Ok((file, bytes))
    }

    /// Truncates the file to `len` bytes. Later episodes are appended there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn truncate(&mut self, len: u64) -> Result<(), AgentError> {
        let result = self.file.set_len(len).and_then(|()| self.file.seek(SeekFrom::End(0)));
        result.map(|_| ()).map_err(|error| AgentError::write(&self.path, error))
    }

    /// Appends an episode.
    ///
    /// # Errors
    /// If it cannot be written, as on a full disk. The part of it that was written is removed, so that a later episode
    /// begins on a line of its own.
    pub fn append(&mut self, episode: &Episode) -> Result<(), AgentError> {
        let mut line =
            serde_json::to_vec(episode).expect("episodes hold numbers, texts and lists: valid JSON");
        line.push(b'\n');
        let write = |error| AgentError::write(&self.path, error);
        let len = self.file.stream_position().map_err(write)?;
        // A `File` is not buffered: the line survives the program.
        self.file.write_all(&line).map_err(write).inspect_err(|_| {
            // The first error is the one to return.
            let _ = self.truncate(len);
        })
    }

    fn locked(self) -> Result<EpisodeFile, AgentError> {
        match self.file.try_lock() {
            Ok(()) => Ok(self),
            Err(TryLockError::WouldBlock) => Err(AgentError::Locked { path: self.path }),
            // Some file systems have no locks; the file is written nevertheless.
            Err(TryLockError::Error(_)) => Ok(self),
        }
    }
}

/// The lines of a file that a rollout left, and the length in bytes of an incomplete last one.
///
/// # Errors
/// If the file has bytes and no complete line, or the lines are not UTF-8: no rollout wrote it.
pub fn complete_lines(bytes: &[u8]) -> Result<(&str, u64), AgentError> {
    let refuse = |line, reason| AgentError::Line { line, reason };
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if end == 0 && !bytes.is_empty() {
        return Err(refuse(1, "it has no end of line".to_owned()));
    }
    let text = std::str::from_utf8(&bytes[..end]).map_err(|error| {
        let n_before = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        refuse(n_before + 1, error.to_string())
    })?;
    Ok((text, (bytes.len() - end) as u64))
}
